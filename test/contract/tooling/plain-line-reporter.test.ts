/** The plain line as vitest itself prints it. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { type CommandResult, runCommand } from '../../support/processes.ts';
import { tempDir } from '../../support/temp-dir.ts';

const VITEST = fileURLToPath(new URL('../../../node_modules/vitest/vitest.mjs', import.meta.url));
const REPORTER = fileURLToPath(new URL('../../support/plain-line-reporter.ts', import.meta.url));

/** Runs vitest on these files; `it` and `expect` are global in them. */
async function runVitest(
  files: Record<string, string>,
  more: string[] = [],
): Promise<CommandResult & { last: string }> {
  using folder = tempDir();
  for (const [name, source] of Object.entries(files)) {
    mkdirSync(dirname(folder.file(name)), { recursive: true });
    writeFileSync(folder.file(name), source);
  }
  const args = [VITEST, 'run', '--globals', '--root', folder.path, '--reporter=default', `--reporter=${REPORTER}`];
  const result = await runCommand(process.execPath, [...args, ...more], {
    cwd: folder.path,
    // The inner run must not take itself for a part of the outer one.
    env: { VITEST: undefined, VITEST_POOL_ID: undefined, VITEST_WORKER_ID: undefined, CI: '1' },
  });
  return { ...result, last: result.stdout.trimEnd().split('\n').at(-1) ?? '' };
}

const PASSES = `it('passes', () => expect(1).toBe(1));`;

it('counts passed tests over all files', async () => {
  const { exitCode, last } = await runVitest({ 'a.test.js': PASSES, 'b.test.js': PASSES });
  expect([exitCode, last]).toEqual([0, '2 passed, 0 failed']);
});

it('counts failed tests, files that do not load, failed hooks and uncaught errors as failed', async () => {
  const { exitCode, last } = await runVitest({
    'fails.test.js': `${PASSES} it('fails', () => expect(1).toBe(2));`,
    'broken.test.js': `import './nothing-here.js';`,
    'hook.test.js': `describe('s', () => { afterAll(() => { throw new Error('hook'); }); ${PASSES} });`,
    'none.test.js': ``,
    'uncaught.test.js': `it('passes', async () => { Promise.reject(new Error('uncaught')); await new Promise((r) => setTimeout(r, 50)); });`,
  });
  expect([exitCode, last]).toEqual([1, '3 passed, 5 failed']);
});

it('is loud about skipped tests', async () => {
  const { stdout, last } = await runVitest({
    'a.test.js': `${PASSES} it.skip('left out', () => {}); it.todo('later');`,
  });
  expect(last).toBe('1 passed, 0 failed, 2 skipped');
  expect(stdout).toContain('SKIPPED');
  expect(stdout).toContain('a.test.js > left out');
});

it('counts nightly tests that the tags filter leaves out, and still names skipped ones', async () => {
  const { stdout, last } = await runVitest(
    {
      'vitest.config.mjs': `export default { test: { tags: [{ name: 'nightly' }] } };`,
      'a.test.js': `${PASSES} it('long', { tags: ['nightly'] }, () => {}); it.skip('left out', () => {});`,
    },
    ['--tags-filter=!nightly'],
  );
  expect(last).toBe('1 passed, 0 failed, 1 skipped');
  expect(stdout).toContain('1 nightly tests left to npm run test:all');
  expect(stdout).not.toContain('a.test.js > long');
});

it('reports failure when the set-up of all tests fails', async () => {
  const { exitCode, last } = await runVitest({
    'a.test.js': PASSES,
    'setup.js': `export function setup() { throw new Error('no database'); }`,
    'vitest.config.js': `export default { test: { globalSetup: ['./setup.js'] } };`,
  });
  expect([exitCode, last]).toEqual([1, '0 passed, 1 failed']);
});

it('reports failure when there are no tests', async () => {
  const { exitCode, last } = await runVitest({ 'a.txt': '' });
  expect([exitCode, last]).toEqual([1, '0 passed, 1 failed']);
});
