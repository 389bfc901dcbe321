/**
 * gc: finds what carries our owner tag past its time, marks it, and ends it when another gc, a minute later or more,
 * finds it still there. Harmless to kill at any point: a mark only makes the next gc look again.
 */
import { describeError } from '../../../shared/domain/errors.ts';
import type { Clock } from '../../../shared/ports/clock.ts';
import type { CloudInstance, Compute } from '../../cloud/compute.ts';
import { TAG } from '../../cloud/compute.ts';
import type { LoadBalancer, OwnedBalancer } from '../../cloud/load-balancer.ts';
import type { Found, GcFacts } from './gc-rules.ts';
import { expiryOf, foundBalancer, foundInstance, MAX_SKEW_MS, reasonToKeep, SECOND_LOOK_MS } from './gc-rules.ts';
import type { RunRecord, RunStore } from '../model/stores.ts';

/** Something that was past its time when a gc looked. */
export interface GcMark {
  kind: Found['kind'];
  id: string;
  firstSeenAtMs: number;
}

export interface GcMarkStore {
  list(owner: string): Promise<GcMark[]>;
  /**
   * Writes these sightings, and forgets what was seen and is to stay. Those of other regions, which nobody has looked at
   * now, are left; those made before `oldestMs` and not repeated go.
   */
  note(
    owner: string,
    sightings: readonly GcMark[],
    kept: readonly Pick<GcMark, 'kind' | 'id'>[],
    oldestMs: number,
  ): Promise<void>;
}

/** What no gc has seen for so long is gone. */
const FORGET_MS = 7 * 86_400_000;

export interface GcOptions {
  owner: string;
  compute: Compute;
  balancers: LoadBalancer;
  runs: Pick<RunStore, 'get'>;
  marks: GcMarkStore;
  clock: Clock;
  /** The endpoint's clock less ours, after the first answer; null when it tells no time. */
  skewMs: () => number | null;
  /** The run that a main server works on now; null for none. */
  workedOn: string | null;
  /** Marks and ends nothing. */
  dryRun: boolean;
}

export interface GcItem {
  kind: Found['kind'];
  id: string;
  run: string | null;
  state: string;
  expiresAt: string | null;
  /** An instance that may be crawling for a run that this database does not know: another main server's, or one that it has lost. */
  unknownRun: boolean;
  /** `marked` was seen past its time for the first time, `waiting` less than a minute ago. In a dry run what would be done. */
  action: 'kept' | 'marked' | 'waiting' | 'terminated' | 'failed';
  /** Why it was kept, or what failed. */
  detail: string | null;
}

export interface GcReport {
  owner: string;
  dryRun: boolean;
  /** The endpoint's clock less ours. */
  clockSkewMs: number | null;
  /** Why nothing was marked or ended; null when nothing was in the way. */
  refused: string | null;
  items: GcItem[];
}

interface Look {
  instances: CloudInstance[];
  balancers: OwnedBalancer[];
  found: Found[];
  facts: GcFacts;
}

/** One gc. Throws when AWS or the database cannot be asked at all; what fails for one thing is in its item. */
export async function collect(options: GcOptions): Promise<GcReport> {
  const look = await lookAround(options);
  const skewMs = options.skewMs();
  const refused = refusal(skewMs);
  const nowMs = look.facts.nowMs;
  const known = new Map((await options.marks.list(options.owner)).map((s) => [`${s.kind} ${s.id}`, s]));
  const marks: GcMark[] = [];
  const due: Found[] = [];
  const items = look.found.map((found): GcItem => {
    const keep = reasonToKeep(found, look.facts) ?? refused;
    if (keep !== null) return itemOf(found, look.facts, 'kept', keep);
    const seen = known.get(`${found.kind} ${found.id}`);
    // A mark from the future is of a clock that was wrong: it proves nothing.
    const firstSeenAtMs = seen && seen.firstSeenAtMs <= nowMs ? seen.firstSeenAtMs : nowMs;
    marks.push({ kind: found.kind, id: found.id, firstSeenAtMs });
    if (firstSeenAtMs === nowMs) return itemOf(found, look.facts, 'marked', null);
    if (nowMs - firstSeenAtMs < SECOND_LOOK_MS) return itemOf(found, look.facts, 'waiting', null);
    due.push(found);
    return itemOf(found, look.facts, 'terminated', null);
  });
  if (!options.dryRun && refused === null) {
    const kept = items.filter((i) => i.action === 'kept');
    await options.marks.note(options.owner, marks, kept, nowMs - FORGET_MS);
    if (due.length > 0) await endAll(options, due, items);
  }
  return { owner: options.owner, dryRun: options.dryRun, clockSkewMs: skewMs, refused, items };
}

function refusal(skewMs: number | null): string | null {
  if (skewMs === null) return 'the endpoint does not tell its time, so what is past its time cannot be known';
  if (Math.abs(skewMs) <= MAX_SKEW_MS) return null;
  const minutes = Math.round(Math.abs(skewMs) / 60_000);
  return `the clock of this machine is ${minutes} minutes ${skewMs < 0 ? 'ahead of' : 'behind'} AWS: set it right`;
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
  return { instances, balancers, found, facts: { owner, nowMs, runs, workedOn } };
}

/** Asks AWS and the database again, and ends what may still be ended. */
async function endAll(options: GcOptions, due: readonly Found[], items: GcItem[]): Promise<void> {
  const fresh = await lookAround(options);
  for (const { kind, id } of due) {
    const item = items.find((i) => i.kind === kind && i.id === id)!;
    const now = fresh.found.find((f) => f.kind === kind && f.id === id);
    const keep = now ? reasonToKeep(now, fresh.facts) : 'it has gone by itself';
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
