/** A run of no products: complete at once, and nothing is launched for it. */
import { systemClock } from '../../../shared/adapters/system-clock.ts';
import { EXIT, type ExitCode } from '../../../shared/domain/exit-codes.ts';
import { buildReport } from '../act/results/finish.ts';
import { createResultTable } from '../db/result-table.ts';
import { ProcessState } from '../model/process-state.ts';
import { getRun } from '../lookup/find-run.ts';
import { newRunKeys } from '../new-run.ts';
import { settingsOf } from '../prepare/settings-of.ts';
import { publishReport } from './carry-out.ts';
import { type AcceptedRun, newRun } from './launch-run.ts';
import { emit } from '../run-events.ts';
import type { StartContext } from './start-context.ts';

/** Stores it with its report, which explains why there is nothing to crawl. */
export async function completeEmptyRun(context: StartContext, accepted: AcceptedRun): Promise<ExitCode> {
  const { config, target, database, stores, lock, output, features } = context;
  const { runId, plan } = accepted;
  const settings = {
    ...settingsOf(config, target, plan),
    sandbox: null,
    server: { callbackUrl: '', callbackListen: '' },
  };
  await createResultTable(database, settings.results, settings.mapping, config.features);
  await accepted.bind();
  await stores.runs.create(newRun(target, accepted, newRunKeys(), settings), [], lock.fence, systemClock.now());
  const rows = stores.bind({ runId, fence: lock.fence, clock: systemClock });
  await rows.run.move('planned', 'completed', { exitCode: EXIT.complete, reason: 'no products' });
  const report = await buildReport({ ...rows, clock: systemClock, processState: new ProcessState() });
  const ended = await getRun(stores.runs, runId);
  for (const fault of await emit(features, (events) => events.ended?.(context, ended, report))) {
    output.line(`! ${fault}`);
    report.notes.push(fault);
  }
  await rows.run.setReport(report);
  const why = plan.recrawl ? 'No product is due' : config.discovery ? 'No URL waits' : 'The query yields no products';
  output.line(`${why}: nothing to crawl, nothing was launched.`);
  publishReport(report, await getRun(stores.runs, runId), config, output);
  return EXIT.complete;
}
