/** What to do about one (slot, epoch): launch, watch, give up, replace, close, terminate. Pure. */
import { backoffMs } from '../../../shared/domain/backoff.ts';
import { epochKey } from '../../../shared/domain/epoch-id.ts';
import { isRunEnd } from '../../../shared/domain/states.ts';
import type { CloudInstance } from '../cloud/compute.ts';
import type { Action } from '../model/actions.ts';
import {
  canReassign,
  isBanOver,
  isBeingReplaced,
  isUnavailable,
  mustReturnProducts,
  openIncident,
} from './ban-policy.ts';
import { canAfford } from './launches/budget.ts';
import { hasMoreWork, type LaunchGate, type World } from '../model/world.ts';
import { launchGate, widestGate } from './launches/launch-gate.ts';
import { dryUntilMs, isClosedPool, nextPool } from './launches/pools.ts';
import { stateReasonText } from './launches/state-reason.ts';
import { drainAtMs, isDraining, isReleaseOver, uploadEndMs, powerOffAtMs } from '../model/run-deadlines.ts';
import { ownPaceMs } from './shares/workers.ts';
import { isAnythingHandedOut, isLasting } from './launches/rights.ts';
import { sharesAddressWith } from './nat-detection.ts';
import { isSlotResting, mayBeLaunched } from './site-cap.ts';
import { LOSS, isHopeless, isTooLateToBoot, isVacated, mayFill } from './slot-attempts.ts';
import { regionNamed, type RegionState } from '../model/regions.ts';
import type { InstanceRecord } from '../model/stores.ts';
import {
  ABANDONED,
  bannedAt,
  CRAWLS_AGAIN,
  hasAddressOf,
  OLD_KEYS,
  SLOWER,
  STALE,
  UNREGISTERED,
} from './decide-words.ts';
import { isRefused, wasNeverLaunched } from '../model/instance-state.ts';

/** Maximum unanswered calls for one claim; the wait doubles up to two heartbeats. Throttled calls do not count. */
const MAX_ATTEMPTS = 12;

/** Maximum age of a claim before its first RunInstances call. */
const STALE_CLAIM_MS = 600_000;

/** Actions for the slot's newest epoch, or with `old` for an epoch that only has to be closed. */
export function decideSlot(world: World, slot: number, record: InstanceRecord | undefined, old = false): Action[] {
  if (!record) return decideClaim(world, slot, undefined);
  const cloudInstance = regionOf(world, record).cloud?.find(record);
  const actions = decidePhase(world, record, cloudInstance);
  // `claimed` with an ID means that the second half of `adopt` failed: repeat it, whatever state EC2 shows.
  if (
    cloudInstance &&
    (cloudInstance.state !== record.cloudState || record.instanceId === null || record.phase === 'claimed')
  )
    actions.unshift({ kind: 'adopt', slot, epoch: record.epoch, instance: cloudInstance });
  if (!old && isVacated(record)) actions.push(...decideClaim(world, slot, record));
  return actions;
}

/** The next claim of an empty slot. `admitLaunches` checks the budget for all claims of a round together. */
function decideClaim(world: World, slot: number, record: InstanceRecord | undefined): Action[] {
  if (!hasMoreWork(world) || !mayFill(world, slot, record) || widestGate(world) === 'held') return [];
  if (isSlotResting(world, record)) return [];
  // Until EC2 shows the old machine as ended, its cost adds to its successor's: that is no lack of budget.
  if (record?.reason === LOSS.rotated && record.phase !== 'terminated' && !canAfford(world, slot)) return [];
  const next = nextPool(world, slot);
  return next.kind === 'pool' ? [{ kind: 'claim', slot, epoch: (record?.epoch ?? 0) + 1, pool: next.pool }] : [];
}

function decidePhase(world: World, record: InstanceRecord, cloudInstance: CloudInstance | undefined): Action[] {
  switch (record.phase) {
    case 'claimed':
      return decideClaimed(world, record, cloudInstance);
    case 'pending':
    case 'booting':
      return decideBooting(world, record, cloudInstance);
    case 'ready':
    case 'crawling':
    case 'banned':
    case 'uploading':
      return decideServing(world, record, cloudInstance);
    case 'done':
    case 'lost':
    case 'terminating':
    case 'terminated':
      return decideLeaving(world, record, cloudInstance);
  }
}

