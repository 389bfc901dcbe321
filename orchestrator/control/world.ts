/** What the control core knows at one moment: everything `decide` may look at. */
import type { RunLimits } from '../../shared/domain/limits.ts';
import type { CloudInstance } from '../cloud/compute.ts';
import type { TargetHealth } from '../cloud/load-balancer.ts';
import type { InstanceRecord, RunRecord, WorkCounts } from './stores.ts';
import type { OutcomeCounts } from '../../shared/domain/outcome.ts';

export interface World {
  nowMs: number;
  /** When this main server took the run up: silence before that proves nothing about an instance. */
  loopStartedAtMs: number;
  run: RunRecord;
  limits: RunLimits;
  /** All epochs of all slots, ordered by slot and epoch. */
  instances: InstanceRecord[];
  /** What EC2 shows under the run's tag, and when it was asked; null before the first answer. */
  cloud: { instances: CloudInstance[]; seenAtMs: number } | null;
  balancerActive: boolean;
  /** ELBv2 does not know the balancer any more that the run's row names: it has to be made again. */
  balancerGone: boolean;
  /** Target health by instance id; empty while there is no balancer. */
  targets: ReadonlyMap<string, TargetHealth>;
  work: WorkCounts;
  totals: OutcomeCounts & { seen: number; loaded: number };
}

/** The newest epoch of every slot that has one. */
export function latestBySlot(instances: readonly InstanceRecord[]): Map<number, InstanceRecord> {
  const latest = new Map<number, InstanceRecord>();
  for (const record of instances) {
    const known = latest.get(record.slot);
    if (!known || known.epoch < record.epoch) latest.set(record.slot, record);
  }
  return latest;
}

/** Given up for good: it may take no product, and what it did not crawl belongs to others. */
export function isGivenUp(record: InstanceRecord): boolean {
  return (
    record.phase === 'lost' ||
    record.phase === 'terminating' ||
    record.phase === 'terminated' ||
    record.phase === 'done'
  );
}

/** Its manifest is written: nobody will add a result under this epoch. */
export function isClosed(record: InstanceRecord): boolean {
  return isGivenUp(record) && record.manifestKey !== null && record.phase !== 'lost';
}
