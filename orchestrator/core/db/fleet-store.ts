/**
 * FleetStore on knex: claims (crawlfleet_launches, immutable), their instances, and when an address stopped on its own.
 */
import { type EpochId, epochKey } from '../../../shared/domain/epoch-id.ts';
import type { Knex } from 'knex';
import { AppError } from '../../../shared/domain/errors.ts';
import {
  canMoveInstance,
  INSTANCE_PHASES,
  type InstancePhase,
  isOver,
  isServing,
} from '../../../shared/domain/states.ts';
import type { Evidence } from '../../../shared/domain/verdict.ts';
import type { Hello, Progress } from '../../../shared/wire/callbacks.ts';
import type { LaunchRequest } from '../cloud/compute.ts';
import type {
  FleetStore,
  HelloResult,
  InstancePatch,
  InstanceRecord,
  MoveReason,
  NewClaim,
  RunEvent,
  IncidentRecord,
  IncidentReport,
  AddressIncident,
} from '../model/stores.ts';
import { BoundRun } from './bound-run.ts';
import { insertEvent, isLastEvent } from './events.ts';
import { Columns, inPieces, rowOf, rowsOf, type SqlNumber } from './rows.ts';

const LAUNCHES = 'crawlfleet_launches';
const INSTANCES = 'crawlfleet_instances';
const INCIDENTS = 'crawlfleet_incidents';
/** Claims per statement. */
const LIST = 200;

const INSTANCE = new Columns<Omit<InstanceRecord, 'request' | 'incident'>>({
  slot: 'number',
  epoch: 'number',
  phase: 'text',
  phaseAtMs: 'number',
  reason: 'text',
  instanceId: 'text',
  address: 'text',
  zone: 'text',
  token: 'text',
  attempts: 'number',
  answer: 'json',
  lastError: 'text',
  claimedAtMs: 'number',
  launchedAtMs: 'number',
  terminatedAtMs: 'number',
  cloudState: 'text',
  stateReason: 'json',
  registered: 'boolean',
  publicKey: 'text',
  secretsKey: 'text',
  counter: 'number',
  lastHeartbeatAtMs: 'number',
  progress: 'json',
  problem: 'text',
  sealed: 'boolean',
  rotateAtMs: 'number',
  manifestKey: 'text',
  manifestSha256: 'text',
  consoleOutput: 'text',
});

const INCIDENT = new Columns<AddressIncident>({
  verdict: 'text',
  rule: 'text',
  atMs: 'number',
  untilMs: 'number',
  returnedAtMs: 'number',
  overAtMs: 'number',
});

/** The columns of an incident without the evidence, which may be long. */
const STATE = ['slot', 'epoch', 'seq', 'verdict', 'rule', 'at', 'until', 'returned_at', 'over_at'] as const;

type IncidentRow = Record<string, unknown> & EpochId & { evidence: string };
type LastIncident = { seq: number; over_at: SqlNumber | null };

export class KnexFleetStore extends BoundRun implements FleetStore {
  /**
   * Launch requests by epochKey, with their claims' tokens: read and parsed once, because each has some KB of user
   * data.
   */
  readonly #requests = new Map<string, { token: string; request: LaunchRequest }>();

  claim(claim: NewClaim): Promise<boolean> {
    const key = this.key(claim);
    const nowMs = claim.claimedAtMs ?? this.now();
    return this.write(async (trx, attempt) => {
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
      const none = { attempts: 0, registered: 0, counter: 0, sealed: 0 };
      await trx(INSTANCES).insert({ ...key, phase: 'claimed', phase_at: nowMs, ...none });
      await insertEvent(trx, key.run_id, moveEvent(nowMs, claim, { from: null, to: 'claimed', detail: null }));
      return true;
    });
  }

