/** The orders in the reply to a heartbeat. Pure, so that they are the same whatever brought the heartbeat here. */
import type { RobotsPolicy } from '../../../shared/domain/robots-matcher.ts';
import { isServing } from '../../../shared/domain/states.ts';
import type { Heartbeat, Orders } from '../../../shared/wire/callbacks.ts';
import { intervalUnder } from '../observe/robots-cache.ts';
import { drainAtMs, isDraining } from '../model/run-deadlines.ts';
import type { InstanceRecord, RunRecord } from '../model/stores.ts';

export interface OrderInput {
  nowMs: number;
  run: RunRecord;
  record: InstanceRecord;
  heartbeat: Heartbeat;
  /** Chunks of the heartbeat that are its own now. */
  granted: string[];
  /** Chunks of the run that nobody owns, after the grants. */
  waiting: number;
  /** True while an address with an open incident, or a slow one, still holds products that may come back. */
  returning: boolean;
  partsAck: number;
  /** True when a newer epoch has the slot. */
  superseded: boolean;
  robots: RobotsPolicy | null;
  /** By how much every interval is longer, because the site is down. */
  slowdown: number;
  /** True when a banned instance is to give its products back and keep its place. */
  returnProducts: boolean;
  /** Chunks that others could crawl sooner. */
  transfer: string[];
  /** Products it is to hold at most; null while shares are equal. */
  maxProducts: number | null;
  /** True when an instance makes room for another address, because its own is banned or to be rotated: it uploads, closes and goes. */
  rotate: boolean;
  verdict: Orders['verdict'];
  canaryPage: Orders['canaryPage'];
}

/**
 * Sealed = the shard is complete: nothing waits for an owner or may come back, and all that this instance holds is
 * crawled. Before that an instance stays open, so that it can take what comes back from a lost, banned or slow one.
 */
export function isShardComplete(
  input: Pick<OrderInput, 'nowMs' | 'run' | 'record' | 'heartbeat' | 'granted' | 'waiting' | 'returning' | 'rotate'>,
): boolean {
  if (input.record.sealed || isDraining(input) || input.rotate) return true;
  const idle =
    input.heartbeat.progress.pending === 0 && input.granted.length === 0 && input.heartbeat.offered.length === 0;
  return idle && input.waiting === 0 && !input.returning;
}

export function ordersFor(input: OrderInput): Orders {
  const own = new Set(input.granted);
  const { robots, heartbeat } = input;
  return {
    grants: input.granted,
    drops: heartbeat.offered.filter((id) => !own.has(id)),
    transfer: isDraining(input) ? [] : input.transfer,
    transferredAck: heartbeat.transferred,
    maxProducts: input.maxProducts,
    sealed: isShardComplete(input),
    drain: isDraining(input) || input.rotate,
    fenced: input.superseded || !(isServing(input.record.phase) || input.record.phase === 'done'),
    partsAck: input.partsAck,
    intervalMs: intervalUnder(robots, input.run.settings.site.intervalMs) * input.slowdown,
    deadline: new Date(drainAtMs(input.run)).toISOString(),
    robots: robots === null || robots.version === heartbeat.robots ? null : robots,
    returnProducts: input.returnProducts,
    verdict: input.verdict,
    canaryPage: input.canaryPage,
  };
}
