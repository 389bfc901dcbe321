import { defineConfig } from 'vitest/config';

// Three kinds of tests (docs/testing.md). Unit tests are pure; the others may start processes and use the private MariaDB
// that the global setup starts once. `faults` rows run where their level says.
export default defineConfig({
  test: {
    reporters: ['default', './test/support/plain-line-reporter.ts'],
    // A process test on two busy cores must not fail for slowness alone; the tests themselves wait for conditions.
    testTimeout: 60_000,
    hookTimeout: 120_000,
    projects: [
      { extends: true, test: { name: 'unit', include: ['test/unit/**/*.test.ts'], testTimeout: 15_000 } },
      {
        extends: true,
        test: {
          name: 'contract',
          include: ['test/contract/**/*.test.ts'],
          globalSetup: ['test/support/mariadb/global-setup.ts'],
        },
      },
      {
        extends: true,
        test: {
          name: 'system',
          include: ['test/system/**/*.test.ts', 'test/faults/**/*.test.ts'],
          globalSetup: ['test/support/mariadb/global-setup.ts'],
          // Whole runs with many processes each: more than two at a time would only measure the machine.
          maxWorkers: 2,
          testTimeout: 180_000,
        },
      },
    ],
  },
});
