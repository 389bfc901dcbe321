/** Whether another main server works on this database, or an earlier run is not over. */
import { systemClock } from '../../../shared/adapters/system-clock.ts';
import { isRunEnd } from '../../../shared/domain/states.ts';
import { isRebuilt } from '../../control/results/recover.ts';
import { createStores } from '../../db/create-stores.ts';
import { isMigrated } from '../../db/migrate.ts';
import { isUnfinished } from '../find-run.ts';
import { lookAtHolder } from '../run-lock.ts';
import type { Check } from './check.ts';
import { failed, ok, warning } from './check.ts';

const LOOKED_AT = 20;

export const otherRun: Check = {
  id: 'other-run',
  title: 'other runs on this database',
  kinds: ['aws', 'dry'],
  needs: ['database', 'schema'],
  async run({ facts }) {
    const db = await facts.database();
    if (!(await isMigrated(db))) return [ok('none: there has been no run with this version')];
    const { runs } = createStores(db);
    const { state, holder } = runs.guard ? await lookAtHolder(runs.guard) : { state: 'nobody', holder: null };
    if (state === 'alive') {
      const what = holder?.runId ? `is running ${holder.runId}` : 'is starting a run';
      return [failed('lock-held', `another main server (${holder?.owner}) ${what}`, 'Wait for it: orchestrator watch')];
    }
    const unfinished = (await runs.list(LOOKED_AT)).filter((run) => isUnfinished(run) && !isRebuilt(run));
    const ahead = unfinished.find((run) => !isRunEnd(run.phase) && systemClock.now() <= run.deadlineAtMs);
    if (ahead)
      return [
        failed(
          'run-unfinished',
          `run ${ahead.id} (${ahead.phase}) has lost its main server, and its deadline is ahead`,
          `orchestrator resume ${ahead.id}, or orchestrator cancel ${ahead.id}`,
        ),
      ];
    if (unfinished.length === 0) return [ok('none')];
    return [
      warning(
        `run ${unfinished[0]!.id} is not tidied up: the next run ends it first`,
        `orchestrator resume ${unfinished[0]!.id}`,
      ),
    ];
  },
};
