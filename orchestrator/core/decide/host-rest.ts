/** When the hosts of one instance may be asked by another, in a run of many hosts. Pure. */
import { isAnyHost } from '../../../shared/domain/domains.ts';
import { hostGapMs } from '../../../shared/domain/host-policy.ts';
import { hostLeaseMs } from '../../../shared/domain/limits.ts';
import { intervalOf } from '../model/operator-pace.ts';
import { limitsOf } from '../model/run-deadlines.ts';
import type { InstanceRecord, RunRecord } from '../model/stores.ts';

/** How surely an instance sends no request any more: it has said so itself, or it was given up. */
type Farewell = 'closed' | 'lost';

/**
 * One gap after the last request that the instance may have sent, on the clock of the main server: that was before now
 * if it has closed its epoch, before EC2 showed its machine terminated, and else while its lease lasted. Undefined in a
 * run of one site, where each address has a pace of its own.
 *
 * @param at.silentFromMs since when this process counts the silence of instances
 */
export function hostsFreeAtMs(
  run: Pick<RunRecord, 'settings' | 'plan' | 'operatorPace' | 'startedAtMs' | 'deadlineAtMs'>,
  { lastHeartbeatAtMs, cloudState }: Pick<InstanceRecord, 'lastHeartbeatAtMs' | 'cloudState'>,
  farewell: Farewell,
  { nowMs, silentFromMs }: { nowMs: number; silentFromMs: number },
): number | undefined {
  const { site } = run.settings;
  if (!isAnyHost(site.productUrl)) return undefined;
  const gapMs = hostGapMs(intervalOf(run), 0);
  if (farewell === 'closed' || cloudState === 'terminated') return nowMs + gapMs;
  // Without a heartbeat nothing was granted to it.
  if (lastHeartbeatAtMs === null) return nowMs;
  // A time of another clock, or of this one before it was set, says little: then the lease counts from the change.
  const heardMs = Math.max(Math.min(lastHeartbeatAtMs, nowMs), silentFromMs);
  return heardMs + hostLeaseMs(limitsOf(run)) + site.timeoutMs + gapMs;
}
