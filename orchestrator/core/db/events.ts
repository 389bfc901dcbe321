/** Rows of crawlfleet_events: one for every move, alarm and order, in order of time. */
import type { Knex } from 'knex';
import type { RunEvent } from '../model/stores.ts';
import { Columns, rowsOf } from './rows.ts';

const TABLE = 'crawlfleet_events';

const EVENT = new Columns<RunEvent>(
  { atMs: 'number', kind: 'text', slot: 'number', epoch: 'number', from: 'text', to: 'text', detail: 'text' },
  { from: 'from_state', to: 'to_state' },
);

/** Writes one event, in the same transaction as the change it records. */
export async function insertEvent(knex: Knex, runId: string, event: RunEvent): Promise<void> {
  await knex(TABLE).insert({ run_id: runId, ...EVENT.write(event) });
}

/** True when the newest event of the run is this one: it was written, but the answer was lost. */
export async function isLastEvent(knex: Knex, runId: string, event: RunEvent): Promise<boolean> {
  const [last] = await selectEvents(knex, runId, 1);
  return JSON.stringify(last) === JSON.stringify(event);
}

/** Newest first; only those of the given kind, if any. */
export async function selectEvents(knex: Knex, runId: string, limit: number, kind?: string): Promise<RunEvent[]> {
  const rows = await rowsOf<Record<string, unknown>>(
    knex(TABLE)
      .where({ run_id: runId, ...(kind === undefined ? {} : { kind }) })
      .orderBy('id', 'desc')
      .limit(limit)
      .select('at', 'kind', 'slot', 'epoch', 'from_state', 'to_state', 'detail'),
  );
  return rows.map((row) => EVENT.read(row));
}
