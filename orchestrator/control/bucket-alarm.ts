/** What follows when the bucket of a run is lost, and when it is there again. */
import type { Core } from './model/core.ts';
import { setStallCause, stallFacts } from './model/stall-causes.ts';

/** For `watchStore`: keeps the fault for the watchdog and tells the user. */
export function bucketWatcher(core: Pick<Core, 'processState' | 'clock' | 'alarm'>): (detail: string | null) => void {
  return (detail) => {
    setStallCause(core.processState.stallCauses, 'lost-bucket', detail, core.clock.now());
    const text =
      detail === null
        ? 'the bucket can be used again; what instances have kept meanwhile comes in'
        : `the bucket cannot be used, so results stay on the instances: ${detail}. ${stallFacts('lost-bucket').remedy}`;
    // An alarm that cannot be stored is in the log.
    core.alarm(text).catch(() => undefined);
  };
}
