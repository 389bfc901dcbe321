/** Takes up a run whose main server died or left. It is the loop started again. */
import type { Caller, Output } from '../caller.ts';
import { systemClock } from '../../../shared/adapters/system-clock.ts';
import { AppError, describeError } from '../../../shared/domain/errors.ts';
import { remembered } from '../main-server.ts';
import { isRebuilt } from '../model/rebuilt-run.ts';
import type { RunRecord } from '../model/stores.ts';
import { createStores } from '../db/create-stores.ts';
import { migrate } from '../db/migrate.ts';
import { type CarriedOut, carryOut, type OpenRun } from './carry-out.ts';
import type { RunContext } from './run-context.ts';
import { openSession } from './run-session.ts';
import { openCloud } from '../cloud-access/cloud-access.ts';
import { type Config, loadConfig } from '../config/load-config.ts';
import { withoutSecrets } from '../config/user-headers.ts';
import type { ConfigSource } from '../feature.ts';
import { findRun, hasLeftovers, isUnfinished, openWaiting } from '../lookup/find-run.ts';
import { provideBrowser } from '../prepare/browser-boot.ts';
import { ownNetwork } from '../cloud-access/launch-network.ts';
import { bundleOfRun, bundleToGoOnWith, bundlesOf, prepareLaunch } from '../cloud-access/launch-template.ts';
import { lockNamesOfRun, takeLock } from '../lookup/run-lock.ts';
import {
  replaceSandbox,
  type SandboxHandle,
  sandboxPid,
  type SandboxSettings,
  stopSandbox,
  superviseSandbox,
} from '../cloud-access/sandbox-process.ts';
import { once } from 'node:events';
import { createServer } from 'node:net';
import type { RunSettings } from '../model/run-settings.ts';
import { listen, splitAddress } from '../server/listen.ts';
import { findPortHolder } from '../server/port-holder.ts';
import { portOf } from '../../../shared/domain/same-site.ts';
import { waitForHosts } from './wait-for-hosts.ts';
import { isDraining } from '../model/run-deadlines.ts';
import { isRunEnd } from '../../../shared/domain/states.ts';
import { OpenResources } from '../open-resources.ts';

export interface ResumeOptions extends ConfigSource {
  runId: string | undefined;
}

/** `finished` is false when a signal made this process leave before the run and its instances were gone. */
export async function resume(options: ResumeOptions, caller: Caller): Promise<CarriedOut> {
  const { environment, features, runId } = options;
  const config = loadConfig(options);
  await using database = await openWaiting(config, caller.output);
  await migrate(database);
  const stores = createStores(database, config.features);
  const { runs } = stores;
  const run = await findRun(runs, { runId, config }, 'unfinished', isUnfinished);
  if (!isUnfinished(run) && !(await hasLeftovers(stores, run))) {
    throw new AppError('run-ended', `run ${run.id} has ended already: ${run.phase}`, {
      hint: `Look at it with: orchestrator status ${run.id}`,
    });
  }
  // An earlier main server that is only frozen keeps its port: without it nothing would be gained by its lock.
  const check = (): Promise<void> => listenOnce(run, config);
  await using lock = await takeLock({ runs, names: lockNamesOfRun(run), clock: systemClock, check });
  await lock.setRun(run.id);
  // A run that is only collected and ended asks nothing more.
  if (!isRunEnd(run.phase) && !isDraining({ nowMs: systemClock.now(), run }))
    await waitForHosts({ ...caller, runs, lock }, { runId: run.id, intervalMs: null });
  const context = { ...caller, config, environment, features, database, stores, lock };
  return await carryOut(context, await resumeRun(context, run));
}

/** Throws as `resumeRun` would when the run's callback address cannot be listened on. */
async function listenOnce(run: RunRecord, config: Config): Promise<void> {
  if (isRebuilt(run)) return;
  const address = await callbackListenOf(config.values.server.listen, run.settings.server);
  const listener = await listen(() => undefined, address, 'server.listen').catch((error: unknown) => {
    throw explainTakenPort(error, run.id, address);
  });
  await listener.close();
}

/**
 * Opens the run again, to be carried out. One rebuilt from the bucket has no private key to sign orders: `run-ended`.
 */
