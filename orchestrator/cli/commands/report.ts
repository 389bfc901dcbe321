/** `orchestrator report`: the report of an ended run. Reads the database only. */
import { writeFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { AppError, describeError } from '../../../shared/domain/errors.ts';
import { EXIT, type ExitCode } from '../../../shared/domain/exit-codes.ts';
import { htmlReport } from '../../app/read/report-html.ts';
import { findRun, storesOf, withDatabase } from '../../app/run/find-run.ts';
import { renderReport } from '../../app/run/render-report.ts';
import { reportOf } from '../../control/results/report.ts';
import type { Output } from '../output.ts';
import type { StatusOptions } from './status.ts';

export interface ReportOptions extends StatusOptions {
  html?: boolean;
  /** Omitted: stdout. */
  to?: string;
}

export async function reportCommand(options: ReportOptions, output: Output): Promise<ExitCode> {
  const { html, to } = options;
  return withDatabase(options, async (database) => {
    const stores = await storesOf(database);
    const run = await findRun(stores.runs, options.runId, 'over yet', ({ report }) => report !== null);
    const report = reportOf(run);
    if (report === null)
      throw new AppError('run-unfinished', `run ${run.id} has no report yet: it is ${run.phase}`, {
        hint: `Look at it with: orchestrator status ${run.id}`,
      });
    const text = html ? await htmlReport(run, stores) : `${renderReport(report)}\n`;
    if (to !== undefined) {
      write(to, text);
      output.line(`The report of run ${run.id} is in ${to}.`);
    } else if (!output.json) process.stdout.write(text);
    output.document(report);
    return EXIT.complete;
  });
}

function write(file: string, text: string): void {
  try {
    writeFileSync(resolve(file), text);
  } catch (error) {
    throw new AppError('usage', `cannot write ${file}: ${describeError(error)}`);
  }
}
