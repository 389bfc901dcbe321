/**
 * gc: finds resources that carry our owner tag past their expiry, marks them, and removes them when another gc, at
 * least a minute later, still finds them. Harmless to kill at any point: a mark only makes the next gc check again.
 */
import { describeError } from '../../../shared/domain/errors.ts';
import type { Clock } from '../../../shared/ports/clock.ts';
import { type CloudInstance, type Compute, TAG } from '../cloud/compute.ts';
import type { LoadBalancer, OwnedBalancer } from '../cloud/load-balancer.ts';
import type { RunRecord, RunStore } from '../model/stores.ts';
import { isRunEnd } from '../../../shared/domain/states.ts';
import { powerOffAtMs } from '../model/run-deadlines.ts';

/** A resource that a gc found past its expiry. */
export interface GcMark {
  kind: Found['kind'];
  id: string;
  firstSeenAtMs: number;
}

export interface GcMarkStore {
  list(owner: string): Promise<GcMark[]>;
  /**
   * Writes these marks, and deletes those of resources that are kept. Marks of other regions, which this gc has not
   * checked, stay; those made before `oldestMs` and not repeated are deleted.
   */
  note(
    owner: string,
    sightings: readonly GcMark[],
    kept: readonly Pick<GcMark, 'kind' | 'id'>[],
    oldestMs: number,
  ): Promise<void>;
}

/** A mark that no gc has repeated for this long is deleted. */
const FORGET_MS = 7 * 86_400_000;

export interface GcOptions {
  owner: string;
  compute: Compute;
  balancers: LoadBalancer;
  runs: Pick<RunStore, 'get'>;
  marks: GcMarkStore;
  clock: Clock;
  /** The endpoint's clock minus ours, after the first answer; null when it sends no time. */
  skewMs: () => number | null;
  /** The runs that main servers work on now. */
  workedOn: ReadonlySet<string>;
  /** Marks and ends nothing. */
  dryRun: boolean;
}

export interface GcItem {
  kind: Found['kind'];
  id: string;
  run: string | null;
  state: string;
  expiresAt: string | null;
  /**
   * An instance that may be crawling for a run that this database does not know: another main server's, or one that it
   * has lost.
   */
  unknownRun: boolean;
  /** `marked`: past its expiry for the first time; `waiting`: marked a moment ago. In a dry run, what would be done. */
  action: 'kept' | 'marked' | 'waiting' | 'terminated' | 'failed';
  /** Why it was kept, or what failed. */
  detail: string | null;
}

export interface GcReport {
  owner: string;
  dryRun: boolean;
  /** The endpoint's clock minus ours. */
  clockSkewMs: number | null;
  /** Why nothing was marked or removed; null when gc was not refused. */
  refused: string | null;
  items: GcItem[];
}

interface Look extends GcFacts {
  balancers: OwnedBalancer[];
  found: Found[];
}

/** One gc. Throws when AWS or the database cannot be reached at all; a failure for one resource is in its item. */
export async function collect(options: GcOptions): Promise<GcReport> {
  const look = await lookAround(options);
  const skewMs = options.skewMs();
  const refused = refusal(skewMs);
  const nowMs = look.nowMs;
  const known = new Map((await options.marks.list(options.owner)).map((s) => [`${s.kind} ${s.id}`, s]));
  const marks: GcMark[] = [];
  const due: Found[] = [];
  const items = look.found.map((found): GcItem => {
    const keep = reasonToKeep(found, look) ?? refused;
    if (keep !== null) return itemOf(found, look, 'kept', keep);
    const seen = known.get(`${found.kind} ${found.id}`);
    // A mark from the future comes from a wrong clock and proves nothing.
    const firstSeenAtMs = seen && seen.firstSeenAtMs <= nowMs ? seen.firstSeenAtMs : nowMs;
    marks.push({ kind: found.kind, id: found.id, firstSeenAtMs });
    if (firstSeenAtMs === nowMs) return itemOf(found, look, 'marked', null);
    if (nowMs - firstSeenAtMs < SECOND_LOOK_MS) return itemOf(found, look, 'waiting', null);
    due.push(found);
    return itemOf(found, look, 'terminated', null);
  });
  if (!options.dryRun && refused === null) {
    const kept = items.filter((i) => i.action === 'kept');
    await options.marks.note(options.owner, marks, kept, nowMs - FORGET_MS);
    if (due.length > 0) await endAll(options, due, items);
  }
  return { owner: options.owner, dryRun: options.dryRun, clockSkewMs: skewMs, refused, items };
}

function refusal(skewMs: number | null): string | null {
  if (skewMs === null) return 'the endpoint does not send its time, so expiry cannot be judged';
  if (Math.abs(skewMs) <= MAX_SKEW_MS) return null;
  const minutes = Math.round(Math.abs(skewMs) / 60_000);
  return `the clock of this machine is ${minutes} minutes ${skewMs < 0 ? 'ahead of' : 'behind'} AWS: correct it`;
}

