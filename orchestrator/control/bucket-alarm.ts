/** Reacts when the bucket of a run is lost, and when it is available again. */
import type { Core } from './model/core.ts';
import { setStallCause, stallFacts } from './model/stall-causes.ts';

/** For `watchStore`: records the stall cause for the watchdog and raises an alarm. */
export function bucketWatcher(core: Pick<Core, 'processState' | 'clock' | 'alarm'>): (detail: string | null) => void {
  return (detail) => {
    setStallCause(core.processState.stallCauses, 'lost-bucket', detail, core.clock.now());
    const text =
      detail === null
        ? 'the bucket can be used again; instances upload the results they have kept'
        : `the bucket cannot be used, so results stay on the instances: ${detail}. ${stallFacts('lost-bucket').remedy}`;
    // An alarm that cannot be stored is in the log.
    core.alarm(text).catch(() => undefined);
  };
}
