/**
 * Vitest global setup: provides the tests with the path of a Chromium. In this order: CRAWLFLEET_CHROMIUM; one on the machine,
 * or Playwright's own; the package, installed as root on Debian or Ubuntu; else an error that says what to do.
 */
import type { TestProject } from 'vitest/node';
import { exists } from '../find-program.ts';
import { findBrowser, installBrowser } from './find-browser.ts';

declare module 'vitest' {
  interface ProvidedContext {
    /** Path of a Chromium. */
    chromiumPath: string;
  }
}

// Each project loads its own copy of this module; one command searches for the browser, and installs it, once.
const KEY = Symbol.for('crawlfleet.test.chromium');
const holder = globalThis as unknown as Record<symbol, Promise<string> | undefined>;

/** Finds the browser and provides its path to the tests. */
export default async function setup(project: TestProject): Promise<void> {
  project.provide('chromiumPath', await (holder[KEY] ??= openBrowser()));
}

async function openBrowser(): Promise<string> {
  const named = process.env.CRAWLFLEET_CHROMIUM;
  if (named) {
    if (await exists(named)) return named;
    throw new Error(`CRAWLFLEET_CHROMIUM names ${named}, which is not there: let it name a Chromium, or leave it out`);
  }
  const found = (await findBrowser()) ?? (await installBrowser());
  if (found !== null) return found;
  throw new Error(
    [
      'The tests need a Chromium, and there is none here. Do one of these:',
      '  - install it: "apt-get install chromium", "dnf install chromium", "brew install chromium"',
      '  - let Playwright fetch its own: "npx playwright install chromium"',
      '  - run the tests as root on Debian or Ubuntu: they install the package themselves',
      '  - set CRAWLFLEET_CHROMIUM to the path of one',
      'Tests without a browser: npm run test:unit',
    ].join('\n'),
  );
}
