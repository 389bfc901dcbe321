/**
 * One instance from hello to power-off: puts the parts together and runs them side by side.
 *
 *   listeners   from the start; not ready before the hello is accepted
 *   heartbeats  from the hello to the end
 *   crawl       until everything granted has its outcome, or an order or the deadline ends it
 *   upload      beside the crawl; then the manifest and the completion call-back
 *   idle        with heartbeats, until it is terminated, fenced, or its own time to power off has come
 */
import { isIPv4 } from 'node:net';
import type { Clock } from '../shared/ports/clock.ts';
import type { ObjectStore } from '../shared/ports/object-store.ts';
import type { Random } from '../shared/ports/random.ts';
import type { Heartbeat, Orders } from '../shared/wire/callbacks.ts';
import type { InstanceSettings } from '../shared/wire/settings.ts';
import { importPublicKey } from '../shared/wire/signature.ts';
import { closeEpoch } from './control/closing.ts';
import { HeartbeatLoop } from './control/heartbeat.ts';
import { sayHello } from './control/hello.ts';
import type { Log } from './control/log.ts';
import { MainServerClient } from './control/main-server-client.ts';
import type { InstanceMetadata } from './control/metadata.ts';
import { SignalFlag } from './control/signal-flag.ts';
import { StateFolder } from './control/state-folder.ts';
import { compileMapping } from './extract/compile-mapping.ts';
import { PageExtractor } from './extract/page-extractor.ts';
import { createAddressGuard, portOf } from './fetch/address-guard.ts';
import { PageFetcher } from './fetch/page-fetcher.ts';
import { createTargetDispatcher } from './fetch/target-dispatcher.ts';
import { Pacer } from './politeness/pacer.ts';
import { PageTimes } from './politeness/page-times.ts';
import { CrawlLoop } from './queue/crawl-loop.ts';
import { JournalFile } from './queue/journal-file.ts';
import { QueueState } from './queue/queue-state.ts';
import { Queue } from './queue/queue.ts';
import { createBalancerApp } from './server/balancer-app.ts';
import { listen, stopListening } from './server/listen.ts';
import { createLocalApp } from './server/local-app.ts';
import { Uploader } from './upload/uploader.ts';

export interface InstanceParts {
  settings: InstanceSettings;
  metadata: InstanceMetadata;
  /** Base URL of the metadata service: the crawl never connects to it. */
  metadataEndpoint: string;
  /** Folder that survives a restart of the process. */
  stateDirectory: string;
  openStore: () => Promise<ObjectStore>;
  clock: Clock;
  random: Random;
  log: Log;
}

/** Why the instance ended; in each case the machine is to power off. */
export type InstanceEnd = 'refused' | 'fenced' | 'power-off-time' | 'stopped';

