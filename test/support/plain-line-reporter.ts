/**
 * Prints one plain line after everything else: `N passed, N failed`. A file that cannot be loaded, a hook that fails and
 * an error nobody caught count as failed; skipped tests are counted and named, so that none is skipped in silence.
 */
import { relative } from 'node:path';
import type { Reporter, SerializedError, TestCase, TestModule, TestSuite } from 'vitest/node';

export interface Tally {
  passed: number;
  failed: number;
  /** Full names of skipped tests. */
  skipped: string[];
}

export class PlainLineReporter implements Reporter {
  #tally: Tally = { passed: 0, failed: 0, skipped: [] };

  onInit(): void {
    // At the very end, because other reporters and the teardown print until then.
    process.once('exit', (exitCode) => {
      process.stdout.write(formatEnd(this.#tally, exitCode));
    });
  }

  onTestRunEnd(modules: readonly TestModule[], unhandledErrors: readonly SerializedError[]): void {
    this.#tally = countTests(modules);
    this.#tally.failed += unhandledErrors.length;
  }
}

/** The skipped tests by name, and the plain line. A run that fails never says `0 failed`, whatever made it fail. */
export function formatEnd(tally: Tally, exitCode: number): string {
  const failed = exitCode !== 0 && tally.failed === 0 ? 1 : tally.failed;
  const { passed, skipped } = tally;
  const names =
    skipped.length === 0 ? '' : `\nSKIPPED, so nothing was proved by:\n${skipped.map((n) => `  ${n}\n`).join('')}\n`;
  return `${names}${passed} passed, ${failed} failed${skipped.length > 0 ? `, ${skipped.length} skipped` : ''}\n`;
}

export function countTests(modules: readonly TestModule[]): Tally {
  const tally: Tally = { passed: 0, failed: 0, skipped: [] };
  for (const module of modules) {
    const before = tally.failed;
    for (const test of module.children.allTests()) addTest(tally, module, test);
    for (const suite of module.children.allSuites()) tally.failed += ownErrors(suite);
    tally.failed += ownErrors(module);
    // Whatever else makes a file fail, such as having no tests in it.
    if (module.state() === 'failed' && tally.failed === before) tally.failed++;
  }
  return tally;
}

/** A file that could not be loaded, or a hook of a suite that failed: one failure, however many errors it left. */
function ownErrors(suite: TestSuite | TestModule): number {
  return suite.errors().length > 0 ? 1 : 0;
}

function addTest(tally: Tally, module: TestModule, test: TestCase): void {
  switch (test.result().state) {
    case 'passed':
      tally.passed++;
      return;
    case 'failed':
      tally.failed++;
      return;
    case 'skipped':
    case 'pending':
      tally.skipped.push(`${relative(process.cwd(), module.moduleId)} > ${test.fullName}`);
  }
}

// Vitest loads a reporter that is named by its path from the default export.
export default PlainLineReporter;
