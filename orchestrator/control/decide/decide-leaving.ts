/** What to do about an instance that is given up or done, until EC2 shows that its machine has ended. Pure. */
import type { CloudInstance } from '../../cloud/compute.ts';
import type { Action } from '../model/actions.ts';
import { powerOffAtMs } from '../model/run-deadlines.ts';
import type { InstanceRecord } from '../model/stores.ts';
import type { World } from '../model/world.ts';
import { wasNeverLaunched } from '../model/instance-state.ts';

/** EC2 may not show an instance for a while after it was launched (AWS: eventual consistency). */
export const VISIBLE_AFTER_MS = 60_000;

/** Closes its epoch, terminates its machine, and records when EC2 shows it as ended. */
export function decideLeaving(
  world: World,
  record: InstanceRecord,
  cloudInstance: CloudInstance | undefined,
): Action[] {
  const at = { slot: record.slot, epoch: record.epoch };
  const actions: Action[] = [];
  if (record.manifestKey === null) actions.push({ kind: 'close', ...at });
  if (record.phase === 'terminated') {
    // It was assumed gone, or never launched, and exists after all.
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
  // A machine that has ended on its own needs no terminate call, which might be denied and then fail for ever.
  if (cloudInstance?.state === 'terminated') actions.push(move(record, 'terminated'));
  else actions.push({ kind: 'terminate', ...at, instanceId: record.instanceId });
  return actions;
}

const isEnding = ({ state }: CloudInstance): boolean => state === 'shutting-down' || state === 'terminated';

/** EC2 does not show it long after it was given up; or, without an answer of EC2, it would have powered itself off. */
function isNeverSeen(world: World, record: InstanceRecord): boolean {
  if (world.nowMs > powerOffAtMs(world.run)) return true;
  return world.cloud !== null && world.cloud.seenAtMs - record.phaseAtMs > VISIBLE_AFTER_MS;
}

/** EC2 shows it unchanged after the terminate call; or does not show it, and `terminateMs` have passed. */
function isToldInVain(world: World, record: InstanceRecord, cloudInstance: CloudInstance | undefined): boolean {
  if (cloudInstance && isEnding(cloudInstance)) return false;
  if (cloudInstance && world.cloud !== null && world.cloud.seenAtMs > record.phaseAtMs) return true;
  return world.nowMs - record.phaseAtMs > world.limits.terminateMs;
}

/** The loss reason when EC2 shows that the machine has ended or is ending without our call. */
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
  // A poll in flight during the launch may not have seen it yet: only one from after the last move counts.
  if (world.cloud.seenAtMs <= record.phaseAtMs) return false;
  // Absence counts only when it was seen after the window in which a young instance may be invisible.
  if (world.cloud.seenAtMs - (record.launchedAtMs ?? record.claimedAtMs) < VISIBLE_AFTER_MS) return false;
  if (record.phase !== 'terminating' || record.cloudState === 'shutting-down') return true;
  // EC2 shows an ended instance for about an hour: missing just after the call, it may still be running.
  return world.cloud.seenAtMs - record.phaseAtMs > world.limits.terminateMs;
}

/** Gives the instance up, for a reason of `LOSS` or EC2's own. */
export function lose(record: InstanceRecord, reason: string, detail?: string): Action {
  return move(record, 'lost', reason, detail === undefined ? reason : `${reason}: ${detail}`);
}

/** The move of the instance from its recorded phase. */
export function move(
  record: InstanceRecord,
  to: 'booting' | 'ready' | 'crawling' | 'banned' | 'uploading' | 'lost' | 'terminated',
  reason: string | null = null,
  detail: string | null = reason,
): Action {
  return { kind: 'move-instance', slot: record.slot, epoch: record.epoch, from: record.phase, to, reason, detail };
}
