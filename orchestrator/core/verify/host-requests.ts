/** What a run of many hosts has asked of each of them, by its request logs: they alone say what was sent. */
import type { EpochId } from '../../../shared/domain/epoch-id.ts';
import type { InstanceRecord } from '../model/stores.ts';
import { readClosedEpoch, type RunBucket } from './closed-epoch.ts';
import { Gaps } from './gaps.ts';
import { HostNumbers } from './host-numbers.ts';
import type { Span } from './owners.ts';
import { readRequestLogs } from './request-logs.ts';

/** What one instance has asked of one host. */
export interface HostRequests extends EpochId {
  host: string;
  /** Of the instance; null: not known, as in a run that was rebuilt from the bucket. */
  address: string | null;
  /** The first and the last request, by the main server's clock where that is known. */
  firstMs: number;
  lastMs: number;
  /** Those for robots.txt and redirects included. */
  requests: number;
  /** What was due between two of them at the end. */
  intervalMs: number;
}

/** Longer names are no names of hosts. */
const MAX_HOST = 253;

/**
 * Of each epoch that is closed, what it asked of each host. What no log has is left out: `verify` says how much that
 * is. Memory: the hosts of one instance. Throws where the bucket does not answer.
 */
export async function* readHostRequests(
  bucket: RunBucket,
  instances: readonly InstanceRecord[],
  signal: AbortSignal,
): AsyncGenerator<HostRequests[]> {
  const { intervalMs: floorMs, hostKey } = bucket.run.settings.site;
  for (const instance of instances) {
    signal.throwIfAborted();
    const closed = await readClosedEpoch(bucket, instance);
    if (typeof closed === 'string') continue;
    const hosts = new HostNumbers(hostKey);
    const gaps = new Gaps({ floorMs, domains: Infinity, numberOf: hosts.numberOf }, () => undefined);
    gaps.beginInstance();
    await readRequestLogs(bucket, closed.epoch, gaps);
    gaps.end();
    const { slot, epoch, address } = instance;
    yield wholeSpans(gaps).flatMap(({ host: number, first, last, requests }) => {
      const host = hosts.nameOf(number);
      if (host.length > MAX_HOST) return [];
      return {
        host,
        slot,
        epoch,
        address: address === '-' ? null : address,
        firstMs: Math.round(first.ms),
        lastMs: Math.round(last.ms),
        requests,
        intervalMs: Math.round(last.intervalMs),
      };
    });
  }
}

/** The requests to each host, also of one that the instance had more than once. */
function wholeSpans(gaps: Gaps): Span[] {
  const whole = new Map<number, Span>();
  for (const span of gaps.spans()) {
    const earlier = whole.get(span.host);
    const { first, requests } = earlier ?? { first: span.first, requests: 0 };
    whole.set(span.host, { ...span, first, requests: requests + span.requests });
  }
  return [...whole.values()];
}
