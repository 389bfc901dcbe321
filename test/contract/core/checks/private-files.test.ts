/** A run's files are readable by their owner only. */
import { chmodSync, mkdirSync, statSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { judgeFiles } from '../../../../orchestrator/core/checks/machine.ts';
import { runCommand } from '../../../support/processes.ts';
import { tempDir } from '../../../support/temp-dir.ts';

const MAIN = fileURLToPath(new URL('../../../../orchestrator/main.ts', import.meta.url));

it('files and folders that the program makes are accessible to no other user', async () => {
  using folder = tempDir();
  const target = folder.file('fleet');
  // The widest umask.
  const script = 'umask 000; exec "$0" "$@"';
  const made = await runCommand('/bin/sh', ['-c', script, process.execPath, MAIN, 'init', target], {
    cwd: folder.path,
  });
  expect(made.exitCode, made.stderr).toBe(0);
  expect(statSync(target).mode & 0o777).toBe(0o700);
  expect(statSync(`${target}/fleet.yaml`).mode & 0o777).toBe(0o600);
});

it('doctor names those that are accessible, and how to restrict them', () => {
  using folder = tempDir();
  const [state, file] = [folder.file('.crawlfleet'), folder.file('fleet.db')];
  mkdirSync(state, { mode: 0o700 });
  writeFileSync(file, '');
  chmodSync(file, 0o644);
  const files = [state, file, folder.file('none')].map((path) => ({ path, holds: 'keys' }));
  expect(judgeFiles(files)).toEqual([
    {
      level: 'warning',
      text: expect.stringContaining(`${file} is open to other users`) as string,
      remedy: `chmod 600 ${file}`,
    },
  ]);
  chmodSync(file, 0o600);
  expect(judgeFiles(files)).toEqual([{ level: 'ok', text: 'only their owner can read them' }]);
});
