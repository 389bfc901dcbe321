/** Runs as the schedule sees them: which are unfinished, who works on one, and how one ended. */
import type { RunRecord, RunStore } from '../../control/model/stores.ts';
import { isRebuilt } from '../../control/results/recover.ts';
import { reportOf } from '../../control/results/report.ts';
import type { RunView, SeenRuns } from '../../schedule/due-times.ts';
import { resultOf } from '../../app/run/announce.ts';
import type { Config } from '../../app/config/load-config.ts';
import { isUnfinished } from '../../app/run/find-run.ts';
import { lookAtHolder } from '../../app/run/run-lock.ts';

export type RunViews = ReturnType<typeof createRunViews>;

/** Those that fill the schedule's result table are its own, also those by hand. */
export function createRunViews(runs: RunStore, { values }: Config) {
  const viewOf = (run: RunRecord): RunView => {
    const { id, startedAtMs, deadlineAtMs, settings } = run;
    const report = isUnfinished(run) ? null : reportOf(run);
    const ours = settings.results.table === values.results.table;
    return { id, startedAtMs, deadlineAtMs, graceMs: settings.run.graceMs, ours, result: report && resultOf(report) };
  };
  return {
    async look(): Promise<SeenRuns> {
      const { state, holder } = runs.guard ? await lookAtHolder(runs.guard) : { state: 'nobody', holder: null };
      const busy = state === 'alive' && holder ? { owner: holder.owner, runId: holder.runId } : null;
      const unfinished = (await runs.list(20)).filter((run) => isUnfinished(run) && !isRebuilt(run));
      return { busy, unfinished: unfinished.map(viewOf) };
    },
    async get(id: string): Promise<RunView | null> {
      const run = await runs.get(id);
      return run ? viewOf(run) : null;
    },
  };
}
