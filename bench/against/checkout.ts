/** A folder with another revision of this repository, ready to run. */
import { execFileSync } from 'node:child_process';
import { readFileSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { tempDir, type TempDir } from '../../test/support/temp-dir.ts';

/** The folder of this checkout. */
export const OWN_TREE = fileURLToPath(new URL('../../', import.meta.url));

/** The full hash of a revision; null when git knows none by this name. */
export function commitOf(revision: string): string | null {
  try {
    return git('rev-parse', '--verify', '--quiet', '--end-of-options', `${revision}^{commit}`).trim();
  } catch {
    return null;
  }
}

/**
 * A clone in a temporary folder, which leaves nothing in this repository. Its dependencies are those of its own
 * lockfile: the installed ones of this checkout where that is the same, else fresh ones from `npm ci`.
 */
export function checkOut(commit: string): TempDir {
  const tree = tempDir('crawlfleet-against-');
  try {
    git('clone', '--quiet', '--shared', '--no-checkout', OWN_TREE, tree.path);
    git('-C', tree.path, 'checkout', '--quiet', '--detach', commit);
    const lockOf = (folder: string): string => readFileSync(join(folder, 'package-lock.json'), 'utf8');
    if (lockOf(tree.path) === lockOf(OWN_TREE)) symlinkSync(join(OWN_TREE, 'node_modules'), tree.file('node_modules'));
    else
      execFileSync('npm', ['ci', '--no-audit', '--no-fund'], {
        cwd: tree.path,
        stdio: ['ignore', 'ignore', 'inherit'],
      });
    return tree;
  } catch (error) {
    tree.remove();
    throw error;
  }
}

const git = (...args: string[]): string =>
  execFileSync('git', args, { cwd: OWN_TREE, encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'] });
