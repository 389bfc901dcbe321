/**
 * Prints one plain line after all other output: `N passed, N failed`. A file that cannot be loaded, a failing hook and
 * an uncaught error count as failed. Skipped tests are counted and named, so that none goes unnoticed. Nightly tests
 * that
 * `--tags-filter` excludes are counted on a separate line.
 */
import { relative } from 'node:path';
import type { Reporter, SerializedError, TestCase, TestModule, TestSuite, Vitest } from 'vitest/node';

export interface Tally {
  passed: number;
  failed: number;
  /** Full names of skipped tests. */
  skipped: string[];
  /** Nightly tests that the tags filter excluded. */
  nightly: number;
}

const NOTHING: Tally = { passed: 0, failed: 0, skipped: [], nightly: 0 };

export class PlainLineReporter implements Reporter {
  #tally = NOTHING;
  #filtered = false;

  onInit(vitest: Vitest): void {
    this.#filtered = (vitest.config.tagsFilter ?? []).length > 0;
    // On exit, because other reporters and the teardown print until then.
    process.once('exit', (exitCode) => {
      process.stdout.write(formatEnd(this.#tally, exitCode));
    });
  }

  onTestRunEnd(modules: readonly TestModule[], unhandledErrors: readonly SerializedError[]): void {
    this.#tally = countTests(modules, this.#filtered);
    this.#tally.failed += unhandledErrors.length;
  }
}

/** The names of skipped tests, and the plain line. A failing run never says `0 failed`, whatever the cause. */
export function formatEnd(tally: Tally, exitCode: number): string {
  const failed = exitCode !== 0 && tally.failed === 0 ? 1 : tally.failed;
  const { passed, skipped, nightly } = tally;
  const names =
    skipped.length === 0 ? '' : `\nSKIPPED, so nothing was proved by:\n${skipped.map((n) => `  ${n}\n`).join('')}\n`;
  const left = nightly === 0 ? '' : `\n${nightly} nightly tests left to npm run test:all\n`;
  return `${names}${left}${passed} passed, ${failed} failed${skipped.length > 0 ? `, ${skipped.length} skipped` : ''}\n`;
}

function countTests(modules: readonly TestModule[], filtered: boolean): Tally {
  const tally: Tally = { ...NOTHING, skipped: [] };
  for (const module of modules) {
    const before = tally.failed;
    for (const test of module.children.allTests()) addTest(tally, module, test, filtered);
    for (const suite of module.children.allSuites()) tally.failed += ownErrors(suite);
    tally.failed += ownErrors(module);
    // Other failures of a file, such as one without tests.
    if (module.state() === 'failed' && tally.failed === before) tally.failed++;
  }
  return tally;
}

/** A file that could not be loaded, or a suite with a failing hook: one failure, however many errors it reported. */
function ownErrors(suite: TestSuite | TestModule): number {
  return suite.errors().length > 0 ? 1 : 0;
}

function addTest(tally: Tally, module: TestModule, test: TestCase, filtered: boolean): void {
  switch (test.result().state) {
    case 'passed':
      tally.passed++;
      return;
    case 'failed':
      tally.failed++;
      return;
    case 'skipped':
    case 'pending':
      if (filtered && test.tags.includes('nightly')) tally.nightly++;
      else tally.skipped.push(`${relative(process.cwd(), module.moduleId)} > ${test.fullName}`);
  }
}

// Vitest loads a reporter given by path from its default export.
export default PlainLineReporter;
