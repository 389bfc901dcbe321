/** The targets of `notify`, and the dead man's switch of `ping`, hear of runs and of schedules. */
import { hostname } from 'node:os';
import { basename, dirname } from 'node:path';
import { systemClock } from '../../../shared/adapters/system-clock.ts';
import { AppError, describeError } from '../../../shared/domain/errors.ts';
import { EXIT, hintOf } from '../../../shared/domain/exit-codes.ts';
import type { Config } from '../../core/config/load-config.ts';
import { liveReasons } from '../../core/decide/end/reasons.ts';
import type { RunReport } from '../../core/model/report.ts';
import type { RunRecord } from '../../core/model/stores.ts';
import type { World } from '../../core/model/world.ts';
import { hostsOf } from '../../core/plan/host-pace.ts';
import { ownerOf, scheduleNameOf } from '../../core/prepare/settings-of.ts';
import type { RunEvents, ScheduleAtWork } from '../../core/run-events.ts';
import { firstReasons, NO_RESULT, resultOf, timesOf } from '../../core/read/run-result.ts';
import { type Delivery, notify, notifyPatiently, ping, type Target } from './deliver.ts';
import { alarmNotice, dueNotice, endedNotice, type Notice, type Sender, stuckNotice } from './notice.ts';
import { type RaisedAlarm, RunAlarms } from './run-alarms.ts';
import { NOTIFY_SECTION, PING_SECTION } from './section.ts';

/** Receivers that do not answer keep a process no longer than this after its run has ended. */
const ANNOUNCE_WITHIN_MS = 45_000;

export const notices: RunEvents = {
  /** What the user has interrupted is no refusal. */
  async refused(cause, { config, dryRun }) {
    const exitCode = cause instanceof AppError ? cause.exitCode : EXIT.internal;
    if (exitCode === EXIT.interrupted) return [];
    const hint = (cause instanceof AppError ? cause.hint : undefined) ?? hintOf(exitCode, null);
    const result = { ...NO_RESULT, exitCode, reason: describeError(cause), hint };
    const times = { dueAtMs: null, startedAtMs: null, endedAtMs: null };
    return announceEnd(endedNotice(result, times, senderOf(config, { dryRun })), config);
  },
  begun: ({ config }, { dryRun }) => pingOf(config, dryRun, 'start'),
  watch({ config }, { log }) {
    const raise = async (raised: RaisedAlarm[], world: World): Promise<void> => {
      const faults = await notify(targetsOf(config), alarmsNotice(world, raised, config), delivery());
      for (const fault of faults) log.warn(fault);
    };
    return new RunAlarms((raised, world) => void raise(raised, world));
  },
  /**
   * The report is stored after the notice, so a run is announced again after a crash between the two rather than never.
   */
  async ended({ config }, run, report) {
    return run.report === null ? announceEnd(endNotice(report, run, config), config) : [];
  },
  decided: (schedule, rows) => patiently(schedule, dueNotice(rows, senderOf(schedule.config, schedule))),
  stuck: (schedule, run) => patiently(schedule, stuckNotice(run, senderOf(schedule.config, schedule))),
};

const patiently = ({ config, signal, say }: ScheduleAtWork, notice: Notice): Promise<void> =>
  notifyPatiently(targetsOf(config), notice, { clock: systemClock, signal }, (text) => say(`! ${text}`));

/** A line for each target that did not take it. Never rejects. */
async function announceEnd(notice: Notice, config: Config): Promise<string[]> {
  const faults = await Promise.all([
    notify(targetsOf(config), notice, delivery()),
    pingOf(config, notice.dryRun, notice.good ? 'end' : 'fail'),
  ]);
  return faults.flat();
}

/** Pings the dead man's switch of the configuration if it is for such runs; resolves to what failed. Never rejects. */
async function pingOf(config: Config, dryRun: boolean, state: 'start' | 'end' | 'fail'): Promise<string[]> {
  const target = PING_SECTION.of(config);
  if (target === null || (dryRun && !target.dry_runs)) return [];
  const fault = await ping(target.url, state, delivery());
  return fault === null ? [] : [fault];
}

const delivery = (): Delivery => {
  const signal = AbortSignal.timeout(ANNOUNCE_WITHIN_MS);
  return { clock: systemClock, signal, withinMs: ANNOUNCE_WITHIN_MS };
};

/** The sender of a notice; of a run, shop and table are its own, whatever the configuration says by now. */
export function senderOf(config: Config, { dryRun, settings }: Pick<RunRecord, 'dryRun'> & Partial<RunRecord>): Sender {
  const { schedule, site, results, server } = config.values;
  return {
    name: scheduleNameOf(config),
    timezone: schedule.timezone,
    dryRun,
    hosts: hostsOf(settings?.site.productUrl ?? site.product_url),
    table: settings?.results.table ?? results.table,
    owner: ownerOf(config),
    mainServer: hostname(),
    folder: dirname(config.file),
    configName: basename(config.file),
    pageUrl: server.page_url,
  };
}

/** The targets of `notify`. */
export function targetsOf(config: Config): Target[] {
  return NOTIFY_SECTION.of(config).map(({ webhook, secret, slack, email, command, on, dry_runs: dryRuns }): Target => {
    const when = { on, dryRuns };
    if (slack !== undefined) return { kind: 'slack', url: slack, ...when };
    if (command !== undefined) return { kind: 'command', command, ...when };
    if (email !== undefined) return { kind: 'email', ...email, to: [email.to].flat(), ...when };
    return { kind: 'webhook', url: webhook!, secret, ...when };
  });
}

export const endNotice = (report: RunReport, run: RunRecord, config: Config): Notice =>
  endedNotice(resultOf(report, run), timesOf(run), senderOf(config, run));

export function alarmsNotice(
  { run, fleet }: Pick<World, 'run' | 'fleet'>,
  alarms: readonly RaisedAlarm[],
  config: Config,
): Notice {
  return alarmNotice(run.id, { alarms, ...firstReasons(liveReasons(run, fleet.all)) }, senderOf(config, run));
}
