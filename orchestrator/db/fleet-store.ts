/** FleetStore on knex: claims (crawlfleet_launches, immutable) and their instances (crawlfleet_instances). */
import { epochKey } from '../../shared/domain/epoch-id.ts';
import type { EpochId } from '../../shared/domain/epoch-id.ts';
import type { Knex } from 'knex';
import { AppError } from '../../shared/domain/errors.ts';
import type { InstancePhase } from '../../shared/domain/states.ts';
import { INSTANCE_PHASES, canMoveInstance, isServing } from '../../shared/domain/states.ts';
import type { Hello, Progress } from '../../shared/wire/callbacks.ts';
import type { CloudState, LaunchRequest, LaunchFailure, StateReason } from '../cloud/compute.ts';
import type {
  FleetStore,
  HelloResult,
  InstancePatch,
  InstanceRecord,
  RunEvent,
  IncidentRecord,
  IncidentReport,
  AddressIncident,
} from '../control/model/stores.ts';
import type { Database } from './connect.ts';
import { insertEvent, isLastEvent } from './events.ts';
import { assertFence, throwIfFenced, underFence } from './locks.ts';
import { LaunchRequests } from './launch-requests.ts';
import { inQuery, inTransaction } from './retry.ts';
import type { SqlNumber } from './rows.ts';
import { lastIncidents, selectIncidents, writeReleased, writeIncident } from './incidents.ts';
import { parseJson, toBoolean, toNumber, toNumberOrNull, rowOf, rowsOf } from './rows.ts';
import { REFUSAL_CAUSES } from '../cloud/compute.ts';

const LAUNCHES = 'crawlfleet_launches';
const INSTANCES = 'crawlfleet_instances';

interface InstanceRow {
  slot: SqlNumber;
  epoch: SqlNumber;
  phase: InstancePhase;
  phase_at: SqlNumber;
  reason: string | null;
  instance_id: string | null;
  address: string | null;
  zone: string | null;
  attempts: SqlNumber;
  answer: string | null;
  last_error: string | null;
  launched_at: SqlNumber | null;
  terminated_at: SqlNumber | null;
  cloud_state: CloudState | null;
  state_reason: string | null;
  registered: SqlNumber;
  public_key: string | null;
  counter: SqlNumber;
  last_heartbeat_at: SqlNumber | null;
  progress: string | null;
  problem: string | null;
  sealed: SqlNumber;
  rotate_at: SqlNumber | null;
  manifest_key: string | null;
  manifest_sha256: string | null;
  console_output: string | null;
  token: string;
  claimed_at: SqlNumber;
}

const PATCH_COLUMNS: Record<keyof InstancePatch, string> = {
  instanceId: 'instance_id',
  address: 'address',
  zone: 'zone',
  attempts: 'attempts',
  answer: 'answer',
  lastError: 'last_error',
  stateReason: 'state_reason',
  launchedAtMs: 'launched_at',
  terminatedAtMs: 'terminated_at',
  cloudState: 'cloud_state',
  registered: 'registered',
  sealed: 'sealed',
  rotateAtMs: 'rotate_at',
  manifestKey: 'manifest_key',
  manifestSha256: 'manifest_sha256',
  consoleOutput: 'console_output',
  problem: 'problem',
};

export class KnexFleetStore implements FleetStore {
  readonly #db: Database;
  readonly #requests = new LaunchRequests();

  constructor(db: Database) {
    this.#db = db;
  }

