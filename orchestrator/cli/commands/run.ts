/**
 * `orchestrator plan`, `run`, `retry`, `resume` and `load`: the use cases of a run, with this terminal as their caller.
 */
import express from 'express';
import { systemClock } from '../../../shared/adapters/system-clock.ts';
import { describeError } from '../../../shared/domain/errors.ts';
import { EXIT, type ExitCode } from '../../../shared/domain/exit-codes.ts';
import { createReaders } from '../../core/db/create-stores.ts';
import { renderPlan, startInWords } from '../../core/plan/render-plan.ts';
import { refuseWebPages } from '../../core/server/health-app.ts';
import { listen } from '../../core/server/listen.ts';
import { metricsText } from '../../core/read/metrics.ts';
import { loadConfig, refuseMisspelt } from '../../core/config/load-config.ts';
import { refusalOfPlan } from '../../core/prepare/make-plan.ts';
import { preflight } from '../../core/prepare/preflight.ts';
import { chooseTarget } from '../../core/config/target.ts';
import type { Caller, Progress } from '../../core/caller.ts';
import { firstOfQuery, idsFrom } from '../../core/prepare/chosen-products.ts';
import type { CarriedOut } from '../../core/run/carry-out.ts';
import { type LoadOptions, loadRun } from '../../core/run/load-run.ts';
import { resume, type ResumeOptions } from '../../core/run/resume.ts';
import { failedProducts, type Retried } from '../../core/run/retry.ts';
import { kindOf, type StartOptions, startRun } from '../../core/run/start-run.ts';
import { type RunSource, wholeQuery } from '../../core/prepare/run-source.ts';
import { openWaiting } from '../../core/lookup/find-run.ts';
import { onLostOutput } from '../closed-output.ts';
import { confirmLoss, confirmRun } from '../confirm.ts';
import { LEAVE_WITHIN_MS, watchInterrupts } from '../interrupts.ts';
import { parseLogLine, renderEntry } from '../log-lines.ts';
import type { Output } from '../output.ts';
import { type ProgressPrinter, createProgressPrinter } from '../progress.ts';
import { writeText } from '../terminal.ts';

export interface RunOptions extends Omit<StartOptions, 'confirm' | 'confirmColumns'> {
  yes: boolean;
  /** Columns that new fields need may be added to a result table of ours. */
  addColumns?: boolean;
  /** The user confirms that a shorter product list is right: it becomes the new baseline. */
  acceptDrop?: boolean;
  /** A file of product IDs, `-` for stdin; instead of products.query. */
  ids?: string | undefined;
  /** Serves /metrics here while the run works. */
  metrics?: string | undefined;
  limit?: number | undefined;
}

interface PlanOptions extends Omit<RunOptions, 'yes'> {
  /** The run whose failed products are crawled, instead of products.query. */
  retry?: string;
}

/** What a run would take, when it would end, and what it would cost. Changes nothing. */
export async function planCommand(options: PlanOptions, output: Output): Promise<ExitCode> {
  const config = loadConfig(options);
  refuseMisspelt(config);
  const { environment, retry: runId } = options;
  const source =
    runId === undefined
      ? wholeQuery(options.acceptDrop === true)
      : failedProducts({ runId, reasons: undefined }, output);
  const { parent, dryRun } = await kindOf(source, options, config);
  const target = chooseTarget(config, dryRun, environment);
  await using checked = await preflight(config, target, { migrate: false, environment, output });
  const chosen = await source.choose(checked, parent);
  if (chosen === null) return EXIT.complete;
  await checked.checkResults(chosen.products.ids);
  const { plan } = await checked.plan(chosen.products);
  output.line(renderPlan(plan, config.values.run.max_cost));
  const refusal = refusalOfPlan(plan);
  const start = refusal === null && plan.products > 0 ? startInWords(plan, dryRun, systemClock.now()) : null;
  if (start !== null) output.line(`\n${start}`);
  output.document({ ...plan, dryRun, start });
  return refusal?.exitCode ?? EXIT.complete;
}

/** Checks, plans, asks for confirmation, then carries the run out. */
export const runCommand = (options: RunOptions, output: Output): Promise<ExitCode> =>
  startInTerminal(options, output, () => sourceOf(options));

