/** When the hosts of one instance may be asked by another, in a run of many hosts. Pure. */
import { isAnyHost } from '../../../shared/domain/domains.ts';
import { hostGapMs } from '../../../shared/domain/host-policy.ts';
import { hostLeaseMs } from '../../../shared/domain/limits.ts';
import { intervalOf } from '../model/operator-pace.ts';
import { limitsOf } from '../model/run-deadlines.ts';
import type { InstanceRecord, RunRecord } from '../model/stores.ts';

/** How surely an instance sends no request any more: it has said so itself, or it was given up. */
type Farewell = 'closed' | 'lost';

type PacedRun = Pick<RunRecord, 'settings' | 'plan' | 'operatorPace' | 'startedAtMs' | 'deadlineAtMs'>;

/** How long the hosts of a lost instance rest after its last heartbeat; 0 in a run of one site. */
export function restOfLostMs(run: PacedRun): number {
  const { site } = run.settings;
  if (!isAnyHost(site.productUrl)) return 0;
  return hostLeaseMs(limitsOf(run)) + site.timeoutMs + hostGapMs(intervalOf(run), 0);
}

/**
 * One gap after the last request that the instance may have sent, on the clock of the main server: that was before now
 * if it has closed its epoch, before EC2 showed its machine terminated, and else while its lease lasted. Undefined in a
 * run of one site, where each address has a pace of its own.
 *
 * @param at.silentFromMs since when this process counts the silence of instances
 */
export function hostsFreeAtMs(
  run: PacedRun,
  { lastHeartbeatAtMs, cloudState }: Pick<InstanceRecord, 'lastHeartbeatAtMs' | 'cloudState'>,
  farewell: Farewell,
  { nowMs, silentFromMs }: { nowMs: number; silentFromMs: number },
): number | undefined {
  if (!isAnyHost(run.settings.site.productUrl)) return undefined;
  if (farewell === 'closed' || cloudState === 'terminated') return nowMs + hostGapMs(intervalOf(run), 0);
  // Without a heartbeat nothing was granted to it.
  if (lastHeartbeatAtMs === null) return nowMs;
  // A time of another clock, or of this one before it was set, says little: then the lease counts from the change.
  return Math.max(Math.min(lastHeartbeatAtMs, nowMs), silentFromMs) + restOfLostMs(run);
}
