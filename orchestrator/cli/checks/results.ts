/** The result table: it fits the mapping and these products, and may be written. */
import { noRoomForNumbers } from '../../db/no-room-for-numbers.ts';
import { checkResultRights } from '../../db/result-rights.ts';
import { checkResultTable } from '../../db/result-table.ts';
import type { Check, Finding } from './check.ts';
import { ok, warning } from './check.ts';
import { findingOf } from './run-checks.ts';

export const results: Check = {
  id: 'results',
  title: 'result table',
  kinds: ['aws', 'dry'],
  alongside: true,
  needs: ['database', 'products'],
  limitMs: 20_000,
  isSlow: true,
  async run({ config, facts }) {
    const { table } = config.values.results;
    const [db, { ids }] = await Promise.all([facts.database(), facts.products()]);
    const faults: Finding[] = [];
    const keep = (error: unknown): null => {
      faults.push(findingOf(error));
      return null;
    };
    // A table that does not fit and missing rights are reported together.
    const found = await checkResultTable(db, table, config.mapping, ids).catch(keep);
    await checkResultRights(db, table, config.mapping).catch(keep);
    if (faults.length > 0) return faults;
    const open = await noRoomForNumbers(db, table, config.mapping);
    return [
      ...open.map((text) => warning(text)),
      ok(found?.exists === true ? `${table} is there and fits the mapping` : `${table} will be made by the first run`),
    ];
  },
};
