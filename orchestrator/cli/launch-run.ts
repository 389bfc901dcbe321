/** From an accepted plan to a run under way: sandbox or AWS, bundle, listener, rows in the database, then the loop. */
import { systemClock } from '../../shared/adapters/system-clock.ts';
import { AppError } from '../../shared/domain/errors.ts';
import type { ExitCode } from '../../shared/domain/exit-codes.ts';
import { buildBundle } from '../../userdata/bundle.ts';
import { ensureBucket } from '../cloud/bucket.ts';
import { checkUserData } from '../control/launch.ts';
import type { RunSettings } from '../control/run-settings.ts';
import { newRunKeys } from '../control/start-run.ts';
import type { NewRun } from '../control/stores.ts';
import type { Database } from '../db/connect.ts';
import { createResultTable } from '../db/result-table.ts';
import type { Plan } from '../plan/plan.ts';
import { carryOut } from './carry-out.ts';
import type { CloudAccess } from './cloud-access.ts';
import { awsOptions, openCloud } from './cloud-access.ts';
import type { Config } from './config/load-config.ts';
import type { Interrupts } from './interrupts.ts';
import { keepSandbox } from './keep-sandbox.ts';
import type { Bundle } from './launch-kit.ts';
import { prepareLaunch } from './launch-kit.ts';
import type { Output } from './output.ts';
import type { ProductList, Target } from './prepare.ts';
import { settingsOf } from './prepare.ts';
import { createProgressPrinter } from './progress.ts';
import type { RunLock } from './run-lock.ts';
import type { Stores } from './run-session.ts';
import { openSession, stateDirOf } from './run-session.ts';
import type { SandboxHandle } from './sandbox-process.ts';
import { startSandbox, stopSandbox } from './sandbox-process.ts';
import { VERSION } from './version.ts';

export interface LaunchRunOptions {
  runId: string;
  config: Config;
  target: Target;
  database: Database;
  stores: Stores;
  lock: RunLock;
  interrupts: Interrupts;
  plan: Plan;
  products: ProductList;
  output: Output;
}

export async function launchRun(options: LaunchRunOptions): Promise<ExitCode> {
  const { config, target, plan, output, runId } = options;
  if (!target.dryRun && config.values.server.url === null) {
    throw new AppError('config-invalid', `a run on AWS needs server.url in ${config.file}`, {
      hint: 'It is how instances reach this server, for example http://10.0.0.5:8700',
    });
  }
  const bundle = await buildBundle();
  if (target.kind !== 'sandbox') return (await launchOn(options, bundle, null)).exitCode;
  output.line('EC2, ELBv2 and S3 are played by the sandbox on this machine.');
  const endsAtMs = systemClock.now() + plan.deadlineMs + config.values.run.grace + 60_000;
  const bundles = [bundle.sha256];
  const sandbox = await startSandbox({ dataDir: stateDirOf(config.file).sandbox(runId), port: 0, bundles, endsAtMs });
  const unwatch = keepSandbox(sandbox, { bundles, endsAtMs }, (text) => output.line(`! ${text}`));
  let finished = true;
  try {
    const result = await launchOn(options, bundle, sandbox);
    finished = result.finished;
    return result.exitCode;
  } finally {
    await unwatch();
    // A run that was left goes on without us: its instances crawl, and `resume` takes it up.
    if (finished) await stopSandbox(sandbox);
  }
}

async function launchOn(
  options: LaunchRunOptions,
  bundle: Bundle,
  sandbox: SandboxHandle | null,
): Promise<{ exitCode: ExitCode; finished: boolean }> {
  const { config, target, plan } = options;
  const settings = settingsOf(config, { ...target, endpoint: sandbox?.endpoint ?? target.endpoint }, plan, VERSION);
  const cloud = openCloud(settings.aws, target.dryRun);
  try {
    if (target.dryRun) await ensureBucket({ ...awsOptions(settings.aws, true), bucket: settings.aws.bucket });
    const kit = await prepareLaunch(cloud, settings.aws, plan.instanceType, bundle);
    return await withSession(options, settings, sandbox, cloud, () => Promise.resolve(kit));
  } finally {
    cloud.close();
  }
}

async function withSession(
  options: LaunchRunOptions,
  settings: Omit<RunSettings, 'sandbox' | 'server'>,
  sandbox: SandboxHandle | null,
  cloud: CloudAccess,
  launchKit: () => ReturnType<typeof prepareLaunch>,
): Promise<{ exitCode: ExitCode; finished: boolean }> {
  const { config, target, stores, lock, interrupts, output, plan, runId } = options;
  const keys = newRunKeys();
  const progress = createProgressPrinter(process.stderr, quietMs(plan));
  const session = await openSession({
    runId,
    privateKey: keys.privateKey,
    lock,
    stores,
    cloud,
    callbackListen: config.values.server.listen ?? (target.dryRun ? '127.0.0.1:0' : '0.0.0.0:8700'),
    launchKit,
    logFile: `${stateDirOf(config.file).run(runId)}/log.ndjson`,
    onAlarm: (text) => output.line(`! ${text}`),
    onWorld: (world) => progress.show(world),
  });
  try {
    const { host, port } = session.listener;
    const server = {
      callbackUrl: config.values.server.url ?? `http://127.0.0.1:${port}`,
      callbackListen: `${host}:${port}`,
    };
    const place =
      sandbox === null ? null : { pid: sandbox.pid, controlToken: sandbox.controlToken, dataDir: sandbox.dataDir };
    await createResultTable(options.database, settings.results.table, settings.mapping);
    if (interrupts.leave.aborted) throw new AppError('interrupted', 'interrupted before anything was launched');
    const run = newRun(options, keys, { ...settings, server, sandbox: place });
    await checkUserData(run, await launchKit(), cloud.objects, systemClock);
    await stores.runs.create(run, options.products.ids, lock.fence, systemClock.now());
    lock.setRun(runId);
    // They are in the ledger now; a million of them would stay in memory for hours.
    options.products.ids.length = 0;
    output.line(`Run ${runId} has begun; its log is ${stateDirOf(config.file).run(runId)}/log.ndjson`);
    return await carryOut({ runId, session, stores, config, interrupts, progress, output });
  } finally {
    await session.close();
  }
}

/** The row of a new run. The deadline counts from here: from the plan's acceptance, before anything is launched. */
export function newRun(
  options: Pick<LaunchRunOptions, 'runId' | 'plan' | 'products' | 'target'>,
  keys: { privateKey: string; publicKey: string },
  settings: RunSettings,
): NewRun {
  const startedAtMs = systemClock.now();
  return {
    id: options.runId,
    parentId: null,
    startedAtMs,
    deadlineAtMs: startedAtMs + settings.run.deadlineMs,
    dryRun: options.target.dryRun,
    settings,
    plan: options.plan,
    planned: options.products.ids.length,
    duplicates: options.products.duplicates,
    ...keys,
  };
}

/** Without a terminal: about twenty lines a run, at most one a minute. */
export function quietMs(plan: Plan): number {
  return Math.min(60_000, Math.max(2_000, plan.deadlineMs / 20));
}
