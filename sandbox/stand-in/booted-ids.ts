/** The booted instances, in a file of the data folder: a sandbox that replaces another boots none of them again. */
import { appendFile, readFile } from 'node:fs/promises';

export interface BootedIds {
  has(id: string): boolean;
  /** Resolves when the id is written; call it before the boot. */
  add(id: string): Promise<void>;
}

export async function openBootedIds(file: string): Promise<BootedIds> {
  const ids = new Set((await readFile(file, 'utf8').catch(() => '')).split('\n').filter((line) => line !== ''));
  return {
    has: (id) => ids.has(id),
    async add(id) {
      await appendFile(file, `${id}\n`, { mode: 0o600 });
      ids.add(id);
    },
  };
}
