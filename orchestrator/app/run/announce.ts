/** Tells the webhooks of the configuration how a run has ended: the main server itself does, whoever started it. */
import { systemClock } from '../../../shared/adapters/system-clock.ts';
import { EXIT, EXIT_FACTS, type ExitCode } from '../../../shared/domain/exit-codes.ts';
import type { RunReport } from '../../control/model/report.ts';
import type { RunRecord } from '../../control/model/stores.ts';
import { endedNotice, type Named, NOTICE_KINDS, type RunResult } from '../../notify/notice.ts';
import { notify, type Target } from '../../notify/webhook.ts';
import type { Config } from '../config/load-config.ts';

/** Receivers that do not answer keep a process no longer than this after its run has ended. */
const ANNOUNCE_WITHIN_MS = 45_000;

/** Two crawls into different tables are different schedules; the record and every notice name theirs. */
export const namedOf = ({ values: { schedule, results } }: Config): Named => ({
  name: schedule.name ?? results.table,
  timezone: schedule.timezone,
});

/** The targets of `notify`, and the one of `schedule.webhook`. */
export function targetsOf({ values: { notify: listed, schedule } }: Config): Target[] {
  const targets = listed.map(({ webhook, secret, on }) => ({ url: webhook, secret, on }));
  if (schedule.webhook === null) return targets;
  const on = NOTICE_KINDS.filter((kind) => schedule.webhook_on === 'all' || kind !== 'finished');
  return [...targets, { url: schedule.webhook, secret: schedule.webhook_secret, on }];
}

/**
 * Announces the end of a run, unless its report is stored already: that is written after the notice, so a run is
 * announced again after a crash between the two rather than never. Returns a line for each target that did not take
 * it. Never rejects.
 */
export async function announceEnd(run: RunRecord, report: RunReport, config: Config): Promise<string[]> {
  if (run.report !== null) return [];
  const times = {
    dueAtMs: run.settings.dueAtMs ?? null,
    startedAtMs: run.startedAtMs,
    endedAtMs: run.finishedAtMs,
  };
  const notice = endedNotice(resultOf(report), times, namedOf(config));
  return notify(targetsOf(config), notice, { clock: systemClock, signal: AbortSignal.timeout(ANNOUNCE_WITHIN_MS) });
}

/** The part of a report that notices and the record of a schedule have. */
export function resultOf({ run, state, exitCode, reason, onTime, products, cost }: RunReport): RunResult {
  const { planned, stored, gone, failed } = products;
  const counts = { planned, stored, gone, failed };
  return { run, state, exitCode, reason, onTime, products: counts, cost: cost.actual, hint: hintOf(exitCode, run) };
}

/** What to do about an exit code, from the table that docs/exit-codes.md is generated from. */
export function hintOf(exitCode: ExitCode, runId: string | null): string {
  const cause = (Object.keys(EXIT) as (keyof typeof EXIT)[]).find((name) => EXIT[name] === exitCode);
  return EXIT_FACTS[cause ?? 'internal'].todo.replaceAll('`', '').replaceAll('RUN', runId ?? 'RUN');
}
