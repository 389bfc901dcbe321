import { defineConfig } from 'vitest/config';

/**
 * What `npm test` leaves to `npm run test:all`: the slowest files, most of them whole runs on real processes whose promises
 * are also proved in memory (docs/testing.md). The seconds are of a busy machine with two cores, 2026-11-22.
 */
const LONG = [
  'test/chaos/chaos.test.ts', // 318
  'test/system/instance-faults.test.ts', // 253
  'test/system/database-faults.test.ts', // 201
  'test/system/robots.test.ts', // 193
  'test/system/bans.test.ts', // 187
  'test/contract/clients/other-clients.test.ts', // 184
  'test/system/resume.test.ts', // 174
  'test/system/results.test.ts', // 168
  'test/system/browser.test.ts', // 166
  'test/contract/faults-sdk/whole-run.test.ts', // 156
  'test/system/sandbox-dies.test.ts', // 140
  'test/system/canary.test.ts', // 131
  'test/system/uploads.test.ts', // 120
  'test/system/durable.test.ts', // 100
];

// Kinds of tests (docs/testing.md). Unit tests and whole runs in memory (`faults`) are pure; the others may start processes and use
// the private MariaDB and the Chromium that the global setups provide once.
const globalSetup = ['./test/support/mariadb/global-setup.ts', './test/support/chromium/global-setup.ts'];

/**
 * Many processes a test: more than two tests at a time would only measure the machine. A group of its own, because projects of one
 * group must agree about the workers, and the pure ones take as many as there are cores.
 */
const wholeRuns = (groupOrder: number) => ({
  globalSetup,
  maxWorkers: 2,
  sequence: { groupOrder },
  testTimeout: 180_000,
});

export default defineConfig({
  test: {
    reporters: ['default', './test/support/plain-line-reporter.ts'],
    // A process test on two busy cores must not fail for slowness alone; the tests themselves wait for conditions.
    testTimeout: 60_000,
    hookTimeout: 120_000,
    projects: [
      {
        extends: true,
        test: {
          name: 'unit',
          include: ['test/unit/**/*.test.ts'],
          setupFiles: ['./test/support/property-seed.ts'],
        },
      },
      // Whole runs in memory, on a clock that jumps: test/faults/README.md.
      { extends: true, test: { name: 'faults', include: ['test/faults/**/*.test.ts'] } },
      {
        extends: true,
        test: {
          name: 'contract',
          include: ['test/contract/**/*.test.ts'],
          exclude: LONG,
          globalSetup,
        },
      },
      {
        extends: true,
        test: {
          ...wholeRuns(1),
          name: 'system',
          include: ['test/system/**/*.test.ts', 'test/chaos/**/*.test.ts'],
          exclude: LONG,
        },
      },
      { extends: true, test: { ...wholeRuns(2), name: 'long', include: LONG } },
    ],
  },
});
