/** Rows of crawlfleet_troubles: when an address stopped by itself, why, and what came of it. */
import type { Knex } from 'knex';
import type { Evidence } from '../../shared/domain/verdict.ts';
import type { TroubleRecord, TroubleReport, TroubleState } from '../control/stores.ts';
import type { SqlNumber } from './rows.ts';
import { rowOf, rowsOf, toNumber, toNumberOrNull } from './rows.ts';

const TABLE = 'crawlfleet_troubles';

interface Place {
  slot: number;
  epoch: number;
}

interface TroubleRow {
  slot: SqlNumber;
  epoch: SqlNumber;
  seq: SqlNumber;
  verdict: TroubleState['verdict'];
  rule: string;
  at: SqlNumber;
  until: SqlNumber | null;
  released_at: SqlNumber | null;
  over_at: SqlNumber | null;
  evidence: string;
}

const STATE = ['slot', 'epoch', 'seq', 'verdict', 'rule', 'at', 'until', 'released_at', 'over_at'] as const;

/** The last trouble of each (slot, epoch) that had one, under `<slot>.<epoch>`. */
export async function lastTroubles(
  knex: Knex,
  where: { run_id: string; slot?: number; epoch?: number },
): Promise<Map<string, TroubleState>> {
  const rows = await rowsOf<TroubleRow>(
    knex(TABLE)
      .where(where)
      .orderBy('seq')
      .select(...STATE),
  );
  return new Map(rows.map((row) => [placeKey(toPlace(row)), toState(row)]));
}

export const placeKey = ({ slot, epoch }: Place): string => `${slot}.${epoch}`;

/** Enters, updates or (with null) ends the open trouble. The caller holds the instance's row, so nobody else writes here. */
export async function writeTrouble(
  trx: Knex.Transaction,
  key: { run_id: string; slot: number; epoch: number },
  trouble: TroubleReport | null,
  nowMs: number,
): Promise<void> {
  const last = await rowOf<TroubleRow>(
    trx(TABLE)
      .where(key)
      .orderBy('seq', 'desc')
      .first(...STATE),
  );
  const open = last !== undefined && last.over_at === null ? { ...key, seq: toNumber(last.seq) } : null;
  if (trouble === null) {
    if (open) await trx(TABLE).where(open).update({ over_at: nowMs });
    return;
  }
  const { verdict, untilMs: until, evidence } = trouble;
  const values = { verdict, until, rule: evidence.rule, evidence: JSON.stringify(evidence) };
  if (open) await trx(TABLE).where(open).update(values);
  else
    await trx(TABLE).insert({
      ...key,
      ...values,
      seq: last === undefined ? 1 : toNumber(last.seq) + 1,
      at: trouble.atMs,
    });
}

/** Notes on the last trouble that its products were taken back; the first time stands. */
export async function writeReleased(
  trx: Knex.Transaction,
  key: { run_id: string; slot: number; epoch: number },
  nowMs: number,
): Promise<void> {
  const last = await rowOf<TroubleRow>(trx(TABLE).where(key).orderBy('seq', 'desc').first('seq'));
  if (last === undefined) return;
  await trx(TABLE)
    .where({ ...key, seq: toNumber(last.seq) })
    .whereNull('released_at')
    .update({ released_at: nowMs });
}

/** All of a run, in the order in which they began. */
export async function selectTroubles(knex: Knex, runId: string): Promise<Omit<TroubleRecord, 'address'>[]> {
  const rows = await rowsOf<TroubleRow>(
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

const toPlace = (row: TroubleRow): Place => ({ slot: toNumber(row.slot), epoch: toNumber(row.epoch) });

function toState(row: TroubleRow): TroubleState {
  return {
    verdict: row.verdict,
    rule: row.rule,
    atMs: toNumber(row.at),
    untilMs: toNumberOrNull(row.until),
    releasedAtMs: toNumberOrNull(row.released_at),
    overAtMs: toNumberOrNull(row.over_at),
  };
}
