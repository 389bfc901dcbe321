/** Rows of crawlfleet_incidents: when an address stopped on its own, why, and how it ended. */
import { type EpochId, epochKey } from '../../shared/domain/epoch-id.ts';
import type { Knex } from 'knex';
import type { Evidence } from '../../shared/domain/verdict.ts';
import type { IncidentRecord, IncidentReport, AddressIncident } from '../control/model/stores.ts';
import { Columns, rowOf, rowsOf, type SqlNumber } from './rows.ts';

const TABLE = 'crawlfleet_incidents';

const INCIDENT = new Columns<AddressIncident>({
  verdict: 'text',
  rule: 'text',
  atMs: 'number',
  untilMs: 'number',
  returnedAtMs: 'number',
  overAtMs: 'number',
});

/** Without the evidence, which may be long. */
const STATE = ['slot', 'epoch', 'seq', 'verdict', 'rule', 'at', 'until', 'returned_at', 'over_at'] as const;

type IncidentRow = Record<string, unknown> & EpochId & { seq: number; over_at: SqlNumber | null; evidence: string };

/** The last incident of each (slot, epoch), under `<slot>.<epoch>`. */
export async function lastIncidents(
  knex: Knex,
  where: { run_id: string; slot?: number; epoch?: number },
): Promise<Map<string, AddressIncident>> {
  const rows = await rowsOf<IncidentRow>(
    knex(TABLE)
      .where(where)
      .orderBy('seq')
      .select(...STATE),
  );
  return new Map(rows.map((row) => [epochKey(row), INCIDENT.read(row)]));
}

/** Inserts, updates or (with null) ends the open incident. The instance's row is locked: there is no other writer. */
export async function writeIncident(
  trx: Knex.Transaction,
  key: { run_id: string; slot: number; epoch: number },
  incident: IncidentReport | null,
  nowMs: number,
): Promise<void> {
  const last = await rowOf<IncidentRow>(
    trx(TABLE)
      .where(key)
      .orderBy('seq', 'desc')
      .first(...STATE),
  );
  const open = last !== undefined && last.over_at === null ? { ...key, seq: last.seq } : null;
  if (incident === null) {
    if (open) await trx(TABLE).where(open).update({ over_at: nowMs });
    return;
  }
  const { verdict, untilMs: until, evidence } = incident;
  const values = { verdict, until, rule: evidence.rule, evidence: JSON.stringify(evidence) };
  if (open) await trx(TABLE).where(open).update(values);
  else await trx(TABLE).insert({ ...key, ...values, seq: (last?.seq ?? 0) + 1, at: incident.atMs });
}

/** Records on the last incident that its products were reassigned; the first time is kept. */
export async function writeReleased(
  trx: Knex.Transaction,
  key: { run_id: string; slot: number; epoch: number },
  nowMs: number,
): Promise<void> {
  const last = await rowOf<IncidentRow>(trx(TABLE).where(key).orderBy('seq', 'desc').first('seq'));
  if (last === undefined) return;
  await trx(TABLE)
    .where({ ...key, seq: last.seq })
    .whereNull('returned_at')
    .update({ returned_at: nowMs });
}

/** All incidents of a run, in the order in which they began. */
export async function selectIncidents(knex: Knex, runId: string): Promise<Omit<IncidentRecord, 'address'>[]> {
  const rows = await rowsOf<IncidentRow>(
    knex(TABLE)
      .where({ run_id: runId })
      .orderBy(['at', 'slot', 'epoch', 'seq'])
      .select(...STATE, 'evidence'),
  );
  return rows.map((row) => ({
    ...INCIDENT.read(row),
    slot: row.slot,
    epoch: row.epoch,
    evidence: JSON.parse(row.evidence) as Evidence,
  }));
}