function decideClaimed(world: World, record: InstanceRecord, cloudInstance: CloudInstance | undefined): Action[] {
  if (cloudInstance) return [];
  return record.attempts === 0 ? decideFirstCall(world, record) : decideRetry(world, record);
}

function decideFirstCall(world: World, record: InstanceRecord): Action[] {
  if (isDraining(world)) return [lose(record, LOSS.notNeeded)];
  if (isHopeless(world)) return [lose(record, LOSS.refused)];
  if (!mayBeLaunched(world, record)) return [lose(record, LOSS.notNeeded, SLOWER)];
  const gate = launchGate(world, regionOf(world, record));
  // Other instances may have taken all the work while this claim was delayed.
  if (gate !== 'open' && (!hasMoreWork(world) || isTooLateToBoot(world))) return [lose(record, LOSS.notNeeded)];
  if (isStale(world, record, gate)) return [lose(record, LOSS.notNeeded, STALE)];
  if (isSignedByOldKeys(world, record)) return [lose(record, LOSS.notNeeded, OLD_KEYS)];
  // Nothing was sent: another region may take its place.
  if (gate === 'held')
    return world.pools && nextPool(world, record.slot).kind === 'pool' ? [lose(record, LOSS.poolDry)] : [];
  // EC2 has refused another slot in this pool since: go to the next pool without a call.
  if (isClosedPool(world, record.request)) return [lose(record, LOSS.poolDry)];
  const dryMs = dryUntilMs(world, record.request);
  if (world.pools && dryMs !== null && dryMs > world.nowMs) return [lose(record, LOSS.poolDry)];
  return [launchOf(record)];
}

/**
 * The bundle URL in its user data expires with the credentials that signed it, for a role after about an hour. Its
 * token is unused, so another claim may replace it. A claim that this loop has queued is on its way to EC2.
 */
function isStale(world: World, { claimedAtMs }: InstanceRecord, gate: LaunchGate): boolean {
  const waits = gate !== 'open' || claimedAtMs < world.loopStartedAtMs;
  return waits && world.nowMs - claimedAtMs > STALE_CLAIM_MS;
}

/** AWS has refused the keys since the claim was written, so its bundle URL no longer works. Its token is unused. */
function isSignedByOldKeys(world: World, record: InstanceRecord): boolean {
  const { launch } = regionOf(world, record).rights;
  return launch?.cause === 'credentials' && record.claimedAtMs <= launch.lastMs;
}

function decideRetry(world: World, record: InstanceRecord): Action[] {
  const { attempts, answer } = record;
  const calledMs = record.launchedAtMs ?? record.claimedAtMs;
  const refused = isRefused(record);
  if (refused && wasNeverLaunched(record)) return [lose(record, LOSS.refused)];
  if (isReleaseOver(world)) return [lose(record, LOSS.notNeeded)];
  const { cloud, isOut } = regionOf(world, record);
  if (isOut) return [lose(record, LOSS.unanswered)];
  // After a call that may have launched, look up the tags first: only an answer from after the call is conclusive.
  if (cloud === null || cloud.seenAtMs <= calledMs) return [];
  // This token is not used again. Either the tags turn up, or the next epoch gets a token of its own.
  if (refused || (answer?.kind === 'unknown' && answer.tokenUsed === true))
    return cloud.seenAtMs - calledMs > VISIBLE_AFTER_MS ? [lose(record, refused ? LOSS.refused : LOSS.tokenUsed)] : [];
  const throttled = answer?.kind === 'refused';
  if (isDraining(world) || (throttled && (!hasMoreWork(world) || isHopeless(world))))
    return [lose(record, LOSS.notNeeded)];
  if (throttled ? isTooLateToBoot(world) : attempts >= MAX_ATTEMPTS) return [lose(record, LOSS.unanswered)];
  return world.nowMs >= calledMs + retryMs(world, record) ? [launchOf(record)] : [];
}

/** Doubles from half a second to two heartbeats; 50 to 100 % of that, by slot, so that slots do not call in step. */
function retryMs(world: World, { slot, attempts }: InstanceRecord): number {
  const jitter = ((slot * 7_919 + attempts * 104_729) % 1_000) / 1_000;
  return backoffMs(attempts - 1, { firstMs: 500, maxMs: world.limits.heartbeatMs * 2 }, jitter);
}