  claim(
    runId: string,
    claim: EpochId & { request: LaunchRequest; token: string },
    fence: number,
    nowMs: number,
  ): Promise<boolean> {
    const db = this.#db;
    const key = { run_id: runId, slot: claim.slot, epoch: claim.epoch };
    return inTransaction(db, async (trx, attempt) => {
      await assertFence(trx, db, fence);
      const known = await rowOf<{ token: string }>(trx(LAUNCHES).where(key).forUpdate().first('token'));
      // The token is random, so only our own earlier attempt can have written it.
      if (known) return attempt.maybeDone && known.token === claim.token;
      // A missing row cannot be locked: another claim may come in between. `merge` of a key column changes nothing.
      await trx(LAUNCHES)
        .insert({ ...key, request: JSON.stringify(claim.request), token: claim.token, claimed_at: nowMs })
        .onConflict(['run_id', 'slot', 'epoch'])
        .merge(['run_id']);
      const winner = await rowOf<{ token: string }>(trx(LAUNCHES).where(key).first('token'));
      if (winner?.token !== claim.token) return false;
      await trx(INSTANCES).insert({
        ...key,
        phase: 'claimed',
        phase_at: nowMs,
        attempts: 0,
        registered: 0,
        counter: 0,
        sealed: 0,
      });
      await insertEvent(trx, runId, moveEvent(nowMs, claim, null, 'claimed', null));
      return true;
    });
  }

