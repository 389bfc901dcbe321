/** Where a configuration's runs keep their files: the folder `.crawlfleet` beside it. */
import { dirname, join } from 'node:path';
import type { Config } from './load-config.ts';

/** Where the files of runs are: beside the configuration. */
export function stateDirOf(configFile: string) {
  const root = join(dirname(configFile), '.crawlfleet');
  return {
    root,
    run: (runId: string): string => join(root, 'runs', runId),
    sandboxes: join(root, 'sandbox'),
    sandbox: (runId: string): string => join(root, 'sandbox', runId),
    prices: join(root, 'prices.json'),
    /** Build results that are kept: the Node that instances run. */
    cache: join(root, 'cache'),
  };
}

export const logFileOf = (config: Config, runId: string): string =>
  join(stateDirOf(config.file).run(runId), 'log.ndjson');
