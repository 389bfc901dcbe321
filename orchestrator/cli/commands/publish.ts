/** `orchestrator publish`: publishes the rows of a held run. */
import { EXIT, type ExitCode } from '../../../shared/domain/exit-codes.ts';
import { buildReport } from '../../control/results/finish.ts';
import { publishHeld } from '../../control/results/publish-held.ts';
import { publishReport } from '../../app/run/carry-out.ts';
import { findRun, storesOf, withDatabase } from '../../app/run/find-run.ts';
import { createOfflineCore } from '../../app/run/run-session.ts';
import type { RunReport } from '../../control/model/report.ts';
import type { Output } from '../output.ts';
import { underLock } from '../../app/run/run-lock.ts';
import type { StatusOptions } from './status.ts';

export async function publishCommand(options: StatusOptions & { force?: boolean }, output: Output): Promise<ExitCode> {
  return withDatabase(options, async (database, config) => {
    const stores = await storesOf(database);
    const run = await findRun(stores.runs, options.runId, 'held', (r) => r.phase === 'held');
    return underLock(stores.runs, async (lock) => {
      lock.setRun(run.id);
      const core = createOfflineCore({ runId: run.id, stores, lock, config, output });
      // Another process may have published or discarded it while we waited for the lock.
      const { rows } = await publishHeld(core, (await core.run.get())!, options.force === true);
      const report = { ...(await buildReport(core)), ...measured(run.report) };
      await core.run.setReport(report);
      output.line(`Published ${rows} rows of run ${run.id}.`);
      output.line();
      publishReport(report, (await core.run.get())!, config, output);
      return EXIT.complete;
    });
  });
}

/** Measurements that only the main server of the crawl itself has. */
function measured(report: RunReport | null): Partial<Pick<RunReport, 'timings' | 'politeness'>> {
  return report === null ? {} : { timings: report.timings, politeness: report.politeness };
}
