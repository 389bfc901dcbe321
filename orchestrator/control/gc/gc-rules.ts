/**
 * What gc may remove: only resources that are ours, past their expiry and not of a live run. Pure; checked when a
 * resource is found and again, on fresh answers, right before it is removed.
 */
import { isRunEnd } from '../../../shared/domain/states.ts';
import type { CloudInstance } from '../../cloud/compute.ts';
import { TAG } from '../../cloud/compute.ts';
import type { OwnedBalancer } from '../../cloud/load-balancer.ts';
import { powerOffAtMs } from '../model/run-deadlines.ts';
import type { RunRecord } from '../model/stores.ts';

/** EC2 may show a new instance without its tags, or not at all, for half a minute. */
const YOUNG_MS = 60_000;
/** Minimum time between the first and the second observation. */
export const SECOND_LOOK_MS = 60_000;
/** With a clock that is further off, expiry cannot be judged. */
export const MAX_SKEW_MS = 5 * 60_000;

export interface Found {
  kind: 'instance' | 'balancer';
  /** Instance id or balancer name. */
  id: string;
  state: string;
  /** Null when AWS does not say. */
  startedAtMs: number | null;
  tags: Record<string, string>;
}

export function foundInstance(instance: CloudInstance): Found {
  const { id, state, launchedAtMs, tags } = instance;
  return { kind: 'instance', id, state, startedAtMs: launchedAtMs > 0 ? launchedAtMs : null, tags };
}

export function foundBalancer({ name, createdAtMs, tags, loadBalancerArn }: OwnedBalancer): Found {
  const state = loadBalancerArn === null ? 'target group alone' : 'balancer';
  return { kind: 'balancer', id: name, state, startedAtMs: createdAtMs, tags };
}

export interface GcFacts {
  owner: string;
  /** By the endpoint's clock. */
  nowMs: number;
  /** The runs of this database that the tags name. */
  runs: ReadonlyMap<string, RunRecord>;
  /** The run that a main server works on now, whatever its deadline; null for none. */
  workedOn: string | null;
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
  if (facts.workedOn === runId) return 'a main server is at work on its run';
  if (run && !isRunEnd(run.phase) && facts.nowMs <= powerOffAtMs(run)) return 'its run is not over';
  const expiresAtMs = expiryOf(found, run);
  if (expiresAtMs === null) return `it has no tag ${TAG.expiresAt}, and its run is unknown here`;
  return facts.nowMs <= expiresAtMs ? 'it has not expired' : null;
}

/** From its tag; resources of older versions have none and go by their run's row. */
export function expiryOf(found: Found, run: RunRecord | undefined): number | null {
  const tag = found.tags[TAG.expiresAt];
  if (tag === undefined) return run ? powerOffAtMs(run) : null;
  const ms = Date.parse(tag);
  return Number.isFinite(ms) ? ms : null;
}
