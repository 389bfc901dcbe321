/** The texts of what decide() and decideSlot() note: rules are there, words here. */
import type { EpochId } from '../../../shared/domain/epoch-id.ts';
import { formatDuration } from '../../../shared/domain/quantity.ts';
import type { EndForecast } from '../model/forecast.ts';
import type { InstanceRecord, RunRecord } from '../model/stores.ts';
import { tryAgain } from '../model/try-again.ts';

/** Why a claim is given up before its launch. */
export const OLD_KEYS =
  'its bundle URL was signed with keys that AWS has refused since; the next claim has a fresh one';
export const SLOWER = 'the site asked for a slower pace before it was launched';
export const STALE = 'it was not launched within ten minutes of the claim; the next claim has a fresh bundle URL';

/** Why an instance is given up, or counts as ended. */
export const UNREGISTERED = 'AWS refuses to register it, so it gets no product';
export const ABANDONED = 'AWS does not answer in its region: it powers itself off, or orchestrator gc ends it';

export const hasAddressOf = ({ address, slot, epoch, instanceId }: InstanceRecord): string =>
  `it has the address ${address} of slot ${slot} epoch ${epoch} (${instanceId})`;

export const bannedAt = (rule: string, address: string | null): string =>
  `${rule}, seen at ${address ?? 'an unknown address'}`;

export const CRAWLS_AGAIN = 'the address may crawl again';

/** What a run leaves in a region that does not answer. */
export const leftIn = (
  region: string,
  { instances, balancers }: { instances: number; balancers: number },
  powerOffMs: number,
): string =>
  `AWS does not answer in ${region}, where this run may leave instances (${instances}) and a load balancer (${balancers}): ` +
  `instances power themselves off at ${new Date(powerOffMs).toISOString()}, orchestrator gc removes the rest`;

/** The run ends without the last results of an epoch. */
export const notClosed = ({ slot, epoch }: EpochId, run: RunRecord): string =>
  `slot ${slot} epoch ${epoch}: the bucket cannot be searched for its last results, and the run ends without them; ` +
  `${tryAgain(run)} crawls those products again`;

/** @param percent how much of the time is gone */
export function lateAt(percent: number, { p50Ms, p95Ms }: EndForecast, latestMs: number): string {
  const end =
    p50Ms === null || p95Ms === null
      ? 'no instance is left that could crawl the open products'
      : `the crawl ends ${beside(p50Ms - latestMs)} (p50), ${beside(p95Ms - latestMs)} (p95)`;
  return `${percent} % of the time is gone and the run may be late: ${end}; the results at that time are published without the rest`;
}

const beside = (ms: number): string =>
  ms > 0
    ? `${formatDuration(ms)} after the last moment for it`
    : `${formatDuration(-ms)} before the last moment for it`;
