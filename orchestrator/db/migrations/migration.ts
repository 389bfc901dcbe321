/** One step of the schema. */

import type { Knex } from 'knex';

export interface Migration {
  version: number;
  name: string;
  tables: Record<string, (table: Knex.CreateTableBuilder) => void>;
  /** Columns added to tables of earlier migrations, by table and name. */
  columns?: Record<string, Record<string, (table: Knex.AlterTableBuilder) => void>>;
  /** New names by old ones; columns by the new name of their table. Renamed only while the old name is there and the new one is not. */
  renamedTables?: Record<string, string>;
  renamedColumns?: Record<string, Record<string, string>>;
  /** True: an upgrade is refused while a run of the earlier version is under way. */
  refusesOpenRuns?: boolean;
  /** First rows, or values of what was added; must be repeatable. */
  fill?(knex: Knex): Promise<void>;
}
