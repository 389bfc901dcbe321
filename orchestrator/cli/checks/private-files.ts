/** Whether other users of this machine can read the files of runs. */
import { statSync } from 'node:fs';
import { parseDatabaseUrl } from '../../db/database-url.ts';
import { stateDirOf } from '../run-session.ts';
import type { Check, Finding } from './check.ts';
import { ok, warning } from './check.ts';

/** Permission bits of the group and of others. */
const OTHERS = 0o077;

export const privateFiles: Check = {
  id: 'files',
  title: 'files of runs',
  kinds: ['aws', 'dry'],
  async run({ config }) {
    const address = parseDatabaseUrl(config.values.database.url);
    return judgeFiles([
      { path: stateDirOf(config.file).root, holds: 'logs and reports' },
      ...(address.engine === 'sqlite'
        ? [{ path: address.file, holds: "the results and every run's private key" }]
        : []),
    ]);
  },
};

/** Files that do not exist yet are created readable for their owner alone. */
export function judgeFiles(files: readonly { path: string; holds: string }[]): Finding[] {
  const open = files.flatMap(({ path, holds }) => {
    const found = statSync(path, { throwIfNoEntry: false });
    if (found === undefined || (found.mode & OTHERS) === 0) return [];
    const mode = (found.mode & 0o777).toString(8);
    const text = `${path} is open to other users of this machine (mode ${mode}): it holds ${holds}`;
    return [warning(text, `chmod ${found.isDirectory() ? '700' : '600'} ${path}`)];
  });
  return open.length > 0 ? open : [ok('only their owner can read them')];
}
