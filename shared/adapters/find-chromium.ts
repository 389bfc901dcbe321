/** Finds the browser that renders pages. */
import { isProgram } from './is-program.ts';
import path from 'node:path';
import { AppError } from '../domain/errors.ts';

const NAMES = ['chromium', 'chromium-browser', 'google-chrome-stable', 'google-chrome', 'chrome'];
const FOLDERS = ['/usr/bin', '/usr/local/bin', '/opt/google/chrome', '/snap/bin'];

/** Renders the same with about half the CPU time and memory. (Debian's program in /usr/bin is a wrapper script.) */
const HEADLESS_SHELLS = ['/usr/lib/chromium/chromium-headless-shell'];

const HINT =
  'Install Chromium (on Debian: apt-get install --no-install-recommends chromium-headless-shell; or: npx playwright install --with-deps chromium), ' +
  'or choose site.render: http.';

export interface ChromiumSearch {
  /** The only path to use, when the user set one. */
  named?: string | undefined;
  /** Where Playwright installs its own; Playwright's `chromium.executablePath()`. */
  playwrightPath: () => string;
  isExecutable?: (file: string) => boolean;
}

/** The executable's path; when there is none, throws an AppError that says what to install. */
export function findChromium({ named, playwrightPath, isExecutable = isProgram }: ChromiumSearch): string {
  if (named !== undefined && named !== '') {
    if (isExecutable(named)) return named;
    throw new AppError('platform', `the browser ${named} does not exist or is not executable`, { hint: HINT });
  }
  const candidates = [...HEADLESS_SHELLS, ...FOLDERS.flatMap((folder) => NAMES.map((name) => path.join(folder, name)))];
  const found =
    candidates.find(isExecutable) ?? [safely(playwrightPath)].find((file) => file !== '' && isExecutable(file));
  if (found !== undefined) return found;
  throw new AppError('platform', 'no Chromium is installed on this machine', { hint: HINT });
}

/** Playwright throws on systems without a supported browser. */
function safely(give: () => string): string {
  try {
    return give();
  } catch {
    return '';
  }
}
