/** The rights of the database user, tested on a table of our own that is dropped afterwards. */
import { checkRights } from '../../db/rights.ts';
import type { Check } from './check.ts';
import { ok } from './check.ts';

export const databaseRights: Check = {
  id: 'database-rights',
  title: 'rights of the database user',
  kinds: ['aws', 'dry'],
  alongside: true,
  needs: ['database'],
  async run({ facts }) {
    await checkRights(await facts.database());
    return [ok('CREATE, ALTER, INDEX, INSERT, UPDATE, SELECT, DELETE and DROP were tested on a table of our own')];
  },
};
