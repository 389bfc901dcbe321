/** Our own tables and their version. */
import { isMigrated } from '../../db/migrate.ts';
import type { Check } from './check.ts';
import { ok } from './check.ts';

export const schema: Check = {
  id: 'schema',
  title: 'crawlfleet tables',
  kinds: ['aws', 'dry'],
  needs: ['database'],
  async run({ facts }) {
    // Throws if the tables are newer than this program.
    const isCurrent = await isMigrated(await facts.database());
    return [ok(isCurrent ? 'there, and of this version' : 'missing or of an earlier version: the next run makes them')];
  },
};