/** Runs until the machine is no longer needed, or `stop` aborts. Rejects for what a restart may mend. */
export async function runInstance(parts: InstanceParts, stop: AbortSignal): Promise<InstanceEnd> {
  const { settings, metadata, clock, random, log } = parts;
  const owner = { run: settings.run, slot: settings.slot, epoch: settings.epoch };
  const { instanceId, address } = metadata;
  const mapping = compileMapping(settings.mapping);
  const runPublicKey = importPublicKey(settings.runPublicKey);
  const folder = new StateFolder(parts.stateDirectory, owner, clock.now());
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
    // A lost reply must not cost the twelve heartbeats after which the main server gives an instance up.
    timeoutMs: Math.min(10_000, Math.max(1_500, settings.heartbeatMs * 3)),
  });
  const target = createTargetDispatcher({
    localAddress: address,
    guard: createGuard(parts),
    connectTimeoutMs: settings.site.timeoutMs,
  });
  const fetcher = new PageFetcher(target, settings.site, clock, (kind) => new PageExtractor(mapping, kind));
  const pacer = new Pacer(clock, queue.intervalMs, queue.state.lastStartMs);
  const pageTimes = new PageTimes();
  const changed = new SignalFlag();
  const status = { ready: folder.helloAccepted, crawling: true };

  const uploader = new Uploader({
    queue,
    owner,
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
    phase: queue.state.closed
      ? 'done'
      : !status.crawling
        ? 'uploading'
        : queue.state.items.size > 0
          ? 'crawling'
          : 'ready',
    clock: new Date(clock.now()).toISOString(),
    offered: queue.state.offeredChunks().slice(0, 10_000),
    progress: queue.progress(pageTimes.median()),
    parts: queue.unackedParts(500),
    problem: (queue.diskProblem ?? uploader.problem)?.slice(0, 500) ?? null,
  });
  const follow = async (orders: Orders): Promise<void> => {
    if (orders.fenced) {
      log.info({}, 'fenced: another instance has this slot');
      endNow('fenced');
      return;
    }
    const wasIdle = queue.state.items.size === 0;
    const { granted, changed: differs } = await queue.follow(orders);
    pacer.setInterval(queue.intervalMs);
    if (granted > 0 && wasIdle) log.info({ products: queue.state.items.size }, 'crawling');
    if (granted > 0 || differs) changed.raise();
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
  const crawl = new CrawlLoop({
    queue,
    pacer,
    clock,
    pageTimes,
    productUrl: settings.site.productUrl,
    fetchPage: (url, hooks, signal) => fetcher.fetch(url, hooks, signal),
    changed,
    onResult: () => uploader.noteResult(),
    onEmpty: () => heartbeat.poke(),
    idleMs: settings.heartbeatMs,
  });

  const balancerApp = createBalancerApp({
    owner,
    instanceId,
    runPublicKey,
    isReady: () => status.ready,
    takeOffer: async (offer) => {
      const answer = await queue.offer(offer);
      if (answer.taken) heartbeat.poke();
      return answer;
    },
  });
  const drain = (): void => {
    queue.drain();
    changed.raise();
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
      await stopCrawling(queue, clock, ending.signal);
    }
    status.crawling = false;
    uploader.flush();
    heartbeat.poke();
    await uploading;
    const progress = (): Heartbeat['progress'] => queue.progress(pageTimes.median());
    const { privateKey } = folder;
    if (ending.signal.aborted) return;
    await closeEpoch(
      { queue, uploader, client, owner, instanceId, privateKey, progress, clock, random, log },
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
    await Promise.all([heartbeat.run(ending.signal), crawlAndClose(), powerOff]);
    return end;
  } finally {
    ending.abort();
    stop.removeEventListener('abort', onStop);
    await Promise.all([...servers.map(stopListening), client.close(), target.destroy()]);
    await journal.close();
  }
}

function openQueue(
  { settings, clock, log }: InstanceParts,
  folder: StateFolder,
): { queue: Queue; journal: JournalFile } {
  const state = new QueueState();
  const { file, replay } = JournalFile.open(folder.journalPath, (record) => state.apply(record));
  const deadlineMs = Date.parse(settings.deadline);
  const queue = new Queue(state, file, clock, { intervalMs: settings.site.intervalMs, deadlineMs });
  if (replay.lostBytes > 0) log.warn({ ...replay }, 'the journal was cut at its last good record');
  if (replay.damaged) {
    file.append([{ t: 'damaged' }]);
    state.apply({ t: 'damaged' });
  }
  if (replay.records > 0) log.info({ records: replay.records, ...queue.progress(null) }, 'going on where it was');
  return { queue, journal: file };
}

function createGuard({ settings, metadata, metadataEndpoint }: InstanceParts): ReturnType<typeof createAddressGuard> {
  const { apiPort, localPort, site } = settings;
  const imds = new URL(metadataEndpoint);
  return createAddressGuard({
    productUrl: site.productUrl,
    allowPrivate: site.allowPrivate,
    forbidden: [
      { address: metadata.address, port: apiPort },
      { address: localAddressOf(metadata.address), port: localPort },
      { address: imds.hostname.replace(/^\[|\]$/g, ''), port: portOf(imds.protocol, imds.port) },
    ],
  });
}

/** Where the box-only listener is bound: loopback, and the instance's own part of it where instances share a machine. */
function localAddressOf(address: string): string {
  return isIPv4(address) && address.startsWith('127.') ? address : '127.0.0.1';
}

async function stopCrawling(queue: Queue, clock: Clock, stop: AbortSignal): Promise<void> {
  while (!stop.aborted) {
    try {
      queue.stopCrawling();
      return;
    } catch {
      // A full disk, which the heartbeats report: the results of first tries are not lost for it.
      await clock.sleep(1_000, stop);
    }
  }
}

/** In pieces of an hour: timers cannot be longer than 24 days, and the clock may be set meanwhile. */
async function powerOffAt(atMs: number, clock: Clock, stop: AbortSignal, powerOff: () => void): Promise<void> {
  while (!stop.aborted && clock.now() < atMs) await clock.sleep(Math.min(3_600_000, atMs - clock.now()), stop);
  if (!stop.aborted) powerOff();
}
