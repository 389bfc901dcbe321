/** NOT NULL columns of the user's table whose numbers may have to wait for the run's whole column. */
import { chainsOf, type Field, isMachineRead, type Mapping } from '../../../shared/domain/mapping.ts';
import type { Database } from './connect.ts';
import { inQuery } from './retry.ts';
import { findColumn, readTable } from './table-info.ts';

/** A warning per such column; none when the table does not exist. */
export async function noRoomForNumbers(db: Database, table: string, mapping: Mapping): Promise<string[]> {
  const info = await inQuery(db, (knex) => readTable(knex, db, table));
  if (!info) return [];
  const fields = mapping.pages.flatMap((page) => page.fields.filter(mayBeOpen));
  const columns = new Set(fields.flatMap(({ name }) => findColumn(info, name) ?? []));
  return [...columns]
    .filter(({ nullable }) => !nullable)
    .map(
      ({ name }) =>
        `column ${name} of ${table} is NOT NULL: a product whose number can be read in two ways (1.234) will be failed(load). ` +
        'Make the column nullable, or name the decimal mark in the mapping: number: { decimal: "," }',
    );
}

/** Numbers in attributes, JSON and JSON-LD are rarely ambiguous. */
const mayBeOpen = (field: Field): boolean =>
  chainsOf(field).some(
    (steps) =>
      !isMachineRead(steps) &&
      steps.some((step) => (step.type === 'number' || step.type === 'price') && step.decimal === undefined),
  );