const launchOf = ({ slot, epoch }: InstanceRecord): Action => ({ kind: 'launch', slot, epoch });

function decideBooting(world: World, record: InstanceRecord, cloudInstance: CloudInstance | undefined): Action[] {
  const gone = goneReason(world, record, cloudInstance);
  if (gone) return [lose(record, gone, wordsOf(cloudInstance))];
  if (isDraining(world)) return [lose(record, LOSS.notNeeded)];
  const shared = sharedDetail(world, record);
  if (shared) return [lose(record, LOSS.sharedAddress, shared)];
  // No hello could arrive while no main server was listening.
  const waitingSinceMs = Math.max(record.launchedAtMs ?? record.claimedAtMs, world.loopStartedAtMs);
  if (world.nowMs - waitingSinceMs > world.limits.bootMs) return [lose(record, LOSS.noHello)];
  if (record.phase === 'pending' && cloudInstance?.state === 'running') return [move(record, 'booting')];
  return [];
}

/** EC2's reason for the end of the instance, for the event. */
function wordsOf(cloudInstance: CloudInstance | undefined): string | undefined {
  return cloudInstance?.stateReason ? stateReasonText(cloudInstance.stateReason) : undefined;
}

function decideServing(world: World, record: InstanceRecord, cloudInstance: CloudInstance | undefined): Action[] {
  const gone = goneReason(world, record, cloudInstance);
  if (gone) return [lose(record, gone, wordsOf(cloudInstance))];
  const shared = sharedDetail(world, record);
  if (shared) return [lose(record, LOSS.sharedAddress, shared)];
  if (cannotBeRegistered(world, record)) return [lose(record, LOSS.notNeeded, UNREGISTERED)];
  if (isNeverHealthy(world, record)) return [lose(record, LOSS.neverHealthy)];
  // A part in the bucket is a sign of life too, when callbacks do not get through.
  const heardMs = Math.max(
    heardByMs(world, record.lastHeartbeatAtMs ?? record.phaseAtMs),
    world.loopStartedAtMs,
    heardInBucketMs(world, record),
  );
  if (isSilent(world, record, world.nowMs - heardMs)) return [lose(record, LOSS.silent)];
  const drainingSinceMs = drainedSinceMs(world, record);
  if (drainingSinceMs !== null && world.nowMs > uploadEndMs(world, drainingSinceMs))
    return [lose(record, LOSS.overdue)];
  const actions: Action[] = decideIncident(world, record);
  if (record.manifestKey !== null) actions.push({ kind: 'confirm', slot: record.slot, epoch: record.epoch });
  if (isUnavailable(record)) return actions;
  const { slot, epoch, instanceId } = record;
  const { name: region, balancer } = regionOf(world, record);
  if (!record.registered && instanceId !== null && balancer !== null && cloudInstance?.state === 'running')
    actions.push({ kind: 'register', slot, epoch, instanceId, region, balancer });
  if (record.phase === 'ready' && (record.progress?.assigned ?? 0) > 0) actions.push(move(record, 'crawling'));
  else if (isThrough(record)) actions.push(move(record, 'uploading'));
  return actions;
}

/** Others work on its share, and the right has been missing for long. Before the first product the run ends instead. */
const cannotBeRegistered = (world: World, record: InstanceRecord): boolean =>
  record.phase === 'ready' &&
  !record.registered &&
  isLasting(regionOf(world, record).rights.register, world.run) &&
  isAnythingHandedOut(world);

/**
 * Silent for too long while EC2 shows it running. With passing health checks it is slow, not dead, for twice as long.
 */
function isSilent(world: World, record: InstanceRecord, silentMs: number): boolean {
  const { limits, targets } = world;
  const { instanceId } = record;
  if (silentMs <= limits.lostMs) return false;
  // Where AWS does not answer, the last health that it showed is worth nothing.
  const isHealthy = instanceId !== null && targets.get(instanceId) === 'healthy' && !regionOf(world, record).isOut;
  if (isHealthy && isOneOfAllSilent(world) && isBusy(world, record)) return false;
  return !isHealthy || silentMs > 2 * limits.lostMs;
}

/** Several instances, and none is heard: they do not fail at the same time, their way to this server does. */
function isOneOfAllSilent({ nowMs, limits, fleet, loopStartedAtMs }: World): boolean {
  return fleet.serving.length > 1 && nowMs - Math.max(fleet.lastHeardMs, loopStartedAtMs) > limits.lostMs;
}

