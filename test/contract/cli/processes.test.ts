/** Processes of the schedule and of the page's buttons: real commands, their exit and what they have printed. */
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { expect, it } from 'vitest';
import { createProcesses } from '../../../orchestrator/cli/processes.ts';
import { tempDir } from '../../support/temp-dir.ts';

it('reports the error that a command printed, and knows the process as alive until then', async () => {
  using folder = tempDir('crawlfleet-processes-');
  const processes = createProcesses(
    {
      launcher: resolve('orchestrator/main.ts'),
      configPath: folder.file('missing.yaml'),
      processEnvironment: process.env,
      dryRun: true,
    },
    'a/b c',
  );
  const { runner, ended, logFile } = processes.run(1_000, 2_000);
  expect(processes.stateOf(runner)).toBe('alive');
  expect(processes.exitOf(runner)).toBeUndefined();
  const exit = await ended;
  // It has read its start, and then its configuration.
  expect(exit).toMatchObject({ code: 4, reason: expect.stringContaining('cannot read the configuration') });
  expect(exit.hint).not.toBe('');
  expect(processes.exitOf(runner)).toEqual(exit);
  expect(processes.stateOf(runner)).toBe('dead');
  expect(readFileSync(logFile, 'utf8')).toContain('cannot read the configuration');
});