  instances(runId: string): Promise<InstanceRecord[]> {
    return inQuery(this.#db, (knex) => this.#records(knex, { run_id: runId }));
  }

  get(runId: string, slot: number, epoch: number): Promise<InstanceRecord | null> {
    return inQuery(this.#db, async (knex) => (await this.#records(knex, { run_id: runId, slot, epoch }))[0] ?? null);
  }

  async patch(runId: string, slot: number, epoch: number, patch: InstancePatch, fence: number): Promise<void> {
    const db = this.#db;
    const values: Record<string, unknown> = {};
    for (const [key, value] of Object.entries(patch))
      values[PATCH_COLUMNS[key as keyof InstancePatch]] =
        typeof value === 'object' && value !== null ? JSON.stringify(value) : value;
    if (Object.keys(values).length === 0) return;
    await inQuery(db, async (knex) => {
      const row = knex(INSTANCES).where({ run_id: runId, slot, epoch });
      const changed = await row.modify(underFence(knex, fence)).update(values);
      if (changed > 0) return;
      await throwIfFenced(knex, db, fence);
      throw new AppError('internal', `run ${runId} has no claim for slot ${slot} epoch ${epoch}`);
    });
  }

  noteManifest(
    runId: string,
    slot: number,
    epoch: number,
    manifest: { manifestKey: string; manifestSha256: string | null },
    fence: number,
  ): Promise<boolean> {
    const db = this.#db;
    const values = { manifest_key: manifest.manifestKey, manifest_sha256: manifest.manifestSha256 };
    return inQuery(db, async (knex) => {
      const changed = await knex(INSTANCES)
        .where({ run_id: runId, slot, epoch })
        .whereIn('phase', INSTANCE_PHASES.filter(isServing))
        .whereNull('manifest_key')
        .modify(underFence(knex, fence))
        .update(values);
      if (changed === 0) await throwIfFenced(knex, db, fence);
      return changed > 0;
    });
  }

  move(
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
    if (!canMoveInstance(from, to))
      return Promise.reject(new AppError('internal', `an instance cannot move from ${from} to ${to}`));
    const db = this.#db;
    const event = moveEvent(nowMs, { slot, epoch }, from, to, detail ?? null);
    return inTransaction(db, async (trx, attempt) => {
      await assertFence(trx, db, fence);
      const changed = await trx(INSTANCES)
        .where({ run_id: runId, slot, epoch, phase: from })
        .update({
          phase: to,
          phase_at: nowMs,
          ...(reason === undefined ? {} : { reason }),
          ...(to === 'lost' ? { manifest_key: null, manifest_sha256: null } : {}),
          ...(to === 'terminated' ? { terminated_at: trx.raw('coalesce(terminated_at, ?)', [nowMs]) } : {}),
        });
      if (changed === 0) return attempt.maybeDone && isLastEvent(trx, runId, event);
      await insertEvent(trx, runId, event);
      return true;
    });
  }

  hello(runId: string, slot: number, epoch: number, hello: Hello, fence: number, nowMs: number): Promise<HelloResult> {
    const db = this.#db;
    const key = { run_id: runId, slot, epoch };
    return inTransaction(db, async (trx) => {
      await assertFence(trx, db, fence);
      const row = await rowOf<Pick<InstanceRow, 'phase' | 'instance_id' | 'public_key'>>(
        trx(INSTANCES).where(key).forUpdate().first('phase', 'instance_id', 'public_key'),
      );
      // Without an id EC2's answer has not been stored yet, so it is unknown whether this is the right instance.
      if (!row || row.instance_id === null || row.phase === 'claimed') return 'unknown';
      if (row.instance_id !== hello.instanceId) return 'other-instance';
      if (row.public_key !== null && row.public_key !== hello.publicKey) return 'other-key';
      if (row.public_key !== null) return isServing(row.phase) ? 'repeated' : 'too-late';
      if (row.phase !== 'pending' && row.phase !== 'booting') return 'too-late';
      await trx(INSTANCES)
        .where(key)
        .update({ phase: 'ready', phase_at: nowMs, public_key: hello.publicKey, address: hello.address });
      await insertEvent(trx, runId, moveEvent(nowMs, { slot, epoch }, row.phase, 'ready', null));
      return 'accepted';
    });
  }

  /**
   * One statement without a transaction, as by far the most frequent write. Its time distinguishes a repeat after a
   * lost answer from a replay.
   */
  heartbeat(
    runId: string,
    slot: number,
    epoch: number,
    beat: { counter: number; progress: Progress; problem: string | null },
    fence: number,
    nowMs: number,
  ): Promise<boolean> {
    const db = this.#db;
    const progress = JSON.stringify(beat.progress);
    let tries = 0;
    return inQuery(db, async (knex) => {
      tries++;
      const key = { run_id: runId, slot, epoch };
      const changed = await knex(INSTANCES)
        .where(key)
        .where('counter', '<', beat.counter)
        .modify(underFence(knex, fence))
        .update({ counter: beat.counter, last_heartbeat_at: nowMs, progress, problem: beat.problem });
      if (changed > 0) return true;
      await throwIfFenced(knex, db, fence);
      if (tries === 1) return false;
      const own = { ...key, counter: beat.counter, last_heartbeat_at: nowMs, progress };
      return (await knex(INSTANCES).where(own).first('slot')) !== undefined;
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
    return this.#underRow({ run_id: runId, slot, epoch }, fence, (trx, key) =>
      writeIncident(trx, key, incident, nowMs),
    );
  }

  recordReturned(runId: string, slot: number, epoch: number, fence: number, nowMs: number): Promise<void> {
    return this.#underRow({ run_id: runId, slot, epoch }, fence, (trx, key) => writeReleased(trx, key, nowMs));
  }

  incidents(runId: string): Promise<IncidentRecord[]> {
    return inQuery(this.#db, async (knex) => {
      const instances = await rowsOf<Pick<InstanceRow, 'slot' | 'epoch' | 'address'>>(
        knex(INSTANCES).where({ run_id: runId }).select('slot', 'epoch', 'address'),
      );
      const addresses = new Map(instances.map((i) => [`${toNumber(i.slot)}.${toNumber(i.epoch)}`, i.address]));
      const incidents = await selectIncidents(knex, runId);
      return incidents.map((t) => ({ ...t, address: addresses.get(epochKey(t)) ?? null }));
    });
  }

  async #records(knex: Knex, where: { run_id: string; slot?: number; epoch?: number }): Promise<InstanceRecord[]> {
    const rows = await selectInstances(knex, where);
    const incidents = await lastIncidents(knex, where);
    const requests = await this.#requests.read(knex, where.run_id, rows);
    return rows.flatMap((row) => {
      const key = epochKey({ slot: toNumber(row.slot), epoch: toNumber(row.epoch) });
      const request = requests.get(key);
      return request ? [toRecord(row, request, incidents.get(key) ?? null)] : [];
    });
  }

  /** Writes while the instance's row is locked. */
  #underRow<K extends { run_id: string; slot: number; epoch: number }>(
    key: K,
    fence: number,
    write: (trx: Knex.Transaction, key: K) => Promise<void>,
  ): Promise<void> {
    const db = this.#db;
    return inTransaction(db, async (trx) => {
      await assertFence(trx, db, fence);
      await trx(INSTANCES).where(key).forUpdate().first('slot');
      await write(trx, key);
    });
  }
}

