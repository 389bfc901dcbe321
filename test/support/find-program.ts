/** Finds programs on this machine. */
import { access, constants } from 'node:fs/promises';
import { delimiter, join } from 'node:path';

/** The path of the program on PATH or in one of `moreDirs`; null when it is not found. */
export async function findProgram(name: string, moreDirs: readonly string[] = []): Promise<string | null> {
  for (const dir of [...(process.env.PATH ?? '').split(delimiter), ...moreDirs]) {
    const path = join(dir, name);
    if (dir !== '' && (await exists(path, constants.X_OK))) return path;
  }
  return null;
}

/** True when the path exists and grants the given access. */
export function exists(path: string, mode = constants.F_OK): Promise<boolean> {
  return access(path, mode).then(
    () => true,
    () => false,
  );
}
