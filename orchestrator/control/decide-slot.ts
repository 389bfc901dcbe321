/** What to do about one (slot, epoch): launch, watch, give up, replace, close, terminate. Pure. */
import type { CloudInstance } from '../cloud/compute.ts';
import { TAG } from '../cloud/compute.ts';
import type { Action } from './actions.ts';
import { drainAtMs, isDraining } from './schedule-of-run.ts';
import type { InstanceRecord } from './stores.ts';
import type { World } from './world.ts';
import { isClosed, isGivenUp } from './world.ts';

/** A slot is filled at most this often with an instance that EC2 really gave: the first and two replacements. */
const MAX_LAUNCHED = 3;
/** An instance that never said hello is replaced once: a second one would fail the same way. */
const MAX_SILENT_BOOTS = 2;
/** Refused launches per slot: each goes to the next type or zone, twice around a usual list. */
const MAX_REFUSED = 8;
/** Unanswered or throttled calls for one claim; the wait doubles up to a heartbeat's length. */
const MAX_ATTEMPTS = 12;
/** EC2 may not show an instance for a while after it was launched (AWS: eventual consistency). */
const VISIBLE_AFTER_MS = 60_000;

/** Reasons that stand in an instance's row; `explain` and the report show them. */
export const LOSS = {
  noHello: 'no-hello',
  silent: 'heartbeat-lost',
  overdue: 'overdue',
  refused: 'launch-refused',
  unanswered: 'launch-unanswered',
  notNeeded: 'not-needed',
} as const;

/** Actions for the slot's newest epoch, or with `old` for an epoch that is only to be wound up. */
export function decideSlot(world: World, slot: number, record: InstanceRecord | undefined, old = false): Action[] {
  if (!record) return isDraining(world) || world.work.waiting === 0 ? [] : [{ kind: 'claim', slot, epoch: 1, pool: 0 }];
  const at = { slot, epoch: record.epoch };
  const shown = findShown(world, record);
  const actions: Action[] = [];
  if (shown && (shown.state !== record.cloudState || record.instanceId === null))
    actions.push({ kind: 'sight', ...at, instance: shown });
  actions.push(...decidePhase(world, record, shown));
  if (!old && isClosed(record) && world.work.waiting > 0 && canReplace(world, slot, record)) {
    actions.push({ kind: 'claim', slot, epoch: record.epoch + 1, pool: refusals(world, slot) });
  }
  return actions;
}

function findShown(world: World, record: InstanceRecord): CloudInstance | undefined {
  return world.cloud?.instances.find((i) =>
    record.instanceId !== null
      ? i.id === record.instanceId
      : i.tags[TAG.slot] === String(record.slot) && i.tags[TAG.epoch] === String(record.epoch),
  );
}

function decidePhase(world: World, record: InstanceRecord, shown: CloudInstance | undefined): Action[] {
  switch (record.phase) {
    case 'claimed':
      return decideClaimed(world, record, shown);
    case 'pending':
    case 'booting':
      return decideBooting(world, record, shown);
    case 'ready':
    case 'crawling':
    case 'uploading':
      return decideServing(world, record, shown);
    case 'done':
    case 'lost':
    case 'banned':
    case 'terminating':
    case 'terminated':
      return decideLeaving(world, record, shown);
  }
}

function decideClaimed(world: World, record: InstanceRecord, shown: CloudInstance | undefined): Action[] {
  if (shown) return [];
  if (isDraining(world) && record.attempts === 0) return [lose(record, LOSS.notNeeded)];
  if (record.lastError?.startsWith('refused')) return [lose(record, LOSS.refused)];
  if (record.attempts >= MAX_ATTEMPTS) return [lose(record, LOSS.unanswered)];
  const waitMs = record.attempts === 0 ? 0 : Math.min(world.limits.heartbeatMs * 2, 500 * 2 ** (record.attempts - 1));
  // After an unanswered call the tag look-up comes first: only an answer from after the call shows what it did.
  const looked =
    record.attempts === 0 ||
    (world.cloud !== null && world.cloud.seenAtMs > (record.launchedAtMs ?? record.claimedAtMs));
  return looked && world.nowMs >= (record.launchedAtMs ?? record.claimedAtMs) + waitMs
    ? [{ kind: 'launch', slot: record.slot, epoch: record.epoch }]
    : [];
}

function decideBooting(world: World, record: InstanceRecord, shown: CloudInstance | undefined): Action[] {
  const gone = goneReason(world, record, shown);
  if (gone) return [lose(record, gone)];
  if (isDraining(world)) return [lose(record, LOSS.notNeeded)];
  // While no main server listened, nobody could say hello to it.
  const waitingSinceMs = Math.max(record.launchedAtMs ?? record.claimedAtMs, world.loopStartedAtMs);
  if (world.nowMs - waitingSinceMs > world.limits.bootMs) return [lose(record, LOSS.noHello)];
  if (record.phase === 'pending' && shown?.state === 'running') return [move(record, 'booting')];
  return [];
}

