/** What every use case of a run works with, from the command to the loop: one object, handed on as it is. */
import type { Caller } from '../caller.ts';
import type { Config, Environment } from '../config/load-config.ts';
import type { Database } from '../db/connect.ts';
import type { RunLock } from '../lookup/run-lock.ts';
import type { Stores } from '../model/stores.ts';

export interface RunContext extends Caller {
  config: Config;
  environment: Environment;
  database: Database;
  stores: Stores;
  /** Held for the locks of the run's site and result table: every write carries its fence. */
  lock: RunLock;
}
