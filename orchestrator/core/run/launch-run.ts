/**
 * The way from an accepted plan to a running run: sandbox or AWS, bundle, listener, rows in the database, then the
 * loop.
 */
import type { ObjectStore } from '../../../shared/ports/object-store.ts';
import { systemClock } from '../../../shared/adapters/system-clock.ts';
import { isAnyHost } from '../../../shared/domain/domains.ts';
import { AppError } from '../../../shared/domain/errors.ts';
import type { Bundle } from '../../../userdata/bundle.ts';
import { ensureBucket } from '../cloud/bucket.ts';
import { checkUserData } from '../act/launches/launch.ts';
import { writeRunDescription } from '../act/results/run-description.ts';
import type { RunSettings } from '../model/run-settings.ts';
import { newRunKeys } from '../new-run.ts';
import type { NewRun } from '../model/stores.ts';
import { noDiscovery } from '../model/discovery.ts';
import { createResultTable } from '../db/result-table.ts';
import type { Plan } from '../plan/plan.ts';
import type { OpenRun } from './carry-out.ts';
import type { PlannedStart } from './plan-start.ts';
import { openSession } from './run-session.ts';
import type { StartContext } from './start-context.ts';
import { provideBrowser } from '../prepare/browser-boot.ts';
import { needsStandIn, renderParts } from '../cloud/endpoint-profile.ts';
import { awsOptions, openCloud } from '../cloud-access/cloud-access.ts';
import { bundleFor, prepareLaunch } from '../cloud-access/launch-template.ts';
import { ownNetwork } from '../cloud-access/launch-network.ts';
import type { ProductList } from '../prepare/products.ts';
import type { Target } from '../config/target.ts';
import { denyOf } from '../config/follow-section.ts';
import { siteSettingsOf } from '../config/site-section.ts';
import { withoutSecrets } from '../config/user-headers.ts';
import { settingsOf } from '../prepare/settings-of.ts';
import { emit } from '../run-events.ts';
import { logFileOf, stateDirOf } from '../config/state-dir.ts';
import {
  type SandboxHandle,
  type SandboxSettings,
  startSandbox,
  stopSandbox,
  superviseSandbox,
} from '../cloud-access/sandbox-process.ts';
import { OpenResources } from '../open-resources.ts';

/** A plan that is carried out. */
export interface AcceptedRun extends PlannedStart {
  runId: string;
  /** The due time that it is started for; null by hand. */
  dueAtMs: number | null;
  /** Called right before the run is stored: if it throws, no run is stored. */
  bind: () => Promise<void>;
}

/** Opens the run: it is stored, and has its main server. Nothing is launched before the loop. */
export async function launchRun(context: StartContext, accepted: AcceptedRun): Promise<OpenRun> {
  const { config, target, stores, output } = context;
  const { runId, plan, products } = accepted;
  const bundle = await bundleOf(context, plan);
  await using opened = new OpenResources();
  const run = { finished: false, isBound: false };
  const sandbox = await startSandboxOf(context, accepted, bundle);
  if (sandbox !== null) {
    opened.defer(async () => {
      // A run that was left, or taken over, continues without us: its instances keep crawling. If the database cannot
      // answer, it may be there.
      const goesOn = !run.finished && run.isBound && (await stores.runs.get(runId).catch(() => undefined)) !== null;
      if (!goesOn) await stopSandbox(sandbox.handle);
    });
    opened.defer(superviseSandbox(sandbox.handle, sandbox.settings, context));
  }
  const isPlayed = target.kind === 'sandbox';
  const endpointOfSandbox = sandbox?.handle.endpoint ?? null;
  // The endpoint of the configuration; without one the sandbox provides everything.
  const settings = settingsOf(config, isPlayed ? { ...target, endpoint: endpointOfSandbox } : target, plan);
  const standIn = isPlayed || endpointOfSandbox === null ? {} : { standIn: endpointOfSandbox };
  const cloud = opened.use(openCloud(settings.aws, target.dryRun, standIn));
  if (target.dryRun) await ensureBucket({ ...awsOptions(settings.aws, true), bucket: settings.aws.bucket });
  const own = ownNetwork(target.dryRun, context.env);
  const launch = { plannedType: plan.instanceType, bundle, own };
  const deny = denyOf(config);
  const template = await prepareLaunch(cloud, { id: runId, settings, deny }, launch);
  for (const note of template.notes ?? []) output.line(note);
  const keys = newRunKeys();
  const session = opened.use(
    await openSession(context, {
      runId,
      privateKey: keys.privateKey,
      cloud,
      settings,
      deadlineMs: settings.run.deadlineMs,
      callbackListen: config.values.server.listen ?? (target.dryRun ? '127.0.0.1:0' : '0.0.0.0:8700'),
      launchTemplate: () => Promise.resolve(template),
    }),
  );
  await createResultTable(context.database, settings.results, settings.mapping, context.config.features);
  if (context.interrupts.leave.aborted) throw new AppError('interrupted', 'interrupted before anything was launched');
  const { host, port } = session.listener;
  const record = newRun(target, accepted, keys, {
    ...settings,
    // Where the row finds the deny list again: in the object of the instances.
    ...(deny.length === 0 ? {} : { crawlSettings: template.crawlSettings.sha256 }),
    server: {
      callbackUrl: config.values.server.url ?? `http://127.0.0.1:${port}`,
      callbackListen: `${host}:${port}`,
    },
    sandbox: sandbox && placeOf(sandbox.handle, !isPlayed),
  });
  await checkUserData(record, template, cloud.objects, systemClock);
  await accepted.bind();
  run.isBound = true;
  await storeRun(context, record, products, cloud.objects);
  const resources = opened.move();
  return Object.assign(run, { session, [Symbol.asyncDispose]: () => resources[Symbol.asyncDispose]() });
}

