/** What the page and report.html show of a run, recorded while it works. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describeError } from '../../../shared/domain/errors.ts';
import { stateDirOf } from '../../core/config/state-dir.ts';
import type { RunEvents } from '../../core/run-events.ts';
import { htmlReport } from './report-html.ts';
import { embeddedMetrics, SampleRecorder } from './sample-recorder.ts';

export const chartsOfRuns: RunEvents = {
  watch({ config, stores }, { runId, table, log }) {
    return new SampleRecorder(
      async (sample) => {
        if (config.values.cloudwatch) log.info(embeddedMetrics(sample, table), 'metrics');
        await stores.runs.addSample?.(runId, sample);
      },
      (text) => log.warn(text),
    );
  },
  /** Writes report.html into the folder of the run; what cannot be written costs only this copy. */
  async reported({ config, stores }, runId) {
    try {
      const run = await stores.runs.get(runId);
      if (run) writeFileSync(join(stateDirOf(config.file).run(runId), 'report.html'), await htmlReport(run, stores));
      return [];
    } catch (error) {
      return [`report.html cannot be written: ${describeError(error)}`];
    }
  },
};
