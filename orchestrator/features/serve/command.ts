/** `orchestrator serve`: the operator's page, and with --schedule the schedule too. */
import type { Features } from '../../core/feature.ts';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { systemClock } from '../../../shared/adapters/system-clock.ts';
import { AppError, describeError } from '../../../shared/domain/errors.ts';
import { EXIT, type ExitCode } from '../../../shared/domain/exit-codes.ts';
import { type Config, type Environment, loadConfig } from '../../core/config/load-config.ts';
import { isLoopback } from '../../core/config/target.ts';
import { eventOf } from '../../core/model/run-event.ts';
import { openDatabase } from '../../core/db/connect.ts';
import { createReaders } from '../../core/db/create-stores.ts';
import { History } from '../../core/db/history.ts';
import { migrate } from '../../core/db/migrate.ts';
import { tailOfLog } from '../../cli/commands/logs.ts';
import { listen, type Listener, type Tls } from '../../core/server/listen.ts';
import { pageAssets } from './bundle-page.ts';
import { createServeApp, type RunAction } from './serve-app.ts';
import { watchInterrupts } from '../../cli/interrupts.ts';
import type { Output } from '../../cli/output.ts';
import { type Child, createProcesses, type ProcessExit, type ProcessOptions } from '../../cli/processes.ts';

export interface ServeOptions extends ProcessOptions {
  environment: Environment;
  features: Features;
  listen?: string;
  schedule?: boolean;
}

/** Serves until a signal. Refuses, before it listens, an address that others can reach without token and TLS. */
export async function serveCommand(options: ServeOptions, output: Output): Promise<ExitCode> {
  const config = loadConfig(options);
  const address = options.listen ?? config.values.server.operator;
  const setting = options.listen === undefined ? 'server.operator' : '--listen';
  const place = listenAddressOf(config, address, setting);
  await using database = await openDatabase(config.values.database.url);
  using interrupts = watchInterrupts();
  await migrate(database);
  const stores = createReaders(database);
  const assets = await pageAssets();
  const listenWith = async (health: () => { ok: boolean }): Promise<Listener> => {
    const app = createServeApp({
      stores,
      history: new History(database),
      clock: systemClock,
      assets,
      ...buttonsOf(options, stores),
      token: config.values.server.operator_token,
      isOpen: place.isOpen,
      listenHost: place.host,
      health,
      logOf: (runId) => tailOfLog(config.file, runId),
      nextDue: async () => {
        const [due = null] = await Promise.all(
          options.features.flatMap((one) => one.nextDue?.(database, config) ?? []),
        );
        return due;
      },
    });
    const listener = await listen(app, address, setting, place.tls);
    output.line(`page: ${place.tls ? 'https' : 'http'}://${place.host}:${listener.port}/`);
    if (config.values.server.operator_token === null)
      output.line('It shows everything and changes nothing: server.operator_token is not set.');
    return listener;
  };
  const signal = interrupts.leave;
  if (options.schedule) {
    const scheduler = options.features.find((feature) => feature.runDaemon !== undefined);
    if (scheduler?.runDaemon === undefined)
      throw new AppError('usage', 'this program has no schedule', { hint: 'Leave --schedule out.' });
    return await scheduler.runDaemon({ ...options, launcher: resolve(options.launcher), signal, listenWith }, output);
  }
  const listener = await listenWith(() => ({ ok: true }));
  await once(signal, 'abort');
  await listener.close();
  output.document({ served: address });
  return EXIT.complete;
}

interface ListenAddress {
  host: string;
  /** Reachable from other machines. */
  isOpen: boolean;
  tls: Tls | undefined;
}

function listenAddressOf({ file, values }: Config, address: string, setting: string): ListenAddress {
  const host = address.slice(0, address.lastIndexOf(':'));
  const isOpen = !isLoopback(host);
  const { operator_token: token, operator_tls: tls } = values.server;
  const missing = [
    ...(token === null ? ['server.operator_token'] : []),
    ...(tls === null ? ['server.operator_tls'] : []),
  ];
  if (isOpen && missing.length > 0)
    throw new AppError(
      'config-invalid',
      `${address} (${setting}) can be reached from other machines: set ${missing.join(' and ')}`,
      {
        hint: 'Or listen on 127.0.0.1 and reach it through ssh -L.',
      },
    );
  const read = (path: string): Buffer => {
    try {
      return readFileSync(resolve(dirname(file), path));
    } catch (error) {
      throw new AppError('config-invalid', `server.operator_tls: ${describeError(error)}`);
    }
  };
  return {
    host,
    isOpen,
    tls: tls === null || tls === 'proxy' ? undefined : { cert: read(tls.cert), key: read(tls.key) },
  };
}

/** How long the page waits for a command to end. */
const ANSWER_WITHIN_MS = 8_000;
/** How long for a plan, which asks site, AWS and database. */
const PLAN_WITHIN_MS = 60_000;

/** Each button starts the command of its name, as a process that outlives this one; so both do the same. */
function buttonsOf(
  options: ServeOptions,
  stores: ReturnType<typeof createReaders>,
): Pick<Parameters<typeof createServeApp>[0], 'actions' | 'pace' | 'startOfRetry'> {
  const processes = createProcesses({ ...options, launcher: resolve(options.launcher) }, '');
  // Without it, retry keeps the kind of its run.
  const dry = options.dryRun ? ['--dry-run'] : [];
  const assertKnown = async (runId: string): Promise<void> => {
    if ((await stores.runs.get(runId)) === null)
      throw new AppError('run-unknown', `there is no run ${runId} in this database`);
  };
  const endOf = async ({ ended }: Child, withinMs: number): Promise<ProcessExit | null> => {
    const waited = new AbortController();
    const end = await Promise.race([ended, systemClock.sleep(withinMs, waited.signal).then(() => null)]);
    waited.abort();
    return end;
  };
  const carryOut = async (action: RunAction | 'pace', runId: string, ...flags: string[]): Promise<string> => {
    await assertKnown(runId);
    await stores.of(runId).run.addEvent(eventOf('operator', systemClock.now(), `${action} was asked for on the page`));
    const child = processes.start(action, action, runId, ...flags);
    const end = await endOf(child, ANSWER_WITHIN_MS);
    const said = lastWords(child.logFile);
    if (end === null)
      return `${said === '' ? `${action} has begun` : said} (it goes on; its output is in ${child.logFile})`;
    if (end.code === EXIT.complete) return said;
    throw new AppError('usage', said === '' ? `${action} ended with ${end.code}` : said);
  };
  return {
    actions: {
      stop: (id) => carryOut('stop', id),
      cancel: (id) => carryOut('cancel', id, '--yes'),
      publish: (id) => carryOut('publish', id),
      retry: (id) => carryOut('retry', id, '--yes', ...dry),
    },
    pace: (id, flags) => carryOut('pace', id, ...flags),
    async startOfRetry(runId) {
      await assertKnown(runId);
      const child = processes.start('plan', 'plan', '--retry', runId, ...dry);
      const end = await endOf(child, PLAN_WITHIN_MS);
      if (end?.code === EXIT.complete) {
        const { start } = JSON.parse(readFileSync(child.document, 'utf8')) as { start?: string | null };
        if (start) return start;
      }
      const why = end === null ? `its plan takes longer than ${PLAN_WITHIN_MS / 1_000} s` : lastWords(child.logFile);
      throw new AppError('usage', `retry would start nothing: ${why}`);
    },
  };
}

const MOST_WORDS = 600;

const lastWords = (file: string): string =>
  readFileSync(file, 'utf8')
    .trim()
    .replace(/^orchestrator: /, '')
    .slice(-MOST_WORDS);
