/** Ends a run early from another process: through its living main server, else by taking that server's place. */
import type { Output } from '../caller.ts';
import { AppError } from '../../../shared/domain/errors.ts';
import { EXIT, type ExitCode } from '../../../shared/domain/exit-codes.ts';
import { isRunEnd } from '../../../shared/domain/states.ts';
import type { RunRecord, RunStore } from '../model/stores.ts';
import type { CarriedOut } from './carry-out.ts';
import { getRun } from '../lookup/find-run.ts';
import { holderAtWork, lockNamesOfRun, lookAtHolder } from '../lookup/run-lock.ts';

export interface EarlyEnd {
  run: RunRecord;
  request: 'stop' | 'cancel';
  /** What the main server will do, in words for the user. */
  promise: string;
  /** Closes the caller's database, then resumes the run as its main server. */
  takeOver: () => Promise<CarriedOut>;
}

/**
 * Stores the stop request; a living main server sees it within a heartbeat. Without one, this process takes its place
 * until the run has ended, and the document is the run's report. Throws `lock-held` when another run holds the lock,
 * and `run-ended` when the run ended before the request could be stored.
 */
export async function endEarly(runs: RunStore, end: EarlyEnd, output: Output): Promise<ExitCode> {
  const { run, request } = end;
  if (!(await runs.setRequest(run.id, request))) await assertGoesOn(runs, run.id);
  const atWork = await holderAtWork(runs, run);
  if (atWork) {
    output.line(end.promise);
    output.document({ run: run.id, requested: request, mainServer: atWork.owner });
    return EXIT.complete;
  }
  const { holder } = await lookAtHolder(runs, lockNamesOfRun(run));
  const gone = holder?.runId === run.id ? ` (${holder.owner})` : '';
  output.line(`The main server of run ${run.id}${gone} is gone; this command takes its place until the run has ended.`);
  const { exitCode, finished } = await end.takeOver();
  // Ending early is what the user requested; leaving before the end is not.
  return finished && exitCode === EXIT.interrupted ? EXIT.complete : exitCode;
}

/** A request that was not stored has no effect after the end; a run that ends early already needs none. */
async function assertGoesOn(runs: RunStore, runId: string): Promise<void> {
  const now = await getRun(runs, runId);
  if (!isRunEnd(now.phase)) return;
  throw new AppError('run-ended', `run ${runId} has ended already: ${now.phase}`, {
    hint:
      now.phase === 'held'
        ? `Release its rows with: orchestrator publish ${runId}, or discard them with: orchestrator cancel ${runId}`
        : `Look at it with: orchestrator status ${runId}`,
  });
}
