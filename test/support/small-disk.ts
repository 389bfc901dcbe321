/** A disk that a test may fill: a small tmpfs. */
import { execFileSync } from 'node:child_process';
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { tempDir } from './temp-dir.ts';

export interface SmallDisk {
  path: string;
  /** A lazy unmount: a process that was just killed may still hold the mount for a moment. */
  unmount(): void;
}

/** @param size as `mount -o size=` takes it. Null where this user may not mount. */
export function mountSmallDisk(size: string): SmallDisk | null {
  const folder = tempDir('crawlfleet-disk-');
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${size}`, 'crawlfleet-test', folder.path], { stdio: 'ignore' });
  } catch {
    folder.remove();
    return null;
  }
  return {
    path: folder.path,
    unmount() {
      execFileSync('umount', ['--lazy', folder.path]);
      folder.remove();
    },
  };
}

/** Fills the disk completely. The returned function frees the space. */
export function fillDisk(path: string): () => void {
  const file = join(path, 'filler');
  writeFileSync(file, '', { flag: 'a' });
  for (let bytes = 1 << 20; bytes >= 1; bytes >>= 1) {
    try {
      for (;;) writeFileSync(file, Buffer.alloc(bytes), { flag: 'a' });
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error;
    }
  }
  return () => rmSync(file);
}
