/**
 * One instance from hello to power-off: wires the components and runs them side by side.
 *
 *   listeners   from the start; not ready before the hello is accepted
 *   heartbeats  from the hello to the end
 *   crawl       until every granted product has its outcome, or an order or the deadline ends it
 *   upload      alongside the crawl; then the manifest and the completion callback
 *   idle        sends heartbeats until the instance is terminated, fenced, or reaches its own power-off time
 */
import { closeServer } from '../shared/adapters/http/listening.ts';
import type { Clock } from '../shared/ports/clock.ts';
import type { ObjectStore } from '../shared/ports/object-store.ts';
import type { Random } from '../shared/ports/random.ts';
import type { Heartbeat, Orders } from '../shared/wire/callbacks.ts';
import type { InstanceSettings } from '../shared/wire/settings.ts';
import { importPublicKey } from '../shared/wire/signature.ts';
import { closeEpoch } from './control/closing.ts';
import { HeartbeatLoop } from './control/heartbeat.ts';
import { sayHello } from './control/hello.ts';
import type { Log } from './control/retry.ts';
import { MainServerClient } from './control/main-server-client.ts';
import type { InstanceMetadata } from './control/metadata.ts';
import { readCrawlSettings } from './control/read-crawl-settings.ts';
import { StateFolder } from './control/state-folder.ts';
import { localAddressOf, openSources, provesPages } from './open-sources.ts';
import { PageTimes } from './politeness/pacer.ts';
import { RenderChoice } from './politeness/render-choice.ts';
import { compileSiteRules } from './politeness/site-rules.ts';
import { Crawl } from './queue/crawl.ts';
import { createBalancerApp } from './server/balancer-app.ts';
import { listen } from './server/listen.ts';
import { createLocalApp } from './server/local-app.ts';
import { roleSessionOf } from './upload/role-session.ts';
import { Uploader } from './upload/uploader.ts';
import { DenyList } from '../shared/domain/deny-list.ts';
import { domainOf } from '../shared/domain/domains.ts';
import { productUrl } from '../shared/domain/product.ts';
import { toFailure } from './queue/item-result.ts';
import { JournalFile } from './queue/journal-file.ts';
import { untilWritten } from './queue/journal-writer.ts';
import { QueueState } from './queue/queue-state.ts';
import { Queue } from './queue/queue.ts';
import { ReserveFile } from './queue/reserve-file.ts';

export interface InstanceParts {
  settings: InstanceSettings;
  metadata: InstanceMetadata;
  /** Base URL of the metadata service: the crawl never connects to it. */
  metadataEndpoint: string;
  /** Folder that survives a process restart. */
  stateDirectory: string;
  chromiumPath: string | null;
  openStore: () => Promise<ObjectStore>;
  /** `aws:userid` of the instance's credentials; rejects without an answer. */
  readUserId: () => Promise<string>;
  clock: Clock;
  random: Random;
  log: Log;
}

/** Why the instance ended; in each case the machine should power off. */
export type InstanceEnd = 'refused' | 'fenced' | 'power-off-time' | 'stopped';

