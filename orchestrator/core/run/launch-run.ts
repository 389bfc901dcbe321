/** From an accepted plan to a running run: sandbox or AWS, bundle, listener, rows in the database, then the loop. */
import type { LaunchTemplate } from '../model/core.ts';
import type { Caller } from '../caller.ts';
import { systemClock } from '../../../shared/adapters/system-clock.ts';
import { AppError } from '../../../shared/domain/errors.ts';
import type { ExitCode } from '../../../shared/domain/exit-codes.ts';
import type { Bundle } from '../../../userdata/bundle.ts';
import { ensureBucket } from '../cloud/bucket.ts';
import { checkUserData } from '../act/launches/launch.ts';
import { writeRunDescription } from '../act/results/run-description.ts';
import type { RunSettings } from '../model/run-settings.ts';
import { newRunKeys } from '../new-run.ts';
import type { NewRun, Stores } from '../model/stores.ts';
import type { Database } from '../db/connect.ts';
import { noDiscovery } from '../../features/discovery/frontier.ts';
import { createResultTable } from '../db/result-table.ts';
import type { Plan } from '../plan/plan.ts';
import { type CarriedOut, workOn } from './carry-out.ts';
import { provideBrowser } from '../prepare/browser-boot.ts';
import { type EndpointProfile, needsStandIn, renderParts } from '../cloud/probe.ts';
import { awsOptions, type CloudAccess, openCloud } from '../cloud-access/cloud-access.ts';
import type { Config } from '../config/load-config.ts';
import { bundleFor, prepareLaunch } from '../cloud-access/launch-template.ts';
import { ownNetwork } from '../cloud-access/launch-network.ts';
import type { ProductList } from '../prepare/products.ts';
import type { Target } from '../config/target.ts';
import { settingsOf } from '../prepare/settings-of.ts';
import type { RunLock } from '../lookup/run-lock.ts';
import { pingOf } from '../../features/notify/announce.ts';
import { logFileOf, stateDirOf } from '../config/state-dir.ts';
import { type SandboxHandle, startSandbox, stopSandbox, superviseSandbox } from '../cloud-access/sandbox-process.ts';

export interface LaunchRunOptions extends Caller {
  runId: string;
  config: Config;
  target: Target;
  database: Database;
  stores: Stores;
  lock: RunLock;
  plan: Plan;
  products: ProductList;
  /** The run whose failed products this run retries. */
  parentId: string | null;
  /** What answers at the endpoint of a dry run; null without an endpoint, and on AWS. */
  profile: EndpointProfile | null;
  /** The due time that it is started for; null by hand. */
  dueAtMs: number | null;
  bindRun: (runId: string) => Promise<void>;
}

export async function launchRun(options: LaunchRunOptions): Promise<ExitCode> {
  const { config, target, plan, output, runId, profile } = options;
  if (!target.dryRun && config.values.server.url === null) {
    throw new AppError('config-invalid', `a run on AWS needs server.url in ${config.file}`, {
      hint: 'It is how instances reach this server, for example http://10.0.0.5:8700',
    });
  }
  const { render } = config.values.site;
  if (target.dryRun) await provideBrowser(render, options.env);
  const bundle = await bundleFor({
    render,
    onAws: target.kind === 'aws',
    instanceType: plan.instanceType,
    configFile: config.file,
    output,
    signal: options.interrupts.leave,
  });
  for (const line of profile === null ? [] : renderParts(profile)) output.line(line);
  const isPlayed = target.kind === 'sandbox';
  const standInFor = profile !== null && needsStandIn(profile) ? { endpoint: profile.endpoint, runId } : null;
  if (standInFor !== null && (config.values.aws.regions?.length ?? 1) > 1)
    throw new AppError(
      'config-invalid',
      `${standInFor.endpoint} can serve one region in a dry run, and aws.regions has more`,
      {
        hint: 'Leave aws.endpoint out: the built-in sandbox plays them all.',
      },
    );
  if (!isPlayed && standInFor === null) return (await launchOn(options, bundle, null)).exitCode;
  if (isPlayed) output.line('The sandbox on this machine provides EC2, ELBv2 and S3.');
  const sandboxOptions = {
    bundles: [bundle.sha256],
    endsAtMs: systemClock.now() + plan.deadlineMs + config.values.run.grace + 60_000,
    region: target.region,
    ...(standInFor === null ? {} : { standInFor }),
  };
  const sandbox = await startSandbox({ ...sandboxOptions, dataDir: stateDirOf(config.file).sandbox(runId), port: 0 });
  const unwatch = superviseSandbox(sandbox, sandboxOptions, options);
  let [stored, finished] = [false, false];
  const bindRun = async (id: string): Promise<void> => {
    await options.bindRun(id);
    stored = true;
  };
  try {
    const result = await launchOn({ ...options, bindRun }, bundle, sandbox);
    finished = result.finished;
    return result.exitCode;
  } finally {
    await unwatch();
    // A run that was left, or taken over, continues without us: its instances keep crawling.
    if (finished || !stored || (await isMissing(options.stores, runId))) await stopSandbox(sandbox);
  }
}

