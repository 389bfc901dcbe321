/** The orders in the reply to a heartbeat. Pure, so that they are the same whatever brought the heartbeat here. */
import type { Heartbeat, Orders } from '../../shared/wire/callbacks.ts';
import { isServing } from '../../shared/domain/states.ts';
import { drainAtMs, isDraining } from './schedule-of-run.ts';
import type { InstanceRecord, RunRecord } from './stores.ts';

export interface OrderInput {
  nowMs: number;
  run: RunRecord;
  record: InstanceRecord;
  heartbeat: Heartbeat;
  /** Chunks of the heartbeat that are its own now. */
  granted: string[];
  /** Chunks of the run that nobody owns, after the grants. */
  waiting: number;
  partsAck: number;
  /** True when a newer epoch has the slot. */
  superseded: boolean;
}

/**
 * Sealed = the shard is complete: nothing waits for an owner, and all that this instance holds is crawled. Before that an
 * instance stays open, so that it can take what comes back from a lost one.
 */
export function isShardComplete(
  input: Pick<OrderInput, 'nowMs' | 'run' | 'record' | 'heartbeat' | 'granted' | 'waiting'>,
): boolean {
  if (input.record.sealed || isDraining(input)) return true;
  const idle =
    input.heartbeat.progress.pending === 0 && input.granted.length === 0 && input.heartbeat.offered.length === 0;
  return idle && input.waiting === 0;
}

export function ordersFor(input: OrderInput): Orders {
  const own = new Set(input.granted);
  return {
    grants: input.granted,
    drops: input.heartbeat.offered.filter((id) => !own.has(id)),
    sealed: isShardComplete(input),
    drain: isDraining(input),
    fenced: input.superseded || !(isServing(input.record.phase) || input.record.phase === 'done'),
    partsAck: input.partsAck,
    intervalMs: input.run.settings.site.intervalMs,
    deadline: new Date(drainAtMs(input.run)).toISOString(),
  };
}
