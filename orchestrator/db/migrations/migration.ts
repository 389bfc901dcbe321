/** One step of the schema. */

import type { Knex } from 'knex';

export interface Migration {
  version: number;
  name: string;
  tables: Record<string, (table: Knex.CreateTableBuilder) => void>;
  /** Columns added to tables of earlier migrations, by table and name. */
  columns?: Record<string, Record<string, (table: Knex.AlterTableBuilder) => void>>;
  /**
   * New names by old ones; columns by the new name of their table. Renamed only if the old name exists and the new one
   * does not.
   */
  renamedTables?: Record<string, string>;
  renamedColumns?: Record<string, Record<string, string>>;
  /** True: the upgrade is refused while a run of an earlier version is in progress. */
  refusesOpenRuns?: boolean;
  /** Initial rows, or values of added columns; must be repeatable. */
  fill?(knex: Knex): Promise<void>;
}
