/** What every use case of a run works with, from the command to the loop: one object, handed on as it is. */
import type { Caller } from '../caller.ts';
import type { Environment } from '../config/load-config.ts';
import type { Features } from '../feature.ts';
import type { RunLock } from '../lookup/run-lock.ts';
import type { EventPlace } from '../run-events.ts';

export interface RunContext extends Caller, EventPlace {
  environment: Environment;
  /** The features, which listen to the run. */
  features: Features;
  /** Held for the locks of the run's site and result table: every write carries its fence. */
  lock: RunLock;
}
