/**
 * Replaces a function of a Node module for one test, also for modules that imported it by name. `vi.mock` may come too
 * late: test files share the modules of their worker, so an earlier file may have loaded the one under test.
 */
import { syncBuiltinESMExports } from 'node:module';
import { onTestFinished } from 'vitest';

/** `module` is a default export, as `fs` of `import fs from 'node:fs'`. The end of the test puts the function back. */
export function replaceBuiltin<M extends object, K extends keyof M>(module: M, name: K, replacement: M[K]): void {
  const original = module[name];
  const set = (value: M[K]): void => {
    module[name] = value;
    syncBuiltinESMExports();
  };
  set(replacement);
  onTestFinished(() => set(original));
}
