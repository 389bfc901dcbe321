/** What to do about an instance that is given up or through, until EC2 shows that its machine has ended. Pure. */
import type { CloudInstance } from '../../cloud/compute.ts';
import type { Action } from '../model/actions.ts';
import { move } from './instance-moves.ts';
import { powerOffAtMs } from '../model/run-deadlines.ts';
import type { InstanceRecord } from '../model/stores.ts';
import type { World } from '../model/world.ts';
import { wasNeverLaunched } from '../model/world.ts';

/** EC2 may not show an instance for a while after it was launched (AWS: eventual consistency). */
export const VISIBLE_AFTER_MS = 60_000;

/** Closes what is given up, ends its machine, and says when that is over. */
export function decideLeaving(
  world: World,
  record: InstanceRecord,
  cloudInstance: CloudInstance | undefined,
): Action[] {
  const at = { slot: record.slot, epoch: record.epoch };
  const actions: Action[] = [];
  if (record.manifestKey === null) actions.push({ kind: 'close', ...at });
  if (record.phase === 'terminated') {
    // It was taken for gone, or for never launched, and is there after all.
    if (cloudInstance && !isEnding(cloudInstance))
      actions.push({ kind: 'terminate', ...at, instanceId: cloudInstance.id });
    return actions;
  }
  if (record.instanceId === null) {
    // Never launched, or launched without an answer: it may still turn up under its tags.
    if (!cloudInstance && (wasNeverLaunched(record) || isNeverSeen(world, record)))
      actions.push(move(record, 'terminated'));
    return actions;
  }
  if (record.phase === 'terminating') {
    if (isGoneFromEc2(world, record, cloudInstance)) actions.push(move(record, 'terminated'));
    else if (isToldInVain(world, record, cloudInstance))
      actions.push({ kind: 'terminate', ...at, instanceId: record.instanceId });
    return actions;
  }
  // What has ended by itself need not be ended, and perhaps may not be: then the call would fail for ever.
  if (cloudInstance?.state === 'terminated') actions.push(move(record, 'terminated'));
  else actions.push({ kind: 'terminate', ...at, instanceId: record.instanceId });
  return actions;
}

const isEnding = ({ state }: CloudInstance): boolean => state === 'shutting-down' || state === 'terminated';

/** A look from long enough after it was given up does not show it; or, when EC2 does not answer, it would have switched itself off. */
function isNeverSeen(world: World, record: InstanceRecord): boolean {
  if (world.nowMs > powerOffAtMs(world.run)) return true;
  return world.cloud !== null && world.cloud.seenAtMs - record.phaseAtMs > VISIBLE_AFTER_MS;
}

/** EC2 shows it as it was, after it was told to end; or does not show it, and we have waited for long. */
function isToldInVain(world: World, record: InstanceRecord, cloudInstance: CloudInstance | undefined): boolean {
  if (cloudInstance && isEnding(cloudInstance)) return false;
  if (cloudInstance && world.cloud !== null && world.cloud.seenAtMs > record.phaseAtMs) return true;
  return world.nowMs - record.phaseAtMs > world.limits.terminateMs;
}

/** EC2 shows that the machine has ended or is ending, without our asking. */
export function goneReason(
  world: World,
  record: InstanceRecord,
  cloudInstance: CloudInstance | undefined,
): string | null {
  if (cloudInstance)
    return cloudInstance.state === 'pending' || cloudInstance.state === 'running' ? null : `ec2-${cloudInstance.state}`;
  return isGoneFromEc2(world, record, cloudInstance) ? 'ec2-gone' : null;
}

function isGoneFromEc2(world: World, record: InstanceRecord, cloudInstance: CloudInstance | undefined): boolean {
  if (cloudInstance) return cloudInstance.state === 'terminated';
  if (world.cloud === null || record.instanceId === null) return false;
  // A look that was on its way while EC2 answered the launch has not seen it yet: only one from after the last move counts.
  if (world.cloud.seenAtMs <= record.phaseAtMs) return false;
  // Absence counts only when it was seen after the window in which a young instance may be invisible.
  if (world.cloud.seenAtMs - (record.launchedAtMs ?? record.claimedAtMs) < VISIBLE_AFTER_MS) return false;
  if (record.phase !== 'terminating' || record.cloudState === 'shutting-down') return true;
  // EC2 shows what has ended for about an hour: missing just after the call, it may still be running.
  return world.cloud.seenAtMs - record.phaseAtMs > world.limits.terminateMs;
}
