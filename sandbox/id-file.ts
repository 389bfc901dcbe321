/** A set of ids in a file of the data folder: a sandbox that replaces another one knows what that one knew. */
import { appendFile, readFile } from 'node:fs/promises';

export interface IdFile {
  has(id: string): boolean;
  /** Resolves when the id is written. */
  add(id: string): Promise<void>;
}

/** @param given ids that count too, without being written */
export async function openIdFile(file: string, given: Iterable<string> = []): Promise<IdFile> {
  const lines = (await readFile(file, 'utf8').catch(() => '')).split('\n');
  const ids = new Set([...lines.filter((line) => line !== ''), ...given]);
  return {
    has: (id) => ids.has(id),
    async add(id) {
      await appendFile(file, `${id}\n`, { mode: 0o600 });
      ids.add(id);
    },
  };
}