/** Does as runCommand, with other products. */
export function startInTerminal(
  options: RunOptions,
  output: Output,
  sourceFor: (caller: Caller) => RunSource,
): Promise<ExitCode> {
  return withMetrics(options, output, () =>
    inTerminal(output, (caller) => startRun(confirmed(options, output, caller), caller, sourceFor(caller))),
  );
}

/** Carries `work` out while `/metrics` is served, if it is asked for. A night does not end for a taken port. */
async function withMetrics<T>(options: RunOptions, output: Output, work: () => Promise<T>): Promise<T> {
  const { metrics } = options;
  if (metrics === undefined) return work();
  await using database = await openWaiting(loadConfig(options), output);
  const stores = createReaders(database);
  const app = express();
  app.use(refuseWebPages(metrics.slice(0, metrics.lastIndexOf(':'))));
  app.get('/metrics', async (_request, response) => {
    const { type, text } = await metricsText(stores);
    response.type(type).send(text);
  });
  await using listener = await listen(app, metrics, '--metrics').catch((error: unknown) => {
    output.line(`! no metrics: ${describeError(error)}`);
    return null;
  });
  if (listener) output.line(`metrics: http://${listener.host}:${listener.port}/metrics`);
  return await work();
}

function sourceOf({ ids, limit, acceptDrop }: RunOptions): RunSource {
  if (ids !== undefined) return idsFrom(ids);
  return limit === undefined ? wholeQuery(acceptDrop === true) : firstOfQuery(limit);
}

/** A child run of the products that failed in another one. */
export function retryCommand(options: RunOptions & Retried, output: Output): Promise<ExitCode> {
  return inTerminal(output, (caller) =>
    startRun(confirmed(options, output, caller), caller, failedProducts(options, caller.output)),
  );
}

/** Takes up a run whose main server died or left. */
export async function resumeCommand(options: ResumeOptions, output: Output): Promise<ExitCode> {
  return (await resumeInTerminal(options, output)).exitCode;
}

export const resumeInTerminal = (options: ResumeOptions, output: Output): Promise<CarriedOut> =>
  inTerminal(output, (caller) => resume(options, caller));

/** Loads the results of a run from the bucket into the database. A signal only aborts `leave`. */
export function loadCommand(options: LoadOptions, output: Output): Promise<ExitCode> {
  return inTerminal(output, (caller) => loadRun(options, caller), null);
}

/** The options with the question whether to launch. */
const confirmed = <T extends RunOptions>(options: T, { json }: Output, { interrupts }: Caller) => ({
  ...options,
  unattended: !process.stdin.isTTY && (options.due ?? null) === null,
  confirm: (dryRun: boolean) => confirmRun({ ...options, dryRun, json, signal: interrupts.leave }),
  confirmColumns: options.addColumns
    ? (question: string) => confirmLoss({ ...options, question, json, signal: interrupts.leave })
    : undefined,
});

/** Runs `work` with signals, progress and output of this process; for `leaveWithinMs` see watchInterrupts. */
export async function inTerminal<T>(
  output: Output,
  work: (caller: Caller) => Promise<T>,
  leaveWithinMs: number | null = LEAVE_WITHIN_MS,
): Promise<T> {
  using interrupts = watchInterrupts(leaveWithinMs);
  let shown: ProgressPrinter | null = null;
  const above = (write: () => void): void => (shown ? shown.above(write) : write());
  return await work({
    output: {
      ...output,
      line: (text) => above(() => output.line(text)),
      onLost: onLostOutput,
      ...(output.detail === 'verbose' ? { log: (line: string) => above(() => writeEntry(line)) } : {}),
    },
    interrupts,
    progress: (plan) =>
      output.detail === 'quiet' ? NO_PROGRESS : (shown = createProgressPrinter(process.stderr, quietMs(plan))),
    env: process.env,
  });
}

const NO_PROGRESS: Progress = { show: () => undefined, end: () => undefined };

function writeEntry(line: string): void {
  const entry = parseLogLine(line);
  if (entry) writeText(process.stderr, renderEntry(entry));
}

/** Progress interval without a terminal: about twenty lines a run, at most one a minute. */
const quietMs = ({ deadlineMs }: { deadlineMs: number }): number => Math.min(60_000, Math.max(2_000, deadlineMs / 20));
