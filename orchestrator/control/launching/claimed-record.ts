/** The record of an instance of which only the claim has been written. */
import type { EpochId } from '../../../shared/domain/epoch-id.ts';
import type { LaunchRequest } from '../../cloud/compute.ts';
import type { InstanceRecord } from '../model/stores.ts';

export function claimedRecord(
  { slot, epoch, request, token }: EpochId & { request: LaunchRequest; token: string },
  nowMs: number,
): InstanceRecord {
  return {
    slot,
    epoch,
    phase: 'claimed',
    phaseAtMs: nowMs,
    reason: null,
    instanceId: null,
    address: null,
    zone: null,
    request,
    token,
    attempts: 0,
    answer: null,
    lastError: null,
    claimedAtMs: nowMs,
    launchedAtMs: null,
    terminatedAtMs: null,
    cloudState: null,
    stateReason: null,
    registered: false,
    publicKey: null,
    counter: 0,
    lastHeartbeatAtMs: null,
    progress: null,
    problem: null,
    sealed: false,
    rotateAtMs: null,
    manifestKey: null,
    manifestSha256: null,
    consoleOutput: null,
    incident: null,
  };
}
