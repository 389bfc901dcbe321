/** Rows of crawlfleet_incidents: when an address stopped on its own, why, and how it ended. */
import { epochKey } from '../../shared/domain/epoch-id.ts';
import type { Knex } from 'knex';
import type { Evidence } from '../../shared/domain/verdict.ts';
import type { IncidentRecord, IncidentReport, AddressIncident } from '../control/model/stores.ts';
import type { SqlNumber } from './rows.ts';
import { rowOf, rowsOf, toNumber, toNumberOrNull } from './rows.ts';

const TABLE = 'crawlfleet_incidents';

interface Place {
  slot: number;
  epoch: number;
}

interface IncidentRow {
  slot: SqlNumber;
  epoch: SqlNumber;
  seq: SqlNumber;
  verdict: AddressIncident['verdict'];
  rule: string;
  at: SqlNumber;
  until: SqlNumber | null;
  returned_at: SqlNumber | null;
  over_at: SqlNumber | null;
  evidence: string;
}

const STATE = ['slot', 'epoch', 'seq', 'verdict', 'rule', 'at', 'until', 'returned_at', 'over_at'] as const;

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
  return new Map(rows.map((row) => [epochKey(toPlace(row)), toState(row)]));
}

/**
 * Inserts, updates or (with null) ends the open incident. The caller has locked the instance's row, so there is no
 * other writer.
 */
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
  const open = last !== undefined && last.over_at === null ? { ...key, seq: toNumber(last.seq) } : null;
  if (incident === null) {
    if (open) await trx(TABLE).where(open).update({ over_at: nowMs });
    return;
  }
  const { verdict, untilMs: until, evidence } = incident;
  const values = { verdict, until, rule: evidence.rule, evidence: JSON.stringify(evidence) };
  if (open) await trx(TABLE).where(open).update(values);
  else
    await trx(TABLE).insert({
      ...key,
      ...values,
      seq: last === undefined ? 1 : toNumber(last.seq) + 1,
      at: incident.atMs,
    });
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
    .where({ ...key, seq: toNumber(last.seq) })
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
    ...toPlace(row),
    ...toState(row),
    evidence: JSON.parse(row.evidence) as Evidence,
  }));
}

const toPlace = (row: IncidentRow): Place => ({ slot: toNumber(row.slot), epoch: toNumber(row.epoch) });

function toState(row: IncidentRow): AddressIncident {
  return {
    verdict: row.verdict,
    rule: row.rule,
    atMs: toNumber(row.at),
    untilMs: toNumberOrNull(row.until),
    returnedAtMs: toNumberOrNull(row.returned_at),
    overAtMs: toNumberOrNull(row.over_at),
  };
}
