import { defineConfig } from 'vitest/config';

// Kinds of tests (docs/testing.md). Unit tests and whole runs in memory (`faults`) are pure; the others may start processes and use
// the private MariaDB and the Chromium that the global setups provide once.
const globalSetup = ['./test/support/mariadb/global-setup.ts', './test/support/chromium/global-setup.ts'];

export default defineConfig({
  test: {
    reporters: ['default', './test/support/plain-line-reporter.ts'],
    // A process test on two busy cores must not fail for slowness alone; the tests themselves wait for conditions.
    testTimeout: 60_000,
    hookTimeout: 120_000,
    tags: [
      {
        name: 'nightly',
        description:
          'Left to `npm run test:all`: matrices, chaos rounds, long waits. docs/testing.md says when to use it.',
      },
    ],
    projects: [
      {
        extends: true,
        test: {
          name: 'unit',
          include: ['test/unit/**/*.test.ts'],
          setupFiles: ['./test/support/property-seed.ts'],
          // Pure tests share their modules: a worker loads each once, not once a file.
          isolate: false,
        },
      },
      // Whole runs in memory, on a clock that jumps: test/faults/README.md.
      { extends: true, test: { name: 'faults', include: ['test/faults/**/*.test.ts'] } },
      {
        extends: true,
        test: {
          name: 'contract',
          include: ['test/contract/**/*.test.ts'],
          globalSetup,
        },
      },
      // Many processes a test: more than two tests at a time would only measure the machine. A group of its own, because
      // projects of one group must agree about the workers, and the pure ones take as many as there are cores.
      {
        extends: true,
        test: {
          name: 'system',
          include: ['test/system/**/*.test.ts', 'test/chaos/**/*.test.ts'],
          globalSetup,
          maxWorkers: 2,
          sequence: { groupOrder: 1 },
          testTimeout: 180_000,
        },
      },
    ],
  },
});
