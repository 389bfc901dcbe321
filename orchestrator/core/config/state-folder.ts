/** The folders that a run keeps its files in: creates them, or explains why it cannot. */
import { accessSync, constants, mkdirSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { AppError, describeError } from '../../../shared/domain/errors.ts';

/** No permission, a file in the way, a read-only disk. A full disk is another matter. */
const NOT_OURS: readonly string[] = ['EACCES', 'EPERM', 'EROFS', 'ENOTDIR', 'EEXIST'];

export const STATE_FOLDER_REMEDY =
  'Move it away, or give the user of this program the right to write there (ls -ld shows the rights)';

/** Creates the folder and its parents. Throws `folder-unwritable` when it cannot. */
export function makeStateFolder(path: string): void {
  try {
    mkdirSync(path, { recursive: true });
  } catch (error) {
    if (!NOT_OURS.includes((error as NodeJS.ErrnoException).code ?? '')) throw error;
    const text = whyUnwritable(path) ?? `${path} cannot be made: ${describeError(error)}`;
    throw new AppError('folder-unwritable', text, { cause: error, hint: STATE_FOLDER_REMEDY });
  }
}

/** Why nothing can be created in the folder, or above it while it does not exist; null when something can. */
export function whyUnwritable(path: string): string | null {
  try {
    const found = statSync(path, { throwIfNoEntry: false });
    if (found === undefined) return dirname(path) === path ? null : whyUnwritable(dirname(path));
    if (!found.isDirectory()) return `${path} is not a folder`;
    accessSync(path, constants.W_OK | constants.X_OK);
    return null;
  } catch (error) {
    // A file above it: name that one.
    if ((error as NodeJS.ErrnoException).code === 'ENOTDIR') return whyUnwritable(dirname(path));
    return `${path} cannot be written: ${describeError(error)}`;
  }
}
