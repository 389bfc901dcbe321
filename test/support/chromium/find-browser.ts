/** Finds a Chromium on the machine; installs one as root on Debian and Ubuntu. */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { installDebianPackage } from '../debian-package.ts';
import { exists, findProgram } from '../find-program.ts';

const NAMES = ['chromium', 'chromium-browser', 'google-chrome', 'google-chrome-stable'];
const EXTRA_DIRS = ['/usr/bin', '/usr/local/bin', '/snap/bin'];
const VERSION_TIMEOUT_MS = 20_000;

/** Path of a Chromium that starts: the machine's own, then Playwright's; null when there is none. */
export async function findBrowser(): Promise<string | null> {
  for (const name of NAMES) {
    const path = await findProgram(name, EXTRA_DIRS);
    if (path !== null && (await starts(path))) return path;
  }
  const { chromium } = await import('playwright');
  const own = chromium.executablePath();
  return own !== '' && (await exists(own)) && (await starts(own)) ? own : null;
}

/** Installs the package where no user has to confirm it; null elsewhere. */
export async function installBrowser(): Promise<string | null> {
  return (await installDebianPackage('chromium')) ? findBrowser() : null;
}

/** On Ubuntu the program of that name may only be a stub that asks for the snap. */
async function starts(path: string): Promise<boolean> {
  return promisify(execFile)(path, ['--version'], { timeout: VERSION_TIMEOUT_MS }).then(
    ({ stdout }) => /\d+\.\d+/.test(stdout),
    () => false,
  );
}