/** Runs until the machine is no longer needed, or `stop` aborts. Rejects for faults that a restart may fix. */
export async function runInstance(parts: InstanceParts, stop: AbortSignal): Promise<InstanceEnd> {
  const { settings, metadata, clock, random, log } = parts;
  const owner = { run: settings.run, slot: settings.slot, epoch: settings.epoch };
  const { instanceId, address } = metadata;
  const runPublicKey = importPublicKey(settings.runPublicKey);
  const folder = new StateFolder(parts.stateDirectory, owner, clock.now());
  const { site } = settings;
  const { deny } = await readCrawlSettings({
    named: settings.crawlSettings,
    file: folder.crawlSettingsPath,
    address,
    clock,
  });
  const rules = await compileSiteRules(site.ban, provesPages(settings.mapping));
  const sources = await openSources({ ...parts, address, scratchDirectory: folder.scratchPath });
  const { queue, journal } = openQueue(parts, folder);

  const ending = new AbortController();
  let end: InstanceEnd = 'stopped';
  const endNow = (reason: InstanceEnd): void => {
    if (!ending.signal.aborted) end = reason;
    ending.abort();
  };
  const onStop = (): void => endNow('stopped');
  stop.addEventListener('abort', onStop, { once: true });
  if (stop.aborted) onStop();

  const client = new MainServerClient({
    callbackUrl: settings.callbackUrl,
    owner,
    token: settings.token,
    privateKey: folder.privateKey,
    runPublicKey,
    nextCounter: () => folder.nextCounter(),
    localAddress: address,
    // One lost reply must not cost so much time that the main server gives the instance up.
    timeoutMs: Math.min(10_000, Math.max(1_500, settings.heartbeatMs * 3)),
  });
  const pageTimes = new PageTimes();
  const status = { ready: folder.helloAccepted, crawling: true };

  const wanted = settings.s3.roleSession === true;
  const session = roleSessionOf({ wanted, folder, readUserId: parts.readUserId, clock, random, log });
  const uploader = new Uploader({
    queue,
    owner,
    session,
    privateKey: folder.privateKey,
    openStore: parts.openStore,
    clock,
    random,
    partMs: settings.partMs,
    onChange: () => {
      if (uploader.problem !== null) log.warn({ problem: uploader.problem }, 'upload failed');
      heartbeat.poke();
    },
  });
  const describe = (): Heartbeat => ({
    phase: phaseOf(queue, status.crawling),
    clock: new Date(clock.now()).toISOString(),
    offered: queue.state.offeredChunks().slice(0, 10_000),
    transferred: queue.transferredChunks().slice(0, 10_000),
    progress: { ...queue.progress(pageTimes.median(), uploader.slowestMs), ...uploader.storeRefused },
    parts: queue.unackedParts(500),
    problem: (queue.diskProblem ?? uploader.problem ?? crawl.problem)?.slice(0, 500) ?? null,
    incident: crawl.incidents.describe(),
    robots: queue.state.robots?.version ?? null,
  });
  const follow = async (orders: Orders): Promise<void> => {
    if (orders.fenced) {
      log.info({}, 'fenced: another instance has this slot');
      endNow('fenced');
      return;
    }
    const wasIdle = queue.state.items.size === 0;
    const { granted, transferred, changed: differs } = await queue.follow(orders);
    if (transferred > 0) {
      log.info({ chunks: transferred }, 'chunks returned to the main server');
      heartbeat.poke();
    }
    if (granted > 0 && wasIdle) log.info({ products: queue.state.items.size }, 'crawling');
    if (orders.verdict !== null) crawl.incidents.decide(orders.verdict);
    if (orders.returnProducts && queue.state.incident?.verdict === 'banned') returnProducts();
    if (granted > 0 || differs) crawl.wake();
  };
  /** Repeated by each reply until nothing is pending here. */
  const returnProducts = (): void => {
    const progress = queue.release();
    if (progress === 'uploading') uploader.hurry();
    if (progress === 'released') heartbeat.poke();
  };
  const heartbeat = new HeartbeatLoop({
    client,
    describe,
    follow,
    clock,
    random,
    log,
    intervalMs: settings.heartbeatMs,
  });
  const crawl = new Crawl({
    queue,
    clock,
    pageTimes,
    ...sources,
    robots: site.robots,
    maxRequests: site.maxRequests,
    productUrl: site.productUrl,
    denied: deny && new DenyList(deny, new URL(productUrl(site.productUrl, 'x'))),
    reportsLinks: site.links === 'report',
    conditional: site.conditional,
    rules,
    render: new RenderChoice(site.render),
    canaries: site.canaries,
    coolDownMs: site.ban.coolDownMs,
    keepCookies: site.keepCookies ?? true,
    onIncident: () => {
      const { incident } = queue.state;
      if (incident) log.warn({ ...incident }, `the crawl has stopped: ${incident.verdict}`);
      else log.info({}, 'the incident is over: crawling again');
      heartbeat.poke();
    },
    onResult: () => uploader.noteResult(),
    onEmpty: () => {
      // What it has found may be all that there is to crawl next.
      if (site.links === 'report') uploader.hurry();
      heartbeat.poke();
    },
    idleMs: settings.heartbeatMs,
  });

  const balancerApp = createBalancerApp({
    owner,
    instanceId,
    runPublicKey,
    isReady: () => status.ready,
    isBanned: () => queue.state.incident !== null,
    takeOffer: async (offer) => {
      const answer = await queue.offer(offer);
      if (answer.taken) heartbeat.poke();
      return answer;
    },
  });
  const drain = (): void => {
    queue.note({ t: 'drained' });
    crawl.wake();
    heartbeat.poke();
  };
  const localApp = createLocalApp({ owner, instanceId, queue, describe, drain });
  const servers = await Promise.all([
    listen(balancerApp, address, settings.apiPort),
    listen(localApp, localAddressOf(address), settings.localPort),
  ]);
  log.info({ address, apiPort: settings.apiPort, ...owner }, 'listening');

  const crawlAndClose = async (): Promise<void> => {
    const uploading = uploader.run(ending.signal);
    const crawlEnd = await crawl.run(ending.signal);
    if (!ending.signal.aborted) {
      log.info({ end: crawlEnd, ...queue.progress(pageTimes.median()) }, 'crawl ended');
      await untilWritten(() => queue.stopCrawling(), clock, ending.signal);
    }
    status.crawling = false;
    uploader.flush();
    heartbeat.poke();
    await uploading;
    const progress = (): Heartbeat['progress'] => queue.progress(pageTimes.median(), uploader.slowestMs);
    const { privateKey } = folder;
    if (ending.signal.aborted) return;
    await closeEpoch(
      { queue, uploader, session, client, owner, instanceId, privateKey, progress, clock, random, log },
      ending.signal,
    );
    if (queue.state.closed) log.info({ rssMb: Math.round(process.memoryUsage.rss() / 1_048_576) }, 'done');
    heartbeat.poke();
  };

  try {
    const powerOff = powerOffAt(Date.parse(settings.powerOffAt), clock, ending.signal, () => endNow('power-off-time'));
    if (!status.ready) {
      const hello = { instanceId, address, publicKey: folder.publicKeyText, bundleSha256: settings.bundle.sha256 };
      const answer = await sayHello(client, hello, { clock, random, log }, ending.signal);
      if (answer === 'refused') endNow('refused');
      if (answer === 'accepted') {
        folder.markHelloAccepted();
        status.ready = true;
        log.info({ instanceId }, 'hello accepted');
      }
    }
    const work = Promise.all([heartbeat.run(ending.signal), crawlAndClose(), powerOff]);
    // Without its browser the crawl could only fail products; a restarted process may start one.
    await Promise.race([work, sources.broken]);
    return end;
  } finally {
    ending.abort();
    stop.removeEventListener('abort', onStop);
    await Promise.all([...servers.map(closeServer), client.close(), sources.http.close(), sources.browser?.close()]);
    await journal.close();
  }
}

