/** The record of the due times listens to the runs that they start. */
import { AppError } from '../../../shared/domain/errors.ts';
import { ownName } from '../../core/lookup/process-name.ts';
import type { RunEvents } from '../../core/run-events.ts';
import { ScheduleStore } from './schedule-store.ts';

export const dueTimesOfRuns: RunEvents = {
  /**
   * Writes the run into the row of its due time before the run is stored, so no run of a due time can be overlooked.
   * Throws
   * `lock-held` when the due time has been started anew since this process was: then this one must store no run.
   */
  async bind({ database }, { atMs, startedAtMs, schedule }, run) {
    const store = new ScheduleStore(database, schedule);
    if (await store.write(atMs, { state: 'started', startedAtMs }, { runner: ownName(), ...run })) return;
    throw new AppError('lock-held', `the due time ${new Date(atMs).toISOString()} is given to another process`);
  },
};
