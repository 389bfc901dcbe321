/** Where the programs of a run are found that no shell has started: a service and cron have a short PATH of their own. */
import { accessSync, constants, statSync } from 'node:fs';
import { dirname, isAbsolute, join } from 'node:path';

export interface Programs {
  /** A value for PATH: the folders of npm and of Node, then those that every system has. */
  path: string;
  /** The npm that the user has; null when there is none. A run fetches the Node of its instances with it. */
  npm: string | null;
}

const USUAL = ['/usr/local/sbin', '/usr/local/bin', '/usr/sbin', '/usr/bin', '/sbin', '/bin'];

/** @param path PATH of the user who asks. npm's folder comes first: the Node that it was installed with is there, too. */
export function findPrograms(node: string, path: string | undefined): Programs {
  const folders = (path ?? '').split(':').filter((folder) => isAbsolute(folder));
  const npm = folders.map((folder) => join(folder, 'npm')).find(isProgram) ?? null;
  const own = [...(npm === null ? [] : [dirname(npm)]), dirname(node)];
  return { path: [...new Set([...own, ...USUAL])].join(':'), npm };
}

/** For the file that is printed. */
export const NO_NPM =
  '# No npm is on your PATH. A run on AWS fetches the Node of its instances with npm, once for each version: print this again when you\n' +
  '# have it, or put the file into .crawlfleet/cache by hand ("orchestrator bundle" says which).';

function isProgram(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return statSync(file).isFile();
  } catch {
    return false;
  }
}
