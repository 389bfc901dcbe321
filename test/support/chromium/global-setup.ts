/** Vitest global setup: provides the tests with the path of a Chromium, the same for all projects of a command. */
import type { TestProject } from 'vitest/node';
import { AppError, describeError } from '../../../shared/domain/errors.ts';
import { findTestBrowser } from './find-browser.ts';

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
  try {
    return await findTestBrowser();
  } catch (error) {
    const hint = error instanceof AppError ? ` ${error.hint ?? ''}` : '';
    throw new Error(
      `The tests need a Chromium, and ${describeError(error)}.${hint} As root on Debian they install it themselves; ` +
        'CRAWLFLEET_CHROMIUM may name one; npm run test:unit needs none.',
      { cause: error },
    );
  }
}
