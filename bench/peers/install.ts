/**
 * Installs the peers that the benches compare with, once, from their own lockfile: the project does not depend on them.
 */
import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const FOLDER = fileURLToPath(new URL('.', import.meta.url));

/** Path of a program in this folder, with its dependencies installed. */
export function peerProgram(file: string): string {
  if (!existsSync(`${FOLDER}node_modules/.package-lock.json`)) {
    process.stdout.write('  installing the peers (this happens once) …\n');
    execFileSync('npm', ['ci', '--no-audit', '--no-fund', '--ignore-scripts'], { cwd: FOLDER, stdio: 'ignore' });
  }
  return FOLDER + file;
}
