import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { defineConfig } from 'vitest/config';

// Kinds of tests (docs/testing.md). Unit tests and whole runs in memory (`faults`) are pure; the others may start
// processes and use the private MariaDB and the Chromium that the global setups provide once.
const globalSetup = ['./test/support/mariadb/global-setup.ts', './test/support/chromium/global-setup.ts'];

// Workers, and the programs that tests start, keep what V8 has compiled: each start then costs half.
process.env.NODE_COMPILE_CACHE ??= join(tmpdir(), 'crawlfleet-test-compile-cache');

export default defineConfig({
  test: {
    reporters: ['default', './test/support/plain-line-reporter.ts'],
    // A process test on two busy cores must not fail for slowness alone; the tests themselves wait for conditions.
    testTimeout: 60_000,
    hookTimeout: 120_000,
    // Most tests wait for a process, a server or a browser: twice as many workers as the two cores of the machine that
    // CI has.
    maxWorkers: 4,
    tags: [
      {
        name: 'nightly',
        description:
          'Left to `npm run test:all`: matrices, chaos rounds, long waits. docs/testing.md says when to use it.',
      },
    ],
    // With `isolate: false` a worker loads each module once, not once a file: loading takes a fifth of the time
    // otherwise.
    projects: [
      {
        extends: true,
        test: {
          name: 'unit',
          include: ['test/unit/**/*.test.ts'],
          setupFiles: ['./test/support/property-seed.ts'],
          isolate: false,
        },
      },
      // Whole runs in memory, on a clock that jumps: test/faults/README.md.
      { extends: true, test: { name: 'faults', include: ['test/faults/**/*.test.ts'], isolate: false } },
      {
        extends: true,
        test: {
          name: 'contract',
          include: ['test/contract/**/*.test.ts'],
          isolate: false,
          globalSetup,
        },
      },
      {
        extends: true,
        test: {
          name: 'system',
          include: ['test/{system,browser,chaos}/**/*.test.ts'],
          isolate: false,
          globalSetup,
          testTimeout: 180_000,
        },
      },
    ],
  },
});
