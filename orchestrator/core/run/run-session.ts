/** One main server at work on one run: the core with its adapters, the callback listener and the loop. */
import { dirname } from 'node:path';
import { destination, type Logger, pino } from 'pino';
import { systemRandom } from '../../../shared/adapters/random.ts';
import { systemClock } from '../../../shared/adapters/system-clock.ts';
import { describeError } from '../../../shared/domain/errors.ts';
import { secretsIn, type SiteSettings } from '../../../shared/wire/site-settings.ts';
import { ED25519 } from '../../../shared/wire/signature.ts';
import { HttpOfferSender } from '../cloud/http-offer-sender.ts';
import { watchStore } from '../cloud/watched-store.ts';
import type { Core, LaunchTemplate } from '../model/core.ts';
import { eventOf } from '../model/run-event.ts';
import { createMainServer } from '../main-server.ts';
import { buildReport, type FinishCore } from '../act/results/finish.ts';
import type { RunReport } from '../model/report.ts';
import type { RunRecord, Stores } from '../model/stores.ts';
import type { RunSettings } from '../model/run-settings.ts';
import { oneLine } from '../../../shared/domain/terminal-text.ts';
import { LogRotation, boundLine } from './log-file.ts';
import { createCallbackApp } from '../server/callback-app.ts';
import { listen } from '../server/listen.ts';
import type { Output } from '../caller.ts';
import { logFileOf } from '../config/state-dir.ts';
import { RunSecrets } from '../callbacks/run-secrets.ts';
import { readSiteSecrets } from '../config/user-headers.ts';
import { robotsReader } from '../prepare/site-robots.ts';
import type { CloudAccess } from '../cloud-access/cloud-access.ts';
import { keepHostRequests } from './keep-host-requests.ts';
import type { RunContext } from './run-context.ts';
import { emit, watchersOf } from '../run-events.ts';
import { makeStateFolder } from '../config/state-folder.ts';
import { ProcessState } from '../model/process-state.ts';

export interface SessionOptions {
  runId: string;
  privateKey: string;
  cloud: CloudAccess;
  /** The settings of the run, whatever the configuration says by now. */
  settings: Pick<RunSettings, 'aws' | 'site' | 'results'>;
  deadlineMs: number;
  callbackListen: string;
  launchTemplate: () => Promise<LaunchTemplate>;
}

export type Session = Awaited<ReturnType<typeof openSession>>;

export async function openSession(context: RunContext, options: SessionOptions) {
  const { output, progress, features } = context;
  const { runId, privateKey, cloud, deadlineMs } = options;
  const { aws, site, results } = options.settings;
  const shown = progress({ deadlineMs });
  const records = openRecords(context, runId, output.log);
  const { log } = records;
  const unlisten = output.onLost?.((text) => log.warn(text));
  const offers = new HttpOfferSender(aws.certificate?.name);
  const watchers = watchersOf(features, context, { runId, table: results.table, log });
  const server = createMainServer({
    ...records,
    random: systemRandom,
    regions: cloud.regions,
    objects: cloud.objects,
    watchBucket: (objects, onChange) => watchStore(objects, aws.bucket, onChange),
    offers,
    signatures: ED25519,
    launchTemplate: options.launchTemplate,
    privateKey,
    robots: { reader: robotsReader(site), deadlineMs },
    ...secretsOf(context, records, site),
    onWorld(world) {
      shown.show(world);
      watchers.note(world);
    },
  });
  const { core } = server;
  const listener = await listen(createCallbackApp(server.callbacks, log), options.callbackListen, 'server.listen');
  return {
    runId,
    listener,
    server,
    /** Tells those who show and record the loop that it has ended. */
    async loopEnded(): Promise<void> {
      shown.end();
      await watchers.end();
    },
    /**
     * Builds the report, tells the listeners, and stores it with an alarm and a note for each line that they return.
     * Before, it keeps what was asked of which host: a run without a report is taken up again.
     */
    async report(ended: RunRecord): Promise<RunReport> {
      await keepHostRequests(core, { database: context.database, run: ended, signal: context.interrupts.leave });
      const report = await buildReport(core);
      for (const fault of await emit(features, (events) => events.ended?.(context, ended, report))) {
        await core.alarm(fault);
        report.notes.push(fault);
      }
      await core.run.setReport(report);
      return report;
    },
    async [Symbol.asyncDispose](): Promise<void> {
      await listener.close();
      await offers.close();
      unlisten?.();
      log.flush();
    },
  };
}

/** The secrets that the site of a run needs; nothing where it needs none. */
function secretsOf(
  { config, environment }: Pick<RunContext, 'config' | 'environment'>,
  { runId, clock, alarm }: Pick<Core, 'runId' | 'clock' | 'alarm'>,
  site: SiteSettings,
): Pick<Core, 'secrets'> {
  if (secretsIn(site).length === 0) return {};
  const read = () => readSiteSecrets(site, { environment, folder: dirname(config.file) });
  return { secrets: new RunSecrets({ runId, clock, alarm, read }) };
}

/** Writes to the log, the terminal and the run's events; the report reads the events. */
export function createAlarm(
  { runId, stores, onAlarm }: { runId: string; stores: Pick<Stores, 'of'>; onAlarm: (text: string) => void },
  log: Logger,
): Core['alarm'] {
  return async (given, at) => {
    // It may quote an instance, a page or AWS, and is printed in many places.
    const detail = oneLine(given);
    // Only slot and epoch, whatever else the caller's object holds.
    log.warn(at === undefined ? {} : { slot: at.slot, epoch: at.epoch }, detail);
    onAlarm(detail);
    await stores.of(runId).run.addEvent(eventOf('alarm', systemClock.now(), detail, at));
  };
}

/** A full disk costs log lines, never the run: its state is in the database. Reports the failure once. */
export function openLog(file: string, runId: string, onAlarm: (text: string) => void, onLog?: Output['log']): Logger {
  makeStateFolder(dirname(file));
  const target = destination({ dest: file, sync: true });
  let said = false;
  // Without a listener the first line that cannot be written would end the main server.
  target.on('error', (error: unknown) => {
    if (!said) onAlarm(`the log ${file} cannot be written, the run goes on without it: ${describeError(error)}`);
    said = true;
  });
  const rotation = new LogRotation(file, () => target.reopen());
  const streamWrite = (line: string): string => {
    const bounded = boundLine(line);
    onLog?.(bounded);
    rotation.makeRoomFor(bounded);
    return bounded;
  };
  return pino({ base: { run: runId }, hooks: { streamWrite } }, target);
}

type Place = Pick<RunContext, 'stores' | 'lock' | 'config' | 'output'>;

/** The rows of a run under the fence of the lock, with its log and its alarms. */
function openRecords({ stores, lock, config, output }: Place, runId: string, onLog?: Output['log']) {
  const onAlarm = (text: string): void => output.line(`! ${text}`);
  const log = openLog(logFileOf(config, runId), runId, onAlarm, onLog);
  const alarm = createAlarm({ runId, stores, onAlarm }, log);
  const binding = { runId, fence: lock.fence, clock: systemClock };
  return { ...stores.bind(binding), runId, clock: systemClock, log, alarm };
}

/** What a command does to a run without its main server. */
export const createOfflineCore = (place: Place, runId: string): FinishCore & Pick<Core, 'runId' | 'alarm'> => ({
  ...openRecords(place, runId),
  processState: new ProcessState(),
});
