/**
 * A folder for one test, removed when the test's scope ends: `using folder = tempDir()`, or call `remove` in a hook.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export interface TempDir extends Disposable {
  path: string;
  /** A path inside it. */
  file(...names: string[]): string;
  remove(): void;
}

export function tempDir(prefix = 'crawlfleet-'): TempDir {
  const path = mkdtempSync(join(tmpdir(), prefix));
  // A process that is ending may still write into the folder, which makes the first removal fail.
  const remove = (): void => rmSync(path, { recursive: true, force: true, maxRetries: 5, retryDelay: 50 });
  return { path, file: (...names) => join(path, ...names), remove, [Symbol.dispose]: remove };
}
