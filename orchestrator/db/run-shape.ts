/** What of a run never changes while it is loaded and published, read once: its mapping, its tables, how times are written. */
import type { Knex } from 'knex';
import { AppError } from '../../shared/domain/errors.ts';
import type { Mapping } from '../../shared/domain/mapping.ts';
import type { RunSettings } from '../control/run-settings.ts';
import type { Database } from './connect.ts';
import { findColumn, stagingName } from './staging.ts';
import type { ColumnInfo } from './table-info.ts';
import { readTable } from './table-info.ts';
import { rowOf } from './rows.ts';

export interface RunShape {
  mapping: Mapping;
  results: RunSettings['results'];
  staging: string;
  crawledAt: ColumnInfo;
}

/** Throws `run-unknown`, and `internal` when the staging table is gone. */
export async function readRunShape(knex: Knex, db: Database, runId: string): Promise<RunShape> {
  const settings = await readSettings(knex, runId);
  const staging = stagingName(runId);
  const info = await readTable(knex, db, staging);
  const crawledAt = info && findColumn(info, 'crawled_at');
  if (!crawledAt) throw new AppError('internal', `${db.label}: the staging table ${staging} is missing`);
  return { mapping: settings.mapping, results: settings.results, staging, crawledAt };
}

/** Throws `run-unknown`. */
export async function readSettings(knex: Knex, runId: string): Promise<RunSettings> {
  const row = await rowOf<{ settings: string }>(knex('crawlfleet_runs').where({ id: runId }).first('settings'));
  if (!row) throw new AppError('run-unknown', `there is no run ${runId} in the database`);
  return JSON.parse(row.settings) as RunSettings;
}