async function lookAround(options: GcOptions): Promise<Look> {
  const { owner, compute, balancers: elb, clock, workedOn } = options;
  const instances = await compute.list({ key: TAG.owner, value: owner });
  const balancers = await elb.list(owner);
  const found = [...instances.map(foundInstance), ...balancers.map(foundBalancer)];
  const runs = new Map<string, RunRecord>();
  for (const id of new Set(found.map((f) => f.tags[TAG.run] ?? ''))) {
    const run = id === '' ? null : await options.runs.get(id);
    if (run) runs.set(id, run);
  }
  const nowMs = clock.now() + (options.skewMs() ?? 0);
  return { balancers, found, owner, nowMs, runs, workedOn };
}

/** Queries AWS and the database again, and removes what may still be removed. */
async function endAll(options: GcOptions, due: readonly Found[], items: GcItem[]): Promise<void> {
  const fresh = await lookAround(options);
  for (const { kind, id } of due) {
    const item = items.find((i) => i.kind === kind && i.id === id)!;
    const now = fresh.found.find((f) => f.kind === kind && f.id === id);
    const keep = now ? reasonToKeep(now, fresh) : 'it is already gone';
    if (keep !== null) {
      Object.assign(item, { action: 'kept', detail: keep });
      continue;
    }
    try {
      if (kind === 'instance') await options.compute.terminate([id]);
      else await options.balancers.removeOwned(fresh.balancers.find((b) => b.name === id)!);
    } catch (error) {
      Object.assign(item, { action: 'failed', detail: describeError(error) });
    }
  }
}

function itemOf(found: Found, facts: GcFacts, action: GcItem['action'], detail: string | null): GcItem {
  const run = found.tags[TAG.run] ?? null;
  const known = facts.runs.get(run ?? '');
  const expiresAtMs = expiryOf(found, known);
  const isCrawler = found.tags[TAG.slot] !== undefined && found.tags[TAG.owner] === facts.owner;
  const isUp = found.state === 'pending' || found.state === 'running';
  return {
    kind: found.kind,
    id: found.id,
    run,
    state: found.state,
    expiresAt: expiresAtMs === null ? null : new Date(expiresAtMs).toISOString(),
    unknownRun: known === undefined && isCrawler && isUp,
    action,
    detail,
  };
}

/** EC2 may show a new instance without its tags, or not at all, for half a minute. */
const YOUNG_MS = 60_000;
/** Minimum time between the first and the second observation. */
export const SECOND_LOOK_MS = 60_000;
/** The largest difference of the clocks: with one that is further off, expiry cannot be judged. */
const MAX_SKEW_MS = 5 * 60_000;

export interface Found {
  kind: 'instance' | 'balancer';
  /** Instance id or balancer name. */
  id: string;
  state: string;
  /** When it was started; null when AWS does not say. */
  startedAtMs: number | null;
  tags: Record<string, string>;
}

function foundInstance(instance: CloudInstance): Found {
  const { id, state, launchedAtMs, tags } = instance;
  return { kind: 'instance', id, state, startedAtMs: launchedAtMs > 0 ? launchedAtMs : null, tags };
}

function foundBalancer({ name, createdAtMs, tags, loadBalancerArn }: OwnedBalancer): Found {
  const state = loadBalancerArn === null ? 'target group alone' : 'balancer';
  return { kind: 'balancer', id: name, state, startedAtMs: createdAtMs, tags };
}

export interface GcFacts {
  owner: string;
  /** The time by the endpoint's clock. */
  nowMs: number;
  /** The runs of this database that the tags name. */
  runs: ReadonlyMap<string, RunRecord>;
  /** The runs that main servers work on now, whatever their deadlines. */
  workedOn: ReadonlySet<string>;
}

/** Why it is kept; null when it has expired. */
export function reasonToKeep(found: Found, facts: GcFacts): string | null {
  const { tags } = found;
  if (tags[TAG.owner] !== facts.owner) return `its owner is ${tags[TAG.owner] ?? 'unknown'}`;
  const runId = tags[TAG.run];
  if (!runId) return `it has no tag ${TAG.run}`;
  if (found.state === 'shutting-down' || found.state === 'terminated') return 'it is already ending';
  // A target group alone has no creation time, but the rules below keep that of a live run.
  if (found.startedAtMs === null && found.state !== 'target group alone') return 'AWS does not say when it was started';
  if (found.startedAtMs !== null && facts.nowMs - found.startedAtMs < YOUNG_MS) return 'it is younger than a minute';
  const run = facts.runs.get(runId);
  if (facts.workedOn.has(runId)) return 'a main server is at work on its run';
  if (run && !isRunEnd(run.phase) && facts.nowMs <= powerOffAtMs(run)) return 'its run is not over';
  const expiresAtMs = expiryOf(found, run);
  if (expiresAtMs === null) return `it has no tag ${TAG.expiresAt}, and its run is unknown here`;
  return facts.nowMs <= expiresAtMs ? 'it has not expired' : null;
}

/** When a resource expires, from its tag; resources of older versions have none and go by their run's row. */
function expiryOf(found: Found, run: RunRecord | undefined): number | null {
  const tag = found.tags[TAG.expiresAt];
  if (tag === undefined) return run ? powerOffAtMs(run) : null;
  const ms = Date.parse(tag);
  return Number.isFinite(ms) ? ms : null;
}
