/** Runs a session until it ends or the user leaves it, and reports the outcome. The same for `run` and `resume`. */
import type { Output } from '../caller.ts';
import { mkdirSync, writeFileSync, createWriteStream, renameSync } from 'node:fs';
import { join } from 'node:path';
import { describeError } from '../../../shared/domain/errors.ts';
import { EXIT, type ExitCode } from '../../../shared/domain/exit-codes.ts';
import { isRunEnd } from '../../../shared/domain/states.ts';
import { CANCELLED } from '../decide/end/exit-code.ts';
import type { RunReport } from '../model/report.ts';
import type { RunReader, RunRecord, WorkReader, FailedProduct } from '../model/stores.ts';
import type { Config } from '../config/load-config.ts';
import { hasLeftovers } from '../lookup/find-run.ts';
import { renderReport } from './render-report.ts';
import type { RunContext } from './run-context.ts';
import { emit } from '../run-events.ts';
import { endSentence, headline, isGood, resultOf, summaryOf, timesOf } from '../read/run-result.ts';
import { scheduleNameOf } from '../prepare/settings-of.ts';
import type { Session } from './run-session.ts';
import { stateDirOf } from '../config/state-dir.ts';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { type FailureReason, NOT_CRAWLED } from '../../../shared/domain/outcome.ts';

/** A run with its main server. Disposal closes what it was opened with; its sandbox stays unless `finished`. */
export interface OpenRun extends AsyncDisposable {
  session: Session;
  /** True once it has ended, is cleaned up and reported. */
  finished: boolean;
}

export interface CarriedOut {
  exitCode: ExitCode;
  /** False when the run was left for `resume`. */
  finished: boolean;
}

/**
 * Runs until the run has ended and is cleaned up, or a signal makes this process leave it; then reports, and closes it.
 */
export async function carryOut(context: RunContext, opened: OpenRun): Promise<CarriedOut> {
  const { stores, lock, config, interrupts, output, features } = context;
  await using run = opened;
  const { session } = run;
  const { runId, server } = session;
  interrupts.onFirst(() => {
    output.line('Stopping: instances upload what they have. Ctrl-C again leaves at once.');
    // A request that cannot be written now is the user's to repeat: the second Ctrl-C still leaves.
    stores.runs.setRequest(runId, 'stop').then(
      () => server.loop.wake(),
      (error: unknown) => output.line(`! the stop request could not be stored: ${String(error)}`),
    );
  });
  try {
    await server.run(AbortSignal.any([interrupts.leave, lock.lost]));
  } finally {
    await session.loopEnded();
  }
  if (lock.lost.aborted) throw lock.lost.reason;
  const record = await stores.runs.get(runId);
  const ended = record !== null && isRunEnd(record.phase);
  // Only an early exit leaves anything behind: otherwise the loop has waited until all was gone.
  if (!ended || (interrupts.leave.aborted && (await hasLeftovers(stores, record)))) {
    output.line(
      ended
        ? `Left run ${runId} as it is: ${record.phase}, but its instances or its balancer are not gone yet. Finish it with:`
        : (record?.request ?? null) === null
          ? `Left run ${runId} as it is; its instances crawl on until the deadline. Take it up again with:`
          : // The stop request is stored: every instance gets it with a heartbeat.
            `Left run ${runId} as it is; its instances upload what they have and end. Take it up again with:`,
    );
    output.line(`  orchestrator resume ${runId} --config ${config.file}`);
    const exitCode = EXIT.interrupted;
    output.document({ run: runId, state: record?.phase ?? 'unknown', reason: 'interrupted', exitCode });
    return { exitCode, finished: false };
  }
  const report = await session.report(record);
  publishReport(report, record, config, output);
  for (const fault of await emit(features, (events) => events.reported?.(context, runId))) output.line(`! ${fault}`);
  await writeUnfinished(stores.of(runId), stateDirOf(config.file).run(runId), output);
  run.finished = true;
  return { exitCode: record.exitCode ?? EXIT.internal, finished: true };
}

/** Prints the report and writes it beside the configuration. */
export function publishReport(report: RunReport, run: RunRecord, config: Config, output: Output): void {
  const file = writeReport(report, stateDirOf(config.file).run(run.id), output);
  output.line(renderReport(report));
  output.line();
  output.line(`  rows        ${whereRowsAre(report, config.values.results.table)}`);
  output.line(`  report      ${file}`);
  output.line(`  proof       orchestrator verify ${run.id} --config ${config.file}`);
  const result = resultOf(report, run);
  const sentence = endSentence(result, timesOf(run), config.values.schedule.timezone);
  const summary = summaryOf({ name: scheduleNameOf(config), dryRun: run.dryRun }, sentence);
  output.verdict?.(headline({ summary, hint: result.hint }), isGood(result));
  output.document(report);
}

function whereRowsAre({ run, state, reason }: RunReport, table: string): string {
  if (state === 'held') return `held; table ${table} is unchanged until: orchestrator publish ${run}`;
  return state === 'cancelled' && reason === CANCELLED.reason
    ? `discarded; table ${table} is unchanged`
    : `table ${table}`;
}

/** Returns the path of the copy. A full disk costs only the copy: the run's row has the report. */
function writeReport(report: RunReport, folder: string, output: Output): string {
  const file = join(folder, 'report.json');
  try {
    mkdirSync(folder, { recursive: true });
    writeFileSync(file, `${JSON.stringify(report, null, 2)}\n`);
    return file;
  } catch (error) {
    output.line(`! the report cannot be written to ${file}: ${describeError(error)}`);
    return `in the database only: orchestrator status ${report.run}`;
  }
}

/**
 * Writes `unfinished.ndjson` (`{"id","reason"}` a line, in the order of the product list) into the folder if a product
 * is unfinished. A disk that refuses it costs only the list: the database has it (`orchestrator status RUN --failed`).
 */
async function writeUnfinished({ work }: RunReader, folder: string, output: Output): Promise<void> {
  let products = 0;
  const lines = async function* (): AsyncGenerator<string> {
    for await (const { id, url, reason } of listFailed(work, NOT_CRAWLED)) {
      products++;
      yield `${JSON.stringify({ id, ...(url === undefined ? {} : { url }), reason })}\n`;
    }
  };
  try {
    if ((await work.failedProducts(0, 1, NOT_CRAWLED)).length === 0) return;
    mkdirSync(folder, { recursive: true });
    const file = join(folder, 'unfinished.ndjson');
    // Whole or not at all: the user may feed it to the next run.
    await pipeline(Readable.from(lines()), createWriteStream(`${file}.new`));
    renameSync(`${file}.new`, file);
    output.line(`  unfinished  ${products} products, in ${file}`);
  } catch (error) {
    output.line(`! the list of unfinished products cannot be written: ${describeError(error)}`);
  }
}

const PAGE = 5_000;

export async function* listFailed(work: WorkReader, reasons?: readonly FailureReason[]): AsyncGenerator<FailedProduct> {
  for (let after = 0; ;) {
    const page = await work.failedProducts(after, PAGE, reasons);
    yield* page;
    const last = page.at(-1);
    if (last === undefined || page.length < PAGE) return;
    after = last.n;
  }
}
