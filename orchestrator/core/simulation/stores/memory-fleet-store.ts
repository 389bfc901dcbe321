/** FleetStore in memory: the contract of core/db/fleet-store.ts without SQL. */
import { type EpochId, epochKey } from '../../../../shared/domain/epoch-id.ts';
import { AppError } from '../../../../shared/domain/errors.ts';
import { canMoveInstance, type InstancePhase, isOver, isServing } from '../../../../shared/domain/states.ts';
import type { Hello, Progress } from '../../../../shared/wire/callbacks.ts';
import type {
  FleetStore,
  HelloResult,
  InstancePatch,
  InstanceRecord,
  MoveReason,
  NewClaim,
  IncidentRecord,
  IncidentReport,
  AddressIncident,
} from '../../model/stores.ts';
import { BoundMemory, type MemoryRun, type MemoryIncident } from './memory-database.ts';

export class MemoryFleetStore extends BoundMemory implements FleetStore {
  claim(claim: NewClaim): Promise<boolean> {
    return this.write('fleet.claim', (run) => {
      if (run.instances.has(epochKey(claim))) return false;
      const record = claimedRecord(claim, claim.claimedAtMs ?? this.now());
      put(run, record);
      addMove(run, record, null);
      return true;
    });
  }

  instances(): Promise<InstanceRecord[]> {
    return this.read('fleet.instances', (run) => {
      run.ordered ??= [...run.instances.values()].sort((a, b) => a.slot - b.slot || a.epoch - b.epoch);
      return [...run.ordered];
    });
  }

  get(at: EpochId): Promise<InstanceRecord | null> {
    return this.read('fleet.get', (run) => recordOf(run, at) ?? null);
  }

  patch(at: EpochId, patch: InstancePatch): Promise<void> {
    if (Object.keys(patch).length === 0) return Promise.resolve();
    return this.write('fleet.patch', (run) => {
      const record = recordOf(run, at);
      if (!record)
        throw new AppError('internal', `run ${run.record.id} has no claim for slot ${at.slot} epoch ${at.epoch}`);
      put(run, { ...record, ...patch });
    });
  }

  noteManifest(at: EpochId, manifest: { manifestKey: string; manifestSha256: string | null }): Promise<boolean> {
    return this.write('fleet.noteManifest', (run) => {
      const record = recordOf(run, at);
      if (!record || !isServing(record.phase) || record.manifestKey !== null) return false;
      const { manifestKey, manifestSha256 } = manifest;
      put(run, { ...record, manifestKey, manifestSha256 });
      return true;
    });
  }

  async move(at: EpochId, from: InstancePhase, to: InstancePhase, why: MoveReason = {}): Promise<boolean> {
    if (!canMoveInstance(from, to)) throw new AppError('internal', `an instance cannot move from ${from} to ${to}`);
    return this.write('fleet.move', (run) => {
      const record = recordOf(run, at);
      if (record?.phase !== from) return false;
      const nowMs = this.now();
      const reason = why.reason ?? record.reason;
      const manifest = to === 'lost' ? { manifestKey: null, manifestSha256: null } : {};
      const ended = to === 'terminated' ? { terminatedAtMs: record.terminatedAtMs ?? nowMs } : {};
      const moved = { ...record, phase: to, phaseAtMs: nowMs, reason, ...manifest, ...ended };
      put(run, moved);
      addMove(run, moved, from, why.detail ?? why.reason);
      return true;
    });
  }

  hello(at: EpochId, hello: Hello): Promise<HelloResult> {
    return this.write('fleet.hello', (run) => {
      const record = recordOf(run, at);
      if (!record || record.instanceId === null || record.phase === 'claimed') return 'unknown';
      if (record.instanceId !== hello.instanceId) return 'other-instance';
      if (record.publicKey !== null && record.publicKey !== hello.publicKey) return 'other-key';
      const { publicKey, address, secretsKey = null } = hello;
      if (record.publicKey !== null) {
        if (!isServing(record.phase)) return 'too-late';
        if (secretsKey !== null) put(run, { ...record, secretsKey });
        return 'repeated';
      }
      if (record.phase !== 'pending' && record.phase !== 'booting') return 'too-late';
      const ready = { ...record, phase: 'ready' as const, phaseAtMs: this.now(), publicKey, secretsKey, address };
      put(run, ready);
      addMove(run, ready, record.phase);
      return 'accepted';
    });
  }

  heartbeat(at: EpochId, beat: { counter: number; progress: Progress; problem: string | null }): Promise<boolean> {
    return this.write('fleet.heartbeat', (run) => {
      const record = recordOf(run, at);
      if (!record || record.counter >= beat.counter || isOver(record.phase)) return false;
      const { counter, progress, problem } = beat;
      put(run, { ...record, counter, progress, problem, lastHeartbeatAtMs: this.now() });
      return true;
    });
  }

  recordIncident({ slot, epoch }: EpochId, incident: IncidentReport | null): Promise<void> {
    return this.write('fleet.recordIncident', (run) => {
      const last = lastIncident(run, { slot, epoch });
      const open = last?.overAtMs === null ? last : undefined;
      if (incident === null) {
        if (open) open.overAtMs = this.now();
      } else {
        const { verdict, untilMs, evidence } = incident;
        const values = { verdict, untilMs, rule: evidence.rule, evidence };
        const added = { slot, epoch, atMs: incident.atMs, returnedAtMs: null, overAtMs: null };
        if (open) Object.assign(open, values);
        else run.incidents.push({ ...added, ...values });
      }
      copyIncident(run, { slot, epoch });
    });
  }

  recordReturned(at: EpochId): Promise<void> {
    return this.write('fleet.recordReturned', (run) => {
      const last = lastIncident(run, at);
      if (last) last.returnedAtMs ??= this.now();
      copyIncident(run, at);
    });
  }

  incidents(): Promise<IncidentRecord[]> {
    return this.read('fleet.incidents', (run) =>
      run.incidents
        .map((t) => ({ ...t, address: recordOf(run, t)?.address ?? null }))
        .sort((a, b) => a.atMs - b.atMs || a.slot - b.slot || a.epoch - b.epoch),
    );
  }
}

const recordOf = (run: MemoryRun, at: EpochId): InstanceRecord | undefined => run.instances.get(epochKey(at));

function put(run: MemoryRun, record: InstanceRecord): void {
  run.instances.set(epochKey(record), record);
  run.ordered = null;
}

function addMove(
  run: MemoryRun,
  { phaseAtMs, slot, epoch, phase }: InstanceRecord,
  from: InstancePhase | null,
  detail?: string | null,
): void {
  run.events.push({ atMs: phaseAtMs, kind: 'instance', slot, epoch, from, to: phase, detail: detail ?? null });
}

const lastIncident = (run: MemoryRun, { slot, epoch }: EpochId): MemoryIncident | undefined =>
  run.incidents.findLast((t) => t.slot === slot && t.epoch === epoch);

/** Copies the last incident into the instance's own record. */
function copyIncident(run: MemoryRun, at: EpochId): void {
  const record = recordOf(run, at);
  const last = lastIncident(run, at);
  if (!record || !last) return;
  const { verdict, rule, atMs, untilMs, returnedAtMs, overAtMs } = last;
  const incident: AddressIncident = { verdict, rule, atMs, untilMs, returnedAtMs, overAtMs };
  put(run, { ...record, incident });
}

function claimedRecord({ slot, epoch, request, token }: NewClaim, nowMs: number): InstanceRecord {
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
    secretsKey: null,
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