/** True when the run's row was not written; false when the database cannot answer: the run may exist. */
const isMissing = async ({ runs }: Stores, runId: string): Promise<boolean> =>
  (await runs.get(runId).catch(() => undefined)) === null;

async function launchOn(options: LaunchRunOptions, bundle: Bundle, sandbox: SandboxHandle | null): Promise<CarriedOut> {
  const { config, target, plan } = options;
  // The endpoint of the configuration; without one the sandbox provides everything.
  const endpoint = target.kind === 'sandbox' ? (sandbox?.endpoint ?? null) : target.endpoint;
  const settings = settingsOf(config, { ...target, endpoint }, plan);
  const standIn = sandbox !== null && target.kind !== 'sandbox' ? { standIn: sandbox.endpoint } : {};
  using cloud = openCloud(settings.aws, target.dryRun, standIn);
  if (target.dryRun) await ensureBucket({ ...awsOptions(settings.aws, true), bucket: settings.aws.bucket });
  const own = ownNetwork(target.dryRun, options.env);
  const { deny = [] } = options.products;
  const run = { id: options.runId, settings, deny };
  const template = await prepareLaunch(cloud, run, { plannedType: plan.instanceType, bundle, own });
  for (const note of template.notes ?? []) options.output.line(note);
  return await withSession(options, settings, sandbox, { cloud, template });
}

async function withSession(
  options: LaunchRunOptions,
  settings: Omit<RunSettings, 'sandbox' | 'server'>,
  sandbox: SandboxHandle | null,
  { cloud, template }: { cloud: CloudAccess; template: LaunchTemplate },
): Promise<CarriedOut> {
  const { config, target, stores, lock, interrupts, output, plan, runId } = options;
  const keys = newRunKeys();
  const session = {
    ...options,
    cloud,
    settings,
    privateKey: keys.privateKey,
    deadlineMs: settings.run.deadlineMs,
    callbackListen: config.values.server.listen ?? (target.dryRun ? '127.0.0.1:0' : '0.0.0.0:8700'),
    launchKit: () => Promise.resolve(template),
    progress: options.progress(plan),
  };
  return workOn(session, async ({ host, port }) => {
    const server = {
      callbackUrl: config.values.server.url ?? `http://127.0.0.1:${port}`,
      callbackListen: `${host}:${port}`,
    };
    const place = sandbox === null ? null : placeOf(sandbox, target.kind !== 'sandbox');
    await createResultTable(options.database, settings.results, settings.mapping);
    if (interrupts.leave.aborted) throw new AppError('interrupted', 'interrupted before anything was launched');
    const run = newRun(options, keys, { ...settings, ...denyOf(options.products, template), server, sandbox: place });
    await checkUserData(run, template, cloud.objects, systemClock);
    await options.bindRun(runId);
    // Before the run is in the database: from then on the bucket alone is enough to tell which run its parts belong to.
    // The products of a discovery are taken from its frontier, by the loop.
    const ids = settings.discover ? [] : options.products.ids;
    await writeRunDescription(cloud.objects, run, ids, systemClock);
    await stores.runs.create(run, ids, lock.fence, systemClock.now());
    await lock.setRun(runId);
    // The ledger has them now; a million IDs would stay in memory for hours.
    options.products.ids.length = 0;
    output.line(`Run ${runId} has begun; its log is ${logFileOf(config, runId)}`);
    void pingOf(config, run, 'start').then((faults) => faults.forEach((fault) => output.line(`! ${fault}`)));
  });
}

/** Where the row finds the deny list again: in the object of the instances. */
const denyOf = ({ deny = [] }: ProductList, { crawlSettings }: LaunchTemplate): Pick<RunSettings, 'crawlSettings'> =>
  deny.length === 0 ? {} : { crawlSettings: crawlSettings.sha256 };

function placeOf({ pid, controlToken, dataDir, endpoint }: SandboxHandle, standsIn: boolean): RunSettings['sandbox'] {
  return { pid, controlToken, dataDir, ...(standsIn ? { endpoint } : {}) };
}

/** The row of a new run. The deadline counts from here: from the plan's acceptance, before anything is launched. */
export function newRun(
  options: Pick<LaunchRunOptions, 'runId' | 'plan' | 'products' | 'target' | 'parentId' | 'dueAtMs'>,
  keys: { privateKey: string; publicKey: string },
  settings: RunSettings,
): NewRun {
  const startedAtMs = systemClock.now();
  const { dueAtMs } = options;
  return {
    id: options.runId,
    parentId: options.parentId,
    startedAtMs,
    deadlineAtMs: startedAtMs + settings.run.deadlineMs,
    dryRun: options.target.dryRun,
    settings: { ...settings, ...listOf(options.products), ...(dueAtMs === null ? {} : { dueAtMs }) },
    plan: options.plan,
    planned: settings.discover ? 0 : options.products.ids.length,
    duplicates: options.products.duplicates,
    ...(settings.discover ? { discovery: noDiscovery(options.products.entered) } : {}),
    ...keys,
  };
}

function listOf({ list }: ProductList): Pick<RunSettings, 'list'> {
  if (list === undefined) return {};
  const { key, usual, accepted, length } = list;
  return { list: { key, usual, accepted, ...(length === undefined ? {} : { length }) } };
}