function selectInstances(knex: Knex, where: Record<string, string | number>): Promise<InstanceRow[]> {
  const prefixed = Object.fromEntries(Object.entries(where).map(([k, v]) => [`i.${k}`, v]));
  return rowsOf<InstanceRow>(
    knex(`${INSTANCES} as i`)
      .join(`${LAUNCHES} as l`, (join) =>
        join.on('l.run_id', 'i.run_id').andOn('l.slot', 'i.slot').andOn('l.epoch', 'i.epoch'),
      )
      .where(prefixed)
      .orderBy(['i.slot', 'i.epoch'])
      .select('i.*', 'l.token', 'l.claimed_at'),
  );
}

function moveEvent(
  atMs: number,
  at: EpochId,
  from: InstancePhase | null,
  to: InstancePhase,
  detail: string | null,
): RunEvent {
  return { atMs, kind: 'instance', slot: at.slot, epoch: at.epoch, from, to, detail };
}

function toRecord(row: InstanceRow, request: LaunchRequest, incident: AddressIncident | null): InstanceRecord {
  return {
    slot: toNumber(row.slot),
    epoch: toNumber(row.epoch),
    phase: row.phase,
    phaseAtMs: toNumber(row.phase_at),
    reason: row.reason,
    instanceId: row.instance_id,
    address: row.address,
    zone: row.zone,
    request,
    token: row.token,
    attempts: toNumber(row.attempts),
    ...readAnswer(row),
    claimedAtMs: toNumber(row.claimed_at),
    launchedAtMs: toNumberOrNull(row.launched_at),
    terminatedAtMs: toNumberOrNull(row.terminated_at),
    cloudState: row.cloud_state,
    stateReason: readStateReason(row.state_reason),
    registered: toBoolean(row.registered),
    publicKey: row.public_key,
    counter: toNumber(row.counter),
    lastHeartbeatAtMs: toNumberOrNull(row.last_heartbeat_at),
    progress: parseJson(row.progress) as Progress | null,
    problem: row.problem,
    sealed: toBoolean(row.sealed),
    rotateAtMs: toNumberOrNull(row.rotate_at),
    manifestKey: row.manifest_key,
    manifestSha256: row.manifest_sha256,
    consoleOutput: row.console_output,
    incident,
  };
}

/** A row's columns for the last call of its claim. */
export interface AnswerColumns {
  instance_id: string | null;
  last_error: string | null;
  answer: string | null;
}

/** The answer, and the rest of `last_error` when an earlier version stored the answer there. */
export function readAnswer(row: AnswerColumns): { answer: LaunchFailure | null; lastError: string | null } {
  if (row.answer !== null) return { answer: parseJson(row.answer) as LaunchFailure, lastError: row.last_error };
  const old = row.instance_id === null && row.last_error !== null ? parseOld(row.last_error) : null;
  return { answer: old, lastError: old === null ? row.last_error : null };
}

/** Up to version 7 of the tables: `refused pool: …`, `waiting throttled: …`, `used: …` and `unknown: …`. */
function parseOld(text: string): LaunchFailure | null {
  const [, cause, message = ''] = /^(?:refused|waiting) ([a-z]+): (.*)$/s.exec(text) ?? [];
  const known = REFUSAL_CAUSES.find((c) => c === cause);
  if (known) return { kind: 'refused', cause: known, message };
  const [, word, said = ''] = /^(used|unknown): (.*)$/s.exec(text) ?? [];
  if (word === undefined) return null;
  return { kind: 'unknown', message: said, ...(word === 'used' ? { tokenUsed: true as const } : {}) };
}

const readStateReason = (text: string | null): StateReason | null => parseJson(text) as StateReason | null;
