/** `orchestrator stop`, `cancel` and `publish`: a user ends a run early, or decides about a held one. */
import { storedRun } from '../../core/model/core.ts';
import { systemClock } from '../../../shared/adapters/system-clock.ts';
import { AppError } from '../../../shared/domain/errors.ts';
import { EXIT, type ExitCode } from '../../../shared/domain/exit-codes.ts';
import { isRunEnd } from '../../../shared/domain/states.ts';
import { publishReport } from '../../core/run/carry-out.ts';
import { type EarlyEnd, endEarly } from '../../core/run/end-early.ts';
import { findRun, getRun, storesOf, withDatabase } from '../../core/lookup/find-run.ts';
import { lockNamesOfRun, takeLock } from '../../core/lookup/run-lock.ts';
import { createOfflineCore } from '../../core/run/run-session.ts';
import type { RunReader, RunRecord, Stores } from '../../core/model/stores.ts';
import { buildReport } from '../../core/act/results/finish.ts';
import { publishHeld } from '../../core/act/results/publish-held.ts';
import { reportOf } from '../../core/decide/end/report.ts';
import type { Database } from '../../core/db/connect.ts';
import { createStores } from '../../core/db/create-stores.ts';
import { confirmLoss } from '../confirm.ts';
import type { Output } from '../output.ts';
import { resumeInTerminal } from './run.ts';
import type { StatusOptions } from './status.ts';

/** Ends a run early and keeps its results. */
export async function stopCommand(options: StatusOptions, output: Output): Promise<ExitCode> {
  return withDatabase(options, output, async (database, config) => {
    const { runs } = await storesOf(database);
    const run = await findRun(runs, { runId: options.runId, config }, 'unfinished', (r) => !isRunEnd(r.phase));
    if (isRunEnd(run.phase)) throw new AppError('run-ended', `run ${run.id} has ended already: ${run.phase}`);
    const promise = `Run ${run.id} will stop: its instances upload what they have, and that is published.`;
    const takeOver = takingOver(run.id, options, database, output);
    return await endEarly(runs, { run, request: 'stop', promise, takeOver }, output);
  });
}

const takingOver =
  (runId: string, place: StatusOptions, database: Database, output: Output): EarlyEnd['takeOver'] =>
  async () => {
    await database.close();
    return resumeInTerminal({ ...place, runId }, output);
  };

type CancelOptions = StatusOptions & { runId: string; yes: boolean };

/** Ends a run and discards its results; also the rows of a held run. */
export async function cancelCommand(options: CancelOptions, output: Output): Promise<ExitCode> {
  return withDatabase(options, output, async (database, config) => {
    const stores = await storesOf(database);
    const run = await getRun(stores.runs, options.runId);
    if (isRunEnd(run.phase) && run.phase !== 'held')
      throw new AppError('run-ended', `run ${run.id} has ended already: ${run.phase}`, {
        hint: 'What is published stays; rows can only be taken out of the result table by hand (their run_id names the run).',
      });
    output.line(await describe(stores.of(run.id), run));
    const question = `Cancel run ${run.id} and discard its results?`;
    if (!(await confirmLoss({ yes: options.yes, json: output.json, question }))) {
      output.line('Nothing was changed.');
      return EXIT.interrupted;
    }
    if (run.phase === 'held') return await discardHeld(createStores(database, config.features), run, output);
    const promise = `Run ${run.id} will end: its instances are terminated, and nothing is published.`;
    const takeOver = takingOver(run.id, options, database, output);
    return await endEarly(stores.runs, { run, request: 'cancel', promise, takeOver }, output);
  });
}

async function describe({ fleet, results }: RunReader, run: RunRecord): Promise<string> {
  const [instances, totals] = await Promise.all([fleet.instances(), results.totals()]);
  const left = instances.filter((i) => i.phase !== 'terminated' && i.instanceId !== null).length;
  const done = totals.stored + totals.gone + totals.failed;
  const rows = `${totals.stored} stored products that are loaded are not published`;
  const fleetText = run.phase === 'held' ? '' : `${left} instances and the balancer are ended, `;
  return `Run ${run.id} is ${run.phase} with ${done} of ${run.planned} products loaded. If it is cancelled, ${fleetText}${rows}; ${run.settings.results.table} stays as it is.`;
}

/** The move stores the request too: stored alone it could stay on a run that another process publishes. */
async function discardHeld(stores: Stores, run: RunRecord, output: Output): Promise<ExitCode> {
  await using lock = await takeLock({ runs: stores.runs, names: lockNamesOfRun(run), clock: systemClock });
  await lock.setRun(run.id);
  const rows = stores.bind({ runId: run.id, fence: lock.fence, clock: systemClock });
  const reason = 'cancelled while its rows were held';
  const exitCode = EXIT.interrupted;
  const detail = { reason, exitCode, request: 'cancel' as const };
  if (!(await rows.run.move('held', 'cancelled', detail)))
    throw new AppError('run-ended', `run ${run.id} is not held any more`, {
      hint: `Look at it with: orchestrator status ${run.id}`,
    });
  await rows.results.dropStaging();
  const report = reportOf(await storedRun(rows));
  if (report) await rows.run.setReport(report);
  output.line(`Run ${run.id} is cancelled; its rows are dropped.`);
  output.document({ run: run.id, state: 'cancelled', reason, exitCode });
  return EXIT.complete;
}

/** Publishes the rows of a held run. */
export async function publishCommand(options: StatusOptions & { force?: boolean }, output: Output): Promise<ExitCode> {
  return withDatabase(options, output, async (database, config) => {
    await storesOf(database);
    const stores = createStores(database, config.features);
    const run = await findRun(stores.runs, { runId: options.runId, config }, 'held', (r) => r.phase === 'held');
    await using lock = await takeLock({ runs: stores.runs, names: lockNamesOfRun(run), clock: systemClock });
    await lock.setRun(run.id);
    const core = createOfflineCore({ stores, lock, config, output }, run.id);
    // Another process may have published or discarded it while we waited for the lock.
    const { rows } = await publishHeld(core, await storedRun(core), options.force === true);
    // Measurements that only the main server of the crawl itself has.
    const measured = run.report && { timings: run.report.timings, politeness: run.report.politeness };
    const report = { ...(await buildReport(core)), ...measured };
    await core.run.setReport(report);
    output.line(`Published ${rows} rows of run ${run.id}.`);
    output.line();
    publishReport(report, await storedRun(core), config, output);
    return EXIT.complete;
  });
}
