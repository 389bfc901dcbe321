/** FleetStore in memory: the contract of db/fleet-store.ts without SQL. */
import type { EpochId } from '../../../shared/domain/epoch-id.ts';
import { AppError } from '../../../shared/domain/errors.ts';
import type { InstancePhase } from '../../../shared/domain/states.ts';
import { canMoveInstance, isServing } from '../../../shared/domain/states.ts';
import type { Hello, Progress } from '../../../shared/wire/callbacks.ts';
import type { LaunchRequest } from '../../cloud/compute.ts';
import type {
  FleetStore,
  HelloResult,
  InstancePatch,
  InstanceRecord,
  IncidentRecord,
  IncidentReport,
  AddressIncident,
} from '../../control/model/stores.ts';
import type { MemoryDatabase, MemoryRun, MemoryIncident } from './memory-database.ts';
import { epochKey } from '../../../shared/domain/epoch-id.ts';

export class MemoryFleetStore implements FleetStore {
  readonly #db: MemoryDatabase;

  constructor(db: MemoryDatabase) {
    this.#db = db;
  }

  claim(
    runId: string,
    claim: EpochId & { request: LaunchRequest; token: string },
    fence: number,
    nowMs: number,
  ): Promise<boolean> {
    return this.#db.write('fleet.claim', fence, () => {
      const run = this.#db.run(runId);
      if (run.instances.has(epochKey(claim))) return false;
      put(run, claimedRecord(claim, nowMs));
      addMove(run, nowMs, claim, null, 'claimed', null);
      return true;
    });
  }

  instances(runId: string): Promise<InstanceRecord[]> {
    return this.#db.call('fleet.instances', () => {
      const run = this.#db.runs.get(runId);
      if (!run) return [];
      run.ordered ??= [...run.instances.values()].sort((a, b) => a.slot - b.slot || a.epoch - b.epoch);
      return [...run.ordered];
    });
  }

  get(runId: string, slot: number, epoch: number): Promise<InstanceRecord | null> {
    return this.#db.call('fleet.get', () => this.#find(runId, slot, epoch)?.record ?? null);
  }

  patch(runId: string, slot: number, epoch: number, patch: InstancePatch, fence: number): Promise<void> {
    if (Object.keys(patch).length === 0) return Promise.resolve();
    return this.#db.write('fleet.patch', fence, () => {
      const found = this.#find(runId, slot, epoch);
      if (!found) throw new AppError('internal', `run ${runId} has no claim for slot ${slot} epoch ${epoch}`);
      put(found.run, { ...found.record, ...patch });
    });
  }

  noteManifest(
    runId: string,
    slot: number,
    epoch: number,
    manifest: { manifestKey: string; manifestSha256: string | null },
    fence: number,
  ): Promise<boolean> {
    return this.#db.write('fleet.noteManifest', fence, () => {
      const found = this.#find(runId, slot, epoch);
      if (!found || !isServing(found.record.phase) || found.record.manifestKey !== null) return false;
      const { manifestKey, manifestSha256 } = manifest;
      put(found.run, { ...found.record, manifestKey, manifestSha256 });
      return true;
    });
  }

  async move(
    runId: string,
    slot: number,
    epoch: number,
    from: InstancePhase,
    to: InstancePhase,
    fence: number,
    nowMs: number,
    reason?: string,
    detail = reason,
  ): Promise<boolean> {
    if (!canMoveInstance(from, to)) throw new AppError('internal', `an instance cannot move from ${from} to ${to}`);
    return this.#db.write('fleet.move', fence, () => {
      const found = this.#find(runId, slot, epoch);
      if (found?.record.phase !== from) return false;
      const manifest = to === 'lost' ? { manifestKey: null, manifestSha256: null } : {};
      const given = reason === undefined ? {} : { reason };
      const ended = to === 'terminated' ? { terminatedAtMs: found.record.terminatedAtMs ?? nowMs } : {};
      put(found.run, { ...found.record, phase: to, phaseAtMs: nowMs, ...given, ...manifest, ...ended });
      addMove(found.run, nowMs, { slot, epoch }, from, to, detail ?? null);
      return true;
    });
  }

  hello(runId: string, slot: number, epoch: number, hello: Hello, fence: number, nowMs: number): Promise<HelloResult> {
    return this.#db.write('fleet.hello', fence, () => {
      const found = this.#find(runId, slot, epoch);
      if (!found || found.record.instanceId === null || found.record.phase === 'claimed') return 'unknown';
      const { record, run } = found;
      if (record.instanceId !== hello.instanceId) return 'other-instance';
      if (record.publicKey !== null && record.publicKey !== hello.publicKey) return 'other-key';
      if (record.publicKey !== null) return isServing(record.phase) ? 'repeated' : 'too-late';
      if (record.phase !== 'pending' && record.phase !== 'booting') return 'too-late';
      const { publicKey, address } = hello;
      put(run, { ...record, phase: 'ready', phaseAtMs: nowMs, publicKey, address });
      addMove(run, nowMs, record, record.phase, 'ready', null);
      return 'accepted';
    });
  }

  heartbeat(
    runId: string,
    slot: number,
    epoch: number,
    beat: { counter: number; progress: Progress; problem: string | null },
    fence: number,
    nowMs: number,
  ): Promise<boolean> {
    return this.#db.write('fleet.heartbeat', fence, () => {
      const found = this.#find(runId, slot, epoch);
      if (!found || found.record.counter >= beat.counter) return false;
      const { counter, progress, problem } = beat;
      put(found.run, { ...found.record, counter, progress, problem, lastHeartbeatAtMs: nowMs });
      return true;
    });
  }

  recordIncident(
    runId: string,
    slot: number,
    epoch: number,
    incident: IncidentReport | null,
    fence: number,
    nowMs: number,
  ): Promise<void> {
    return this.#db.write('fleet.recordIncident', fence, () => {
      const run = this.#db.run(runId);
      const last = lastIncident(run, slot, epoch);
      const open = last?.overAtMs === null ? last : undefined;
      if (incident === null) {
        if (open) open.overAtMs = nowMs;
      } else {
        const { verdict, untilMs, evidence } = incident;
        const values = { verdict, untilMs, rule: evidence.rule, evidence };
        const added = { slot, epoch, atMs: incident.atMs, returnedAtMs: null, overAtMs: null };
        if (open) Object.assign(open, values);
        else run.incidents.push({ ...added, ...values });
      }
      copyIncident(run, slot, epoch);
    });
  }

  recordReturned(runId: string, slot: number, epoch: number, fence: number, nowMs: number): Promise<void> {
    return this.#db.write('fleet.recordReturned', fence, () => {
      const run = this.#db.run(runId);
      const last = lastIncident(run, slot, epoch);
      if (last) last.returnedAtMs ??= nowMs;
      copyIncident(run, slot, epoch);
    });
  }

  incidents(runId: string): Promise<IncidentRecord[]> {
    return this.#db.call('fleet.incidents', () => {
      const run = this.#db.runs.get(runId);
      if (!run) return [];
      return run.incidents
        .map((t) => ({ ...t, address: run.instances.get(epochKey(t))?.address ?? null }))
        .sort((a, b) => a.atMs - b.atMs || a.slot - b.slot || a.epoch - b.epoch);
    });
  }

  #find(runId: string, slot: number, epoch: number): { run: MemoryRun; record: InstanceRecord } | null {
    const run = this.#db.runs.get(runId);
    const record = run?.instances.get(epochKey({ slot, epoch }));
    return run && record ? { run, record } : null;
  }
}

function put(run: MemoryRun, record: InstanceRecord): void {
  run.instances.set(epochKey(record), record);
  run.ordered = null;
}

function addMove(
  run: MemoryRun,
  atMs: number,
  at: EpochId,
  from: InstancePhase | null,
  to: InstancePhase,
  detail: string | null,
): void {
  run.events.push({ atMs, kind: 'instance', slot: at.slot, epoch: at.epoch, from, to, detail });
}

const lastIncident = (run: MemoryRun, slot: number, epoch: number): MemoryIncident | undefined =>
  run.incidents.findLast((t) => t.slot === slot && t.epoch === epoch);

/** Copies the last incident into the instance's own record. */
function copyIncident(run: MemoryRun, slot: number, epoch: number): void {
  const record = run.instances.get(epochKey({ slot, epoch }));
  const last = lastIncident(run, slot, epoch);
  if (!record || !last) return;
  const { verdict, rule, atMs, untilMs, returnedAtMs, overAtMs } = last;
  const incident: AddressIncident = { verdict, rule, atMs, untilMs, returnedAtMs, overAtMs };
  put(run, { ...record, incident });
}

function claimedRecord(
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