/** It cannot have crawled all that it last reported; then its parts show whether it is at work. */
function isBusy({ nowMs, run, limits }: World, { progress, lastHeartbeatAtMs }: InstanceRecord): boolean {
  const leftMs = (progress?.pending ?? 0) * ownPaceMs(run, progress);
  return nowMs < (lastHeartbeatAtMs ?? 0) + leftMs + limits.partMs;
}

/** A time in the future, from before a step back, proves nothing; up to a heartbeat ahead is drift, and means now. */
const heardByMs = ({ nowMs, limits }: World, atMs: number): number =>
  atMs <= nowMs + limits.heartbeatMs ? Math.min(atMs, nowMs) : -Infinity;

/** True for a sealed instance with nothing left to crawl. */
const isThrough = (record: InstanceRecord): boolean =>
  record.phase !== 'uploading' && record.sealed && record.progress?.pending === 0;

/** Since when it has orders to upload and return its remaining products; null when it has none. */
function drainedSinceMs(world: World, record: InstanceRecord): number | null {
  if (isDraining(world)) return Math.min(world.requestSeenAtMs ?? Infinity, drainAtMs(world.run));
  if (record.rotateAtMs !== null) return record.rotateAtMs;
  return isBeingReplaced(world, record) || mustReturnProducts(world, record) ? (record.incident?.atMs ?? null) : null;
}

/** The moves of an instance whose address is or was banned. */
function decideIncident(world: World, record: InstanceRecord): Action[] {
  const incident = openIncident(record);
  if (incident?.verdict === 'banned' && (record.phase === 'ready' || record.phase === 'crawling'))
    return [move(record, 'banned', null, bannedAt(incident.rule, record.address))];
  if (record.phase !== 'banned') return isUnavailable(record) && isThrough(record) ? [move(record, 'uploading')] : [];
  if (isThrough(record)) return [move(record, 'uploading')];
  if (canReassign(world, record)) return [{ kind: 'reassign', slot: record.slot, epoch: record.epoch }];
  if (!isBanOver(world, record)) return [];
  const assigned = record.progress?.assigned ?? 0;
  return [move(record, assigned > 0 ? 'crawling' : 'ready', null, CRAWLS_AGAIN)];
}

/** Said hello long ago but got no product: the balancer has always found it unhealthy, and other targets healthy. */
function isNeverHealthy(world: World, record: InstanceRecord): boolean {
  if (record.phase !== 'ready' || !record.registered || record.instanceId === null || isUnavailable(record))
    return false;
  if (world.onceHealthy.has(record.instanceId)) return false;
  const health = world.targets.get(record.instanceId);
  if (health !== 'unhealthy' && health !== 'unused') return false;
  // Until other instances have work, the balancer itself may not be ready.
  const othersMs = world.fleet.all
    .filter((r) => r.phase === 'crawling' && r.instanceId !== null && world.targets.get(r.instanceId) === 'healthy')
    .map((r) => r.phaseAtMs);
  const sinceMs = Math.max(record.phaseAtMs, world.loopStartedAtMs, Math.min(Infinity, ...othersMs));
  return world.nowMs - sinceMs > world.limits.healthyMs;
}

/** The detail for an instance that shares the address of another; null for all others. */
function sharedDetail(world: World, record: InstanceRecord): string | null {
  const other = sharesAddressWith(world.fleet, record);
  return other && hasAddressOf(other);
}

/** EC2 may not show an instance for a while after it was launched (AWS: eventual consistency). */
const VISIBLE_AFTER_MS = 60_000;

/** Closes its epoch, terminates its machine, and records when EC2 shows it as ended. */
function decideLeaving(world: World, record: InstanceRecord, cloudInstance: CloudInstance | undefined): Action[] {
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
    else if (isAbandoned(world, record)) actions.push(move(record, 'terminated', null, ABANDONED));
    else if (isToldInVain(world, record, cloudInstance))
      actions.push({ kind: 'terminate', ...at, instanceId: record.instanceId });
    return actions;
  }
  // A machine that has ended on its own needs no terminate call, which might be denied and then fail on every try.
  if (cloudInstance?.state === 'terminated') actions.push(move(record, 'terminated'));
  else actions.push({ kind: 'terminate', ...at, instanceId: record.instanceId });
  return actions;
}

