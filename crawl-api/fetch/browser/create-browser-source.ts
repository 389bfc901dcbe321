/** Connects proxy and browser to a source of rendered pages. */
import { mkdir, readdir, rm } from 'node:fs/promises';
import path from 'node:path';
import { chromium } from 'playwright';
import { PROFILE_PREFIX } from './browser-session.ts';
import { BrowserSource, type BrowserSourceOptions } from './browser-source.ts';
import { startFilterProxy } from './filter-proxy.ts';

export { expectBy } from './expected-elements.ts';

/** Where Playwright would install its own browser. */
export const playwrightPath = (): string => chromium.executablePath();

/** Starts the proxy and the browser; throws an AppError with a hint when the browser does not start. */
export async function createBrowserSource(options: BrowserSourceOptions): Promise<BrowserSource> {
  await mkdir(options.profileDirectory, { recursive: true, mode: 0o700 });
  for (const name of await readdir(options.profileDirectory)) {
    if (name.startsWith(PROFILE_PREFIX))
      await rm(path.join(options.profileDirectory, name), { recursive: true, force: true });
  }
  const proxy = await startFilterProxy({
    localAddress: options.localAddress,
    guard: options.guard,
    timeoutMs: options.settings.timeoutMs,
  });
  const source = new BrowserSource(options, proxy);
  try {
    await source.start();
    return source;
  } catch (error) {
    await source.close();
    throw error;
  }
}
