/** `orchestrator explain`: what happened in a run and why, and what the next one needs. Reads the database only. */
import { systemClock } from '../../../shared/adapters/system-clock.ts';
import { EXIT, type ExitCode } from '../../../shared/domain/exit-codes.ts';
import { NOT_CRAWLED } from '../../../shared/domain/outcome.ts';
import { formatDuration } from '../../../shared/domain/quantity.ts';
import { isRunEnd } from '../../../shared/domain/states.ts';
import { dollars, percent, plural } from '../../core/plan/wording.ts';
import { nextRunAdvice } from './next-run-advice.ts';
import type { RunRecord } from '../../core/model/stores.ts';
import { type TimelineEntry, timelineOf } from '../../core/read/timeline.ts';
import { assertKept, findRun, storesOf, withDatabase } from '../../core/lookup/find-run.ts';
import { reasonsOf } from '../../core/read/run-documents.ts';
import { renderReasons } from '../../../shared/domain/render-reasons.ts';
import type { Output } from '../../cli/output.ts';
import { plain } from '../../../shared/domain/terminal-text.ts';
import type { StatusOptions } from '../../cli/commands/status.ts';

/** The most events that are read: more than any run stores. */
const MAX_EVENTS = 100_000;

export async function explainCommand(options: StatusOptions, output: Output): Promise<ExitCode> {
  return withDatabase(options, output, async (database, config) => {
    const stores = await storesOf(database);
    const run = await findRun(stores.runs, { runId: options.runId, config }, 'known', () => true);
    assertKept(run);
    const rows = stores.of(run.id);
    const [events, instances, incidents, outcomes] = await Promise.all([
      rows.run.events(MAX_EVENTS),
      rows.fleet.instances(),
      rows.fleet.incidents(),
      rows.work.outcomes(),
    ]);
    const timeline = timelineOf(run, events);
    const reasons = reasonsOf(run, instances);
    const left = NOT_CRAWLED.reduce((sum, reason) => sum + (outcomes.reasons[reason] ?? 0), 0);
    const nowMs = systemClock.now();
    const advice = isRunEnd(run.phase)
      ? nextRunAdvice({ run, instances, events, incidents, reasons, left, nowMs })
      : [];
    output.line(`${run.id}: ${run.phase}${run.reason === null ? '' : `, ${plain(run.reason)}`}`);
    output.line(`  plan: ${planLine(run)}`);
    output.line();
    for (const line of timeline) output.line(`  ${clockOf(run, line)}  ${plain(line.text)}`);
    if (reasons.length > 0) output.line(`\n${indented(renderReasons(reasons))}`);
    if (advice.length > 0) output.line('\n  next time:');
    for (const sentence of advice) output.line(`    - ${plain(sentence, 1_000)}`);
    output.document({
      run: run.id,
      state: run.phase,
      reason: run.reason,
      exitCode: run.exitCode,
      plan: run.plan,
      story: timeline.map(({ atMs, text }) => ({ at: new Date(atMs).toISOString(), text })),
      events: [...events].reverse().map(({ atMs, ...event }) => ({ at: new Date(atMs).toISOString(), ...event })),
      notCrawled: left,
      reasons,
      nextTime: advice,
    });
    return EXIT.complete;
  });
}

const indented = (text: string): string => text.replaceAll(/^/gm, '  ');

function planLine({ plan, planned, startedAtMs, deadlineAtMs }: RunRecord): string {
  return (
    `${plural(planned, 'product')} by ${plan.instances} x ${plan.instanceType}, up to ${plan.productsEach} each, ` +
    `end after ${formatDuration(plan.endP50Ms)} (p50) or ${formatDuration(plan.endP95Ms)} (p95) of ${formatDuration(deadlineAtMs - startedAtMs)}, ` +
    `on time in ${percent(plan.onTimeProbability)} of runs if no instance is lost, ${dollars(plan.cost.total)}`
  );
}

/** Time of day, and time since the start. */
function clockOf(run: Pick<RunRecord, 'startedAtMs'>, { atMs }: TimelineEntry): string {
  const after = formatDuration(Math.max(0, atMs - run.startedAtMs));
  return `${new Date(atMs).toISOString().slice(11, 19)}  +${after.padEnd(8)}`;
}