const isEnding = ({ state }: CloudInstance): boolean => state === 'shutting-down' || state === 'terminated';

/** EC2 does not show it long after it was given up; or, without an answer of EC2, it would have powered itself off. */
function isNeverSeen(world: World, record: InstanceRecord): boolean {
  if (world.nowMs > powerOffAtMs(world.run)) return true;
  const { cloud } = regionOf(world, record);
  return cloud !== null && cloud.seenAtMs - record.phaseAtMs > VISIBLE_AFTER_MS;
}

/** The run is over, and AWS does not answer in its region: an alarm has said that it may be left there. */
const isAbandoned = (world: World, record: InstanceRecord): boolean =>
  isRunEnd(world.run.phase) &&
  regionOf(world, record).isOut &&
  world.nowMs - record.phaseAtMs > world.limits.terminateMs;

/** EC2 shows it unchanged after the terminate call; or does not show it, and `terminateMs` have passed. */
function isToldInVain(world: World, record: InstanceRecord, cloudInstance: CloudInstance | undefined): boolean {
  if (cloudInstance && isEnding(cloudInstance)) return false;
  const { cloud } = regionOf(world, record);
  if (cloudInstance && cloud !== null && cloud.seenAtMs > record.phaseAtMs) return true;
  return world.nowMs - record.phaseAtMs > world.limits.terminateMs;
}

/** The loss reason when EC2 shows that the machine has ended or is ending without our call. */
function goneReason(world: World, record: InstanceRecord, cloudInstance: CloudInstance | undefined): string | null {
  if (cloudInstance)
    return cloudInstance.state === 'pending' || cloudInstance.state === 'running' ? null : `ec2-${cloudInstance.state}`;
  return isGoneFromEc2(world, record, cloudInstance) ? 'ec2-gone' : null;
}

function isGoneFromEc2(world: World, record: InstanceRecord, cloudInstance: CloudInstance | undefined): boolean {
  if (cloudInstance) return cloudInstance.state === 'terminated';
  const { cloud } = regionOf(world, record);
  if (cloud === null || record.instanceId === null) return false;
  // A poll in flight during the launch may not have seen it yet: only one from after the last move counts.
  if (cloud.seenAtMs <= record.phaseAtMs) return false;
  // Absence counts only when it was seen after the window in which a young instance may be invisible.
  if (cloud.seenAtMs - (record.launchedAtMs ?? record.claimedAtMs) < VISIBLE_AFTER_MS) return false;
  if (record.phase !== 'terminating' || record.cloudState === 'shutting-down') return true;
  // EC2 shows an ended instance for about an hour: missing just after the call, it may still be running.
  return cloud.seenAtMs - record.phaseAtMs > world.limits.terminateMs;
}

/** Gives the instance up, for a reason of `LOSS` or EC2's own. */
function lose(record: InstanceRecord, reason: string, detail?: string): Action {
  return move(record, 'lost', reason, detail === undefined ? reason : `${reason}: ${detail}`);
}

/** The move of the instance from its recorded phase. */
function move(
  record: InstanceRecord,
  to: 'booting' | 'ready' | 'crawling' | 'banned' | 'uploading' | 'lost' | 'terminated',
  reason: string | null = null,
  detail: string | null = reason,
): Action {
  return { kind: 'move-instance', slot: record.slot, epoch: record.epoch, from: record.phase, to, reason, detail };
}

const regionOf = ({ regions }: World, { request }: InstanceRecord): RegionState => regionNamed(regions, request.region);

/**
 * Until when a part in the bucket shows that an instance is at work, although its callbacks do not get through; 0 when
 * none does. Only a part written well after the last heartbeat counts: an earlier one may be from just before the
 * instance died.
 */
function heardInBucketMs(
  { uploads, limits }: Pick<World, 'uploads' | 'limits'>,
  record: Pick<InstanceRecord, 'slot' | 'epoch' | 'lastHeartbeatAtMs' | 'phaseAtMs'>,
): number {
  const uploadedMs = (uploads.size > 0 && uploads.get(epochKey(record))) || 0;
  const spokenMs = record.lastHeartbeatAtMs ?? record.phaseAtMs;
  // The next part is due one `partMs` later.
  return uploadedMs > spokenMs + 2 * limits.heartbeatMs ? uploadedMs + limits.partMs : 0;
}
