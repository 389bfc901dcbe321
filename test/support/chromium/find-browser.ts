/** The Chromium of the tests: found as the program finds its own, and installed as root on Debian. */
import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { promisify } from 'node:util';
import { findBrowser } from '../../../crawl-api/open-sources.ts';
import { installDebianPackage } from '../debian-package.ts';

const PACKAGE = 'chromium-headless-shell';
const VERSION_TIMEOUT_MS = 20_000;

/**
 * Path of a Chromium that starts. Throws with what to install where there is none, and no root on Debian to install it.
 */
export async function findTestBrowser(): Promise<string> {
  const named = process.env.CRAWLFLEET_CHROMIUM || null;
  const found = await findBrowser(named).catch(() => null);
  // Instances on AWS use the headless shell, with half the CPU time: it is installed beside another Chromium, too.
  const isMissing = named === null && !found?.endsWith(PACKAGE);
  const isInstalled = isMissing && (await isDebian()) && (await installDebianPackage(PACKAGE));
  const path = found !== null && !isInstalled ? found : await findBrowser(named);
  // On Ubuntu the program of that name may only be a stub that asks for the snap.
  const { stdout } = await promisify(execFile)(path, ['--version'], { timeout: VERSION_TIMEOUT_MS });
  if (!/\d+\.\d+/.test(stdout)) throw new Error(`${path} --version printed no version: ${stdout}`);
  return path;
}

async function isDebian(): Promise<boolean> {
  return /^ID=debian$/m.test(await readFile('/etc/os-release', 'utf8').catch(() => ''));
}
