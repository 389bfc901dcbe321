/** What the row of an instance says about it. Pure. */
import type { AddressIncident, InstanceRecord } from './stores.ts';

/** The incident that the instance still reports; null when it may send requests. */
export function openIncident(record: Pick<InstanceRecord, 'incident'>): AddressIncident | null {
  return record.incident !== null && record.incident.overAtMs === null ? record.incident : null;
}

/** EC2 was called for it. */
export type Asked = InstanceRecord & { launchedAtMs: number };

export const wasAsked = (record: InstanceRecord): record is Asked => record.launchedAtMs !== null;

/** EC2 has refused its last call, and the call is not repeated. A throttled call is repeated. */
export function isRefused({ answer }: InstanceRecord): boolean {
  return answer?.kind === 'refused' && answer.cause !== 'throttled';
}

/** No call for the claim can have launched anything. */
export function wasNeverLaunched(record: InstanceRecord): boolean {
  if (record.attempts === 0) return true;
  return isRefused(record) && record.answer?.kind === 'refused' && record.answer.mayExist !== true;
}

/**
 * True for an instance that is given up permanently: it may take no product, and its uncrawled ones belong to others.
 */
export function isGivenUp(record: InstanceRecord): boolean {
  return (
    record.phase === 'lost' ||
    record.phase === 'terminating' ||
    record.phase === 'terminated' ||
    record.phase === 'done'
  );
}

/** It crawls, or may get something to crawl; false once it only uploads what it has. */
export const hasRequests = ({ phase, sealed, progress }: InstanceRecord): boolean =>
  phase !== 'uploading' && !(sealed && progress?.pending === 0);

/** True for an instance that is terminated, and seen shutting down: EC2 does not revert that. */
export function isLeaving(record: InstanceRecord): boolean {
  if (record.phase === 'terminated') return true;
  return (
    record.phase === 'terminating' && (record.cloudState === 'shutting-down' || record.cloudState === 'terminated')
  );
}

/** Its manifest is written: no result will be added under this epoch. */
export function isClosed(record: InstanceRecord): boolean {
  return isGivenUp(record) && record.manifestKey !== null && record.phase !== 'lost';
}
