/** Runs as the schedule sees them: which is unfinished, who works on one, and what one came to. */
import type { ExitCode } from '../../../shared/domain/exit-codes.ts';
import { EXIT, EXIT_FACTS } from '../../../shared/domain/exit-codes.ts';
import { isRunEnd } from '../../../shared/domain/states.ts';
import { isRebuilt } from '../../control/results/recover.ts';
import { reportOf } from '../../control/results/report.ts';
import type { RunRecord, RunStore } from '../../control/model/stores.ts';
import type { Runs, RunView } from '../../schedule/ports.ts';
import type { RunResult } from '../../schedule/slots.ts';
import { isUnfinished } from '../../app/run/find-run.ts';
import { lookAtHolder } from '../../app/run/run-lock.ts';

const LOOKED_AT = 20;

/** `table` is the result table of the schedule: runs that fill it, also those by hand, are its own. */
export function createRunViews(runs: RunStore, table: string): Runs {
  const viewOf = (run: RunRecord): RunView => describeRun(run, table);
  return {
    async look() {
      const { state, holder } = runs.guard ? await lookAtHolder(runs.guard) : { state: 'nobody', holder: null };
      const busy = state === 'alive' && holder ? { owner: holder.owner, runId: holder.runId } : null;
      const unfinished = (await runs.list(LOOKED_AT)).filter((run) => isUnfinished(run) && !isRebuilt(run));
      return { busy, unfinished: unfinished.map(viewOf) };
    },
    async get(id) {
      const run = await runs.get(id);
      return run ? viewOf(run) : null;
    },
  };
}

function describeRun(run: RunRecord, table: string): RunView {
  const { id, startedAtMs, deadlineAtMs, settings } = run;
  const result = resultOf(run);
  const { graceMs } = settings.run;
  const ours = settings.results.table === table;
  return { id, startedAtMs, deadlineAtMs, graceMs, ours, ended: !isUnfinished(run), result };
}

function resultOf(run: RunRecord): RunResult {
  const report = reportOf(run);
  const exitCode = run.exitCode ?? (isRunEnd(run.phase) ? EXIT.internal : null);
  return {
    run: run.id,
    state: run.phase,
    exitCode,
    reason: run.reason,
    onTime: report?.onTime ?? null,
    products: report && pick(report.products),
    cost: report?.cost.actual ?? null,
    hint: hintOf(exitCode, run.id),
  };
}

const pick = ({ planned, stored, gone, failed }: NonNullable<RunResult['products']>): RunResult['products'] => ({
  planned,
  stored,
  gone,
  failed,
});

/** What to do about an exit code, from the table that docs/exit-codes.md is made of. */
export function hintOf(exitCode: ExitCode | null, runId: string | null): string {
  const cause = Object.entries(EXIT).find(([, code]) => code === exitCode)?.[0] as keyof typeof EXIT | undefined;
  const todo = cause === undefined ? EXIT_FACTS.internal.todo : EXIT_FACTS[cause].todo;
  return todo.replaceAll('`', '').replaceAll('RUN', runId ?? 'RUN');
}