  instances(): Promise<InstanceRecord[]> {
    return this.query((knex) => this.#records(knex, { run_id: this.id }));
  }

  get(at: EpochId): Promise<InstanceRecord | null> {
    return this.query(async (knex) => (await this.#records(knex, this.key(at)))[0] ?? null);
  }

  async patch(at: EpochId, patch: InstancePatch): Promise<void> {
    const key = this.key(at);
    const values = INSTANCE.write(patch);
    if (Object.keys(values).length === 0) return;
    await this.query(async (knex) => {
      if ((await this.update(knex, knex(INSTANCES).where(key), values)) === 0)
        throw new AppError('internal', `run ${key.run_id} has no claim for slot ${key.slot} epoch ${key.epoch}`);
    });
  }

  noteManifest(at: EpochId, manifest: { manifestKey: string; manifestSha256: string | null }): Promise<boolean> {
    const values = { manifest_key: manifest.manifestKey, manifest_sha256: manifest.manifestSha256 };
    return this.query(async (knex) => {
      const row = knex(INSTANCES)
        .where(this.key(at))
        .whereIn('phase', INSTANCE_PHASES.filter(isServing))
        .whereNull('manifest_key');
      return (await this.update(knex, row, values)) > 0;
    });
  }

  move(at: EpochId, from: InstancePhase, to: InstancePhase, why: MoveReason = {}): Promise<boolean> {
    if (!canMoveInstance(from, to))
      return Promise.reject(new AppError('internal', `an instance cannot move from ${from} to ${to}`));
    const key = this.key(at);
    const nowMs = this.now();
    const reason = why.reason ?? undefined;
    const event = moveEvent(nowMs, at, { from, to, detail: why.detail ?? reason ?? null });
    return this.write(async (trx, attempt) => {
      const changed = await trx(INSTANCES)
        .where({ ...key, phase: from })
        .update({
          phase: to,
          phase_at: nowMs,
          ...(reason === undefined ? {} : { reason }),
          ...(to === 'lost' ? { manifest_key: null, manifest_sha256: null } : {}),
          ...(to === 'terminated' ? { terminated_at: trx.raw('coalesce(terminated_at, ?)', [nowMs]) } : {}),
        });
      if (changed === 0) return attempt.maybeDone && isLastEvent(trx, key.run_id, event);
      await insertEvent(trx, key.run_id, event);
      return true;
    });
  }

  hello(at: EpochId, hello: Hello): Promise<HelloResult> {
    const key = this.key(at);
    const nowMs = this.now();
    return this.write(async (trx) => {
      const row = await rowOf<{ phase: InstancePhase; instance_id: string | null; public_key: string | null }>(
        trx(INSTANCES).where(key).forUpdate().first('phase', 'instance_id', 'public_key'),
      );
      // Without an id EC2's answer has not been stored yet, so it is unknown whether this is the right instance.
      if (!row || row.instance_id === null || row.phase === 'claimed') return 'unknown';
      if (row.instance_id !== hello.instanceId) return 'other-instance';
      if (row.public_key !== null && row.public_key !== hello.publicKey) return 'other-key';
      const secrets_key = hello.secretsKey ?? null;
      if (row.public_key !== null) {
        if (!isServing(row.phase)) return 'too-late';
        if (secrets_key !== null) await trx(INSTANCES).where(key).update({ secrets_key });
        return 'repeated';
      }
      if (row.phase !== 'pending' && row.phase !== 'booting') return 'too-late';
      await trx(INSTANCES)
        .where(key)
        .update({ phase: 'ready', phase_at: nowMs, public_key: hello.publicKey, secrets_key, address: hello.address });
      await insertEvent(trx, key.run_id, moveEvent(nowMs, at, { from: row.phase, to: 'ready', detail: null }));
      return 'accepted';
    });
  }

  /** One statement, as by far the most frequent write. Its time tells a repeat after a lost answer from a replay. */
  heartbeat(at: EpochId, beat: { counter: number; progress: Progress; problem: string | null }): Promise<boolean> {
    const { counter, problem } = beat;
    const key = this.key(at);
    const own = { counter, last_heartbeat_at: this.now(), progress: JSON.stringify(beat.progress) };
    let tries = 0;
    return this.query(async (knex) => {
      tries++;
      const row = knex(INSTANCES)
        .where(key)
        .where('counter', '<', counter)
        .whereNotIn('phase', INSTANCE_PHASES.filter(isOver));
      if ((await this.update(knex, row, { ...own, problem })) > 0) return true;
      if (tries === 1) return false;
      const written = knex(INSTANCES).where(key).where(own);
      return (await written.first('slot')) !== undefined;
    });
  }

  recordIncident(at: EpochId, incident: IncidentReport | null): Promise<void> {
    const nowMs = this.now();
    return this.#onLastIncident(at, async (trx, last, key) => {
      const open = last !== null && last.over_at === null ? { ...key, seq: last.seq } : null;
      if (incident === null) {
        if (open) await trx(INCIDENTS).where(open).update({ over_at: nowMs });
        return;
      }
      const { verdict, untilMs: until, evidence } = incident;
      const values = { verdict, until, rule: evidence.rule, evidence: JSON.stringify(evidence) };
      if (open) await trx(INCIDENTS).where(open).update(values);
      else await trx(INCIDENTS).insert({ ...key, ...values, seq: (last?.seq ?? 0) + 1, at: incident.atMs });
    });
  }

  recordReturned(at: EpochId): Promise<void> {
    const nowMs = this.now();
    return this.#onLastIncident(at, async (trx, last, key) => {
      if (last === null) return;
      const unmarked = trx(INCIDENTS)
        .where({ ...key, seq: last.seq })
        .whereNull('returned_at');
      await unmarked.update({ returned_at: nowMs });
    });
  }

  async incidents(): Promise<IncidentRecord[]> {
    const rows = await this.rows<IncidentRow & { address: string | null }>((knex) =>
      knex(`${INCIDENTS} as t`)
        .leftJoin(`${INSTANCES} as i`, sameEpoch('i', 't'))
        .where('t.run_id', this.id)
        .orderBy(['t.at', 't.slot', 't.epoch', 't.seq'])
        .select('t.*', 'i.address'),
    );
    return rows.map((row) => {
      const { slot, epoch, address } = row;
      return { ...INCIDENT.read(row), slot, epoch, address, evidence: JSON.parse(row.evidence) as Evidence };
    });
  }

  async #records(knex: Knex, where: { run_id: string; slot?: number; epoch?: number }): Promise<InstanceRecord[]> {
    const of = Object.fromEntries(Object.entries(where).map(([column, value]) => [`i.${column}`, value]));
    const rows = await rowsOf<Record<string, unknown>>(
      knex(`${INSTANCES} as i`)
        .join(`${LAUNCHES} as l`, sameEpoch('l', 'i'))
        .where(of)
        .orderBy(['i.slot', 'i.epoch'])
        .select('i.*', 'l.token', 'l.claimed_at'),
    );
    const last = await rowsOf<IncidentRow>(
      knex(INCIDENTS)
        .where(where)
        .orderBy('seq')
        .select(...STATE),
    );
    // Of several the last stays.
    const incidents = new Map(last.map((row) => [epochKey(row), INCIDENT.read(row)]));
    const records = rows.map((row) => INSTANCE.read(row));
    await this.#readRequests(knex, records);
    return records.flatMap((record) => {
      const key = epochKey(record);
      const known = this.#requests.get(key);
      // The claim may have been pruned in between.
      return known ? [{ ...record, request: known.request, incident: incidents.get(key) ?? null }] : [];
    });
  }

  /** Callers share the requests and must not change them. The token is random: another one means another claim. */
  async #readRequests(knex: Knex, claims: readonly (EpochId & { token: string })[]): Promise<void> {
    const missing = claims.filter((claim) => this.#requests.get(epochKey(claim))?.token !== claim.token);
    for (const piece of inPieces(missing, LIST)) {
      const places = piece.map(({ slot, epoch }) => [slot, epoch]);
      const rows = await rowsOf<EpochId & { request: string; token: string }>(
        knex(LAUNCHES)
          .where({ run_id: this.id })
          .whereIn(['slot', 'epoch'], places)
          .select('slot', 'epoch', 'request', 'token'),
      );
      for (const row of rows)
        this.#requests.set(epochKey(row), { token: row.token, request: JSON.parse(row.request) as LaunchRequest });
    }
  }

  /** Writes while the instance's row is locked: there is no other writer of its incidents. */
  #onLastIncident(
    at: EpochId,
    write: (trx: Knex.Transaction, last: LastIncident | null, key: ReturnType<BoundRun['key']>) => Promise<void>,
  ): Promise<void> {
    const key = this.key(at);
    return this.write(async (trx) => {
      await trx(INSTANCES).where(key).forUpdate().first('slot');
      const last = trx(INCIDENTS).where(key).orderBy('seq', 'desc').first('seq', 'over_at');
      await write(trx, (await rowOf<LastIncident>(last)) ?? null, key);
    });
  }
}

const sameEpoch =
  (a: string, b: string) =>
  (join: Knex.JoinClause): void => {
    for (const column of ['run_id', 'slot', 'epoch']) join.on(`${a}.${column}`, `${b}.${column}`);
  };

function moveEvent(
  atMs: number,
  { slot, epoch }: EpochId,
  move: { from: InstancePhase | null; to: InstancePhase; detail: string | null },
): RunEvent {
  return { atMs, kind: 'instance', slot, epoch, ...move };
}