function decideServing(world: World, record: InstanceRecord, shown: CloudInstance | undefined): Action[] {
  const gone = goneReason(world, record, shown);
  if (gone) return [lose(record, gone)];
  const heardMs = Math.max(record.lastHeartbeatAtMs ?? record.phaseAtMs, world.loopStartedAtMs);
  if (world.nowMs - heardMs > world.limits.lostMs) return [lose(record, LOSS.silent)];
  const stopAtMs = world.run.request === null ? drainAtMs(world.run) : record.phaseAtMs;
  if (
    isDraining(world) &&
    world.nowMs > Math.max(stopAtMs, world.loopStartedAtMs) + world.limits.uploadMs + world.limits.lostMs
  ) {
    return [lose(record, LOSS.overdue)];
  }
  const actions: Action[] = [];
  if (!record.registered && record.instanceId !== null && world.run.balancer !== null && shown?.state === 'running') {
    actions.push({ kind: 'register', slot: record.slot, epoch: record.epoch, instanceId: record.instanceId });
  }
  if (record.phase === 'ready' && (record.progress?.assigned ?? 0) > 0) actions.push(move(record, 'crawling'));
  if (record.phase !== 'uploading' && record.sealed && record.progress?.pending === 0)
    actions.push(move(record, 'uploading'));
  if (record.manifestKey !== null) actions.push({ kind: 'confirm', slot: record.slot, epoch: record.epoch });
  return actions;
}

function decideLeaving(world: World, record: InstanceRecord, shown: CloudInstance | undefined): Action[] {
  const at = { slot: record.slot, epoch: record.epoch };
  const actions: Action[] = [];
  if (record.manifestKey === null) actions.push({ kind: 'close', ...at });
  if (record.phase === 'terminated') return actions;
  if (record.instanceId === null) {
    // Never launched, or launched without an answer: it may still turn up under its tags.
    const answered = record.attempts === 0 || record.lastError?.startsWith('refused') === true;
    if (!shown && (answered || world.nowMs - record.phaseAtMs > VISIBLE_AFTER_MS))
      actions.push(move(record, 'terminated'));
    return actions;
  }
  if (record.phase === 'terminating') {
    if (isGoneFromEc2(world, record, shown)) actions.push(move(record, 'terminated'));
    else if (shown?.state !== 'shutting-down' && world.nowMs - record.phaseAtMs > world.limits.terminateMs) {
      actions.push({ kind: 'terminate', ...at, instanceId: record.instanceId });
    }
    return actions;
  }
  actions.push({ kind: 'terminate', ...at, instanceId: record.instanceId });
  return actions;
}

/** EC2 shows that the machine has ended or is ending, without our asking. */
function goneReason(world: World, record: InstanceRecord, shown: CloudInstance | undefined): string | null {
  if (shown) return shown.state === 'pending' || shown.state === 'running' ? null : `ec2-${shown.state}`;
  return isGoneFromEc2(world, record, shown) ? 'ec2-gone' : null;
}

function isGoneFromEc2(world: World, record: InstanceRecord, shown: CloudInstance | undefined): boolean {
  if (shown) return shown.state === 'terminated';
  if (world.cloud === null || record.instanceId === null) return false;
  const sinceMs = record.phase === 'terminating' ? record.phaseAtMs : (record.launchedAtMs ?? record.claimedAtMs);
  // Absence counts only when it was seen after the window in which a young instance may be invisible.
  const young = world.cloud.seenAtMs - (record.launchedAtMs ?? record.claimedAtMs) < VISIBLE_AFTER_MS;
  return !(young && record.cloudState === null) && world.cloud.seenAtMs > sinceMs;
}

/** True when a given-up slot may be filled again: time is left, and it has not failed too often. */
export function canReplace(
  world: Pick<World, 'run' | 'instances' | 'nowMs' | 'limits'>,
  slot: number,
  record: InstanceRecord,
): boolean {
  if (!isGivenUp(record) || record.reason === null || isDraining(world)) return false;
  if (isHopeless(world)) return false;
  if (world.nowMs + world.limits.bootMs >= drainAtMs(world.run)) return false;
  const epochs = world.instances.filter((r) => r.slot === slot);
  const launched = epochs.filter((r) => r.instanceId !== null);
  if (launched.length >= MAX_LAUNCHED) return false;
  if (launched.filter((r) => r.reason === LOSS.noHello).length >= MAX_SILENT_BOOTS) return false;
  return epochs.length - launched.length < MAX_REFUSED;
}

/** EC2 has said something that no further try will change: no right, a wrong parameter, no quota. */
export function isHopeless(world: Pick<World, 'instances'>): boolean {
  return world.instances.some((r) => /^refused (denied|invalid|quota)/.test(r.lastError ?? ''));
}

function refusals(world: World, slot: number): number {
  return world.instances.filter((r) => r.slot === slot && r.instanceId === null).length;
}

function lose(record: InstanceRecord, reason: string): Action {
  return move(record, 'lost', reason);
}

function move(
  record: InstanceRecord,
  to: 'booting' | 'crawling' | 'uploading' | 'lost' | 'terminated',
  reason: string | null = null,
): Action {
  return { kind: 'move-instance', slot: record.slot, epoch: record.epoch, from: record.phase, to, reason };
}