export async function resumeRun(context: RunContext, run: RunRecord): Promise<OpenRun> {
  const { stores, config, environment, interrupts, output, env } = context;
  if (isRebuilt(run))
    throw new AppError('run-ended', `run ${run.id} was rebuilt from the bucket and cannot be crawled on`, {
      hint: `Go on with: orchestrator load ${run.id}`,
    });
  // The sandbox is given the hash: later launches must use the very same bundle.
  const makeBundle = remembered(() => bundleOfRun(run, { configFile: config.file, output, signal: interrupts.leave }));
  if (run.dryRun) await provideBrowser(run.settings.site.render, env);
  // Only a sandbox needs the hashes beforehand. Elsewhere the bundle, which may need the npm registry, waits for a
  // launch: most resumed runs are only collected and ended. Stored claims are sent unchanged, with the bundle of the
  // version that wrote them.
  const bundles =
    run.settings.sandbox === null
      ? []
      : [...new Set([(await makeBundle()).sha256, ...bundlesOf(await stores.of(run.id).fleet.instances())])];
  // A minute after the last instance has powered itself off.
  const endsAtMs = Math.max(systemClock.now(), run.deadlineAtMs) + run.settings.run.graceMs + 60_000;
  const options = { bundles, endsAtMs, ...standInOptions(run), ...withoutSecrets(run.settings.site, environment) };
  const sandbox = await findSandbox(run, options, output);
  await using opened = new OpenResources();
  const end = { finished: false };
  if (sandbox !== null) {
    opened.defer(async () => {
      if (end.finished) await stopSandbox(sandbox);
    });
    opened.defer(superviseSandbox(sandbox, options, context));
  }
  const standIn = run.settings.sandbox?.endpoint;
  const cloud = opened.use(openCloud(run.settings.aws, run.dryRun, standIn === undefined ? {} : { standIn }));
  const callbackListen = await callbackListenOf(config.values.server.listen, run.settings.server);
  const session = await openSession(context, {
    runId: run.id,
    privateKey: run.privateKey,
    cloud,
    settings: run.settings,
    deadlineMs: run.deadlineAtMs - run.startedAtMs,
    callbackListen,
    launchTemplate: saidOnce(output, async () => {
      const instances = await stores.of(run.id).fleet.instances();
      const bundle = await bundleToGoOnWith(makeBundle, instances, cloud.objects, (text) => output.line(`! ${text}`));
      const own = ownNetwork(run.dryRun, env);
      return prepareLaunch(cloud, run, { plannedType: run.plan.instanceType, bundle, own });
    }),
  }).catch((error: unknown) => {
    throw explainTakenPort(error, run.id, callbackListen);
  });
  opened.use(session);
  output.line(`Run ${run.id}, ${run.dryRun ? 'a dry run' : 'on AWS'}, goes on from ${run.phase}.`);
  const resources = opened.move();
  return Object.assign(end, { session, [Symbol.asyncDispose]: () => resources[Symbol.asyncDispose]() });
}

/** The loop retries, and the run continues with its instances: the user sees only the first failure. */
function saidOnce<T>(output: Output, prepare: () => Promise<T>): () => Promise<T> {
  let said = false;
  return async () => {
    try {
      return await prepare();
    } catch (error) {
      if (!said)
        output.line(`! no further instance can be launched for now, the launch is retried: ${describeError(error)}`);
      said = true;
      throw error;
    }
  };
}

/** The sandbox of a dry run: the one that is still up, or a new one on the same folder and port. */
async function findSandbox(run: RunRecord, options: SandboxSettings, output: Output): Promise<SandboxHandle | null> {
  const { sandbox, aws } = run.settings;
  if (sandbox === null || aws.endpoint === null) return null;
  const endpoint = sandbox.endpoint ?? aws.endpoint;
  const known: SandboxHandle = { ...sandbox, endpoint };
  const pid = await sandboxPid(known);
  // Its process may be newer than the one stored with the run.
  if (pid !== null) return { ...known, pid };
  output.line('The sandbox of this run is gone, and its instances with it; a new one takes its place.');
  return replaceSandbox(known, options);
}

/** The sandbox's first region, and further options of one that only provides the machines for another endpoint. */
function standInOptions({ id, settings }: RunRecord): Pick<SandboxSettings, 'region' | 'standInFor'> {
  const { aws, sandbox } = settings;
  const { region } = aws;
  if (sandbox?.endpoint === undefined || aws.endpoint === null) return { region };
  return { region, standInFor: { endpoint: aws.endpoint, runId: id } };
}

/**
 * The callback address the run's instances were launched with: they call it now, whatever the configuration says by
 * now, which may belong to another crawl. `configured` is used only where the run's own address cannot work: on a
 * machine that lacks that address, and behind a proxy that forwards the calls (then `server.url` has another port, and
 * leads to the configured address).
 */
export async function callbackListenOf(configured: string | null, server: RunSettings['server']): Promise<string> {
  const own = server.callbackListen;
  if (configured === null || configured.endsWith(':0') || configured === own) return own;
  const { host, port } = splitAddress(own);
  if (portOf(new URL(server.callbackUrl)) !== port) return configured;
  return (await isAddressHere(host)) ? own : configured;
}

async function isAddressHere(host: string): Promise<boolean> {
  const server = createServer();
  try {
    server.listen(0, host);
    await once(server, 'listening');
    return true;
  } catch {
    return false;
  } finally {
    server.close();
  }
}

/** A resumed run cannot change its port: names who holds it and how to free it. Other errors pass unchanged. */
export function explainTakenPort(error: unknown, runId: string, listen: string): unknown {
  if (!(error instanceof AppError) || error.code !== 'port-taken') return error;
  const holder = findPortHolder(splitAddress(listen).port);
  const end = holder
    ? `If that is an earlier main server of this run which hangs, end it with: kill -9 ${holder.pid}`
    : 'It may be an earlier main server of this run which hangs: find it with ss -ltnp, end it with kill -9';
  return new AppError('port-taken', error.message, {
    hint: `The instances of run ${runId} call this very port. ${end}; then: orchestrator resume ${runId}`,
    cause: error,
  });
}