async function storeRun(
  context: StartContext,
  given: NewRun,
  products: ProductList,
  objects: ObjectStore,
): Promise<void> {
  const { config, stores, lock, output, features } = context;
  // Only the plan needs them.
  delete products.loads;
  // Before the run is in the database: from then on the bucket alone is enough to tell which run its parts belong to.
  // The products of a discovery are taken from its frontier, by the loop.
  const ids = given.settings.discover ? [] : products.ids;
  const { urls, chunks } = products;
  // Chunks that are not cut by host would give one host to several instances.
  if (isAnyHost(given.settings.site.productUrl) && chunks === undefined)
    throw new AppError('internal', 'the records of many hosts were not cut by host, so nothing was launched');
  const run = { ...given, ...(urls === undefined ? {} : { urls }), ...(chunks === undefined ? {} : { chunks }) };
  await writeRunDescription(objects, run, ids, systemClock);
  await stores.runs.create(run, ids, lock.fence, systemClock.now());
  await lock.setRun(run.id);
  // The ledger has them now; a million IDs would stay in memory for hours.
  products.ids = [];
  delete products.urls;
  output.line(`Run ${run.id} has begun; its log is ${logFileOf(config, run.id)}`);
  void emit(features, (events) => events.begun?.(context, given)).then((faults) =>
    faults.forEach((fault) => output.line(`! ${fault}`)),
  );
}

async function bundleOf({ config, target, output, interrupts, env }: StartContext, plan: Plan): Promise<Bundle> {
  if (!target.dryRun && config.values.server.url === null) {
    throw new AppError('config-invalid', `a run on AWS needs server.url in ${config.file}`, {
      hint: 'It is how instances reach this server, for example http://10.0.0.5:8700',
    });
  }
  const { render } = config.values.site;
  if (target.dryRun) await provideBrowser(render, env);
  return bundleFor({
    render,
    onAws: target.kind === 'aws',
    instanceType: plan.instanceType,
    configFile: config.file,
    output,
    signal: interrupts.leave,
  });
}

/** What provides the machines of a dry run, and all else without an endpoint; null where the endpoint or AWS does. */
async function startSandboxOf(
  { config, target, profile, output, environment }: StartContext,
  { runId, plan }: AcceptedRun,
  bundle: Bundle,
): Promise<{ handle: SandboxHandle; settings: SandboxSettings } | null> {
  for (const line of profile === null ? [] : renderParts(profile)) output.line(line);
  const isPlayed = target.kind === 'sandbox';
  const standInFor = profile !== null && needsStandIn(profile) ? { endpoint: profile.endpoint, runId } : null;
  if (standInFor !== null && (config.values.aws.regions?.length ?? 1) > 1)
    throw new AppError(
      'config-invalid',
      `${standInFor.endpoint} can serve one region in a dry run, and aws.regions has more`,
      { hint: 'Leave aws.endpoint out: the built-in sandbox plays them all.' },
    );
  if (!isPlayed && standInFor === null) return null;
  if (isPlayed) output.line('The sandbox on this machine provides EC2, ELBv2 and S3.');
  const settings = {
    bundles: [bundle.sha256],
    endsAtMs: systemClock.now() + plan.deadlineMs + config.values.run.grace + 60_000,
    region: target.region,
    ...withoutSecrets(siteSettingsOf(config.values.site), environment),
    ...(standInFor === null ? {} : { standInFor }),
  };
  const dataDir = stateDirOf(config.file).sandbox(runId);
  return { handle: await startSandbox({ ...settings, dataDir, port: 0 }), settings };
}

function placeOf({ pid, controlToken, dataDir, endpoint }: SandboxHandle, standsIn: boolean): RunSettings['sandbox'] {
  return { pid, controlToken, dataDir, ...(standsIn ? { endpoint } : {}) };
}

/** The row of a new run. The deadline counts from here: from the plan's acceptance, before anything is launched. */
export function newRun(
  target: Target,
  { runId, plan, products, parentId, dueAtMs }: AcceptedRun,
  keys: { privateKey: string; publicKey: string },
  settings: RunSettings,
): NewRun {
  const startedAtMs = systemClock.now();
  return {
    id: runId,
    parentId,
    startedAtMs,
    deadlineAtMs: startedAtMs + settings.run.deadlineMs,
    dryRun: target.dryRun,
    settings: { ...settings, ...listOf(products), ...(dueAtMs === null ? {} : { dueAtMs }) },
    plan,
    planned: settings.discover ? 0 : products.ids.length,
    duplicates: products.duplicates,
    ...(settings.discover ? { discovery: noDiscovery(products.entered) } : {}),
    ...keys,
  };
}

function listOf({ list }: ProductList): Pick<RunSettings, 'list'> {
  if (list === undefined) return {};
  const { key, usual, accepted, length } = list;
  return { list: { key, usual, accepted, ...(length === undefined ? {} : { length }) } };
}
