/** Rows of crawlfleet_events: one for every move, alarm and order, in order of time. */
import type { Knex } from 'knex';
import type { RunEvent } from '../control/model/stores.ts';
import type { SqlNumber } from './rows.ts';
import { toNumber, toNumberOrNull, rowsOf } from './rows.ts';

const TABLE = 'crawlfleet_events';

interface EventRow {
  at: SqlNumber;
  kind: string;
  slot: SqlNumber | null;
  epoch: SqlNumber | null;
  from_state: string | null;
  to_state: string | null;
  detail: string | null;
}

/** Writes one event, in the same transaction as the change it records. */
export async function insertEvent(knex: Knex, runId: string, event: RunEvent): Promise<void> {
  await knex(TABLE).insert({ run_id: runId, ...toRow(event) });
}

/** True when the newest event of the run is this one: it was written, but the answer was lost. */
export async function isLastEvent(knex: Knex, runId: string, event: RunEvent): Promise<boolean> {
  const [last] = await selectEvents(knex, runId, 1);
  return JSON.stringify(last) === JSON.stringify(event);
}

/** Newest first; only those of the given kind, if any. */
export async function selectEvents(knex: Knex, runId: string, limit: number, kind?: string): Promise<RunEvent[]> {
  const rows = await rowsOf<EventRow>(
    knex(TABLE)
      .where({ run_id: runId, ...(kind === undefined ? {} : { kind }) })
      .orderBy('id', 'desc')
      .limit(limit)
      .select('at', 'kind', 'slot', 'epoch', 'from_state', 'to_state', 'detail'),
  );
  return rows.map((row) => ({
    atMs: toNumber(row.at),
    kind: row.kind,
    slot: toNumberOrNull(row.slot),
    epoch: toNumberOrNull(row.epoch),
    from: row.from_state,
    to: row.to_state,
    detail: row.detail,
  }));
}

function toRow(event: RunEvent): EventRow {
  return {
    at: event.atMs,
    kind: event.kind,
    slot: event.slot,
    epoch: event.epoch,
    from_state: event.from,
    to_state: event.to,
    detail: event.detail,
  };
}