function phaseOf({ state }: Queue, isCrawling: boolean): Heartbeat['phase'] {
  if (state.closed) return 'done';
  if (!isCrawling) return 'uploading';
  if (state.incident) return 'banned';
  return state.items.size > 0 ? 'crawling' : 'ready';
}

/** Sleeps at most an hour at a time: timers cannot exceed 24 days, and the system clock may change. */
async function powerOffAt(atMs: number, clock: Clock, stop: AbortSignal, powerOff: () => void): Promise<void> {
  while (!stop.aborted && clock.now() < atMs) await clock.sleep(Math.min(3_600_000, atMs - clock.now()), stop);
  if (!stop.aborted) powerOff();
}

function openQueue(
  { settings, clock, log }: { settings: InstanceSettings; clock: Clock; log: Log },
  folder: Pick<StateFolder, 'journalPath' | 'reservePath'>,
): { queue: Queue; journal: JournalFile } {
  const { site, deadline } = settings;
  const state = new QueueState((id) => domainOf(site.productUrl, id));
  const { file, replay } = JournalFile.open(folder.journalPath, (record) => state.apply(record));
  const reserve = new ReserveFile(folder.reservePath);
  const { intervalMs, productUrl: templates } = site;
  const defaults = { intervalMs, deadlineMs: Date.parse(deadline), productUrl: templates, reserve };
  const queue = new Queue(state, file, clock, defaults);
  if (replay.lostBytes > 0) log.warn({ ...replay }, 'the journal was truncated after its last valid record');
  if (replay.damaged) queue.recordDamage();
  const died = queue.recoverDeath((item) => {
    const url = productUrl(site.productUrl, item.id);
    const detail = `the crawler died ${item.deaths} times while crawling this product`;
    return toFailure({ item, url, nowMs: clock.now() }, 'poison', detail);
  });
  if (died) log.warn({ id: died.id, deaths: died.deaths }, 'the previous process died while crawling this product');
  if (replay.records > 0) log.info({ records: replay.records, ...queue.progress(null) }, 'resuming from the journal');
  return { queue, journal: file };
}
