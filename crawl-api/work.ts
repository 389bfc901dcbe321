/**
 * The work of one instance: wires the queue, the crawl, the uploads and the heartbeats, and runs them side by side to
 * the end of the epoch. It opens no file and no socket, so that a test can run all of it in memory.
 */
import type { KeyObject } from 'node:crypto';
import type { FollowRules } from '../shared/domain/follow-rules.ts';
import type { PageRequests } from '../shared/adapters/requests/page-requests.ts';
import type { Offer } from '../shared/wire/instance-api.ts';
import { type Heartbeat, MAX_HOSTS, type Orders } from '../shared/wire/callbacks.ts';
import type { InstanceSettings } from '../shared/wire/settings.ts';
import { closeEpoch } from './callbacks/closing.ts';
import { type AnsweredHeartbeat, HeartbeatLoop } from './callbacks/heartbeat.ts';
import type { MainServerClient } from './callbacks/main-server-client.ts';
import type { RowPages, SectionOf } from './extract/row-pages.ts';
import type { Secrets } from '../shared/wire/secrets.ts';
import type { UserHeaders } from './fetch/user-headers.ts';
import type { Retry } from './process/retry.ts';
import type { Sources } from './open-sources.ts';
import { PageTimes } from './politeness/pacer.ts';
import { RenderChoice } from './politeness/render-choice.ts';
import type { SiteRules } from './politeness/site-rules.ts';
import { HostsCrawl } from './hosts/hosts-crawl.ts';
import { type Crawl, SiteCrawl } from './queue/crawl.ts';
import { untilWritten } from './queue/journal-writer.ts';
import type { OfferAnswer, Queue } from './queue/queue.ts';
import { Uploader, type UploaderParts } from './upload/uploader.ts';

export interface WorkParts extends Retry, Pick<UploaderParts, 'session' | 'openStore'> {
  settings: InstanceSettings;
  instanceId: string;
  /** Signs the parts and the manifest. */
  privateKey: KeyObject;
  queue: Queue;
  client: Pick<MainServerClient, 'sendSigned'>;
  sources: Pick<Sources, 'http' | 'browser' | 'hosts'>;
  rules: SiteRules;
  follow: FollowRules;
  requests: PageRequests;
  rowPages: RowPages | null;
  sectionOf: SectionOf;
  userHeaders: UserHeaders;
  /** Decrypts what a reply has for this process; null for what was encrypted to another one. */
  decryptSecrets: (encrypted: string) => Secrets | null;
  /** Another instance has the slot: nothing more may be written. */
  onFenced: () => void;
}

export interface Work {
  /** Accepts or refuses an offered chunk. */
  takeOffer: (offer: Offer) => Promise<OfferAnswer>;
  /** A program on this machine asks to stop; no order reverses it. */
  drain: () => void;
  /** Sends a heartbeat as soon as possible. */
  poke: () => void;
  /** What the next heartbeat reports. */
  describe: () => Heartbeat;
  /** Works from the hello to the signal: crawls, uploads, closes the epoch, and sends heartbeats all the time. */
  run: (stop: AbortSignal) => Promise<void>;
}

export function createWork(given: WorkParts): Work {
  const { sources, rules, follow: followRules, requests, rowPages, sectionOf, userHeaders, onFenced, ...parts } = given;
  const { settings, instanceId, queue, session, client, clock, random, log } = parts;
  const { site } = settings;
  const owner = { run: settings.run, slot: settings.slot, epoch: settings.epoch };
  const pageTimes = new PageTimes();
  let isCrawling = true;

  const uploader = new Uploader({
    ...parts,
    owner,
    partMs: settings.partMs,
    onChange: () => {
      if (uploader.problem !== null) log.warn({ problem: uploader.problem }, 'upload failed');
      heartbeat.poke();
    },
  });
  const progress = (): Heartbeat['progress'] => queue.progress(pageTimes.median(), uploader.slowestMs);
  /** A product that goes on at another host has no outcome until the main server knows of it. */
  const reported = (): Heartbeat['progress'] => {
    const known = progress();
    return { ...known, pending: known.pending + queue.state.movedCount, ...uploader.storeRefused };
  };
  const describe = (): Heartbeat => ({
    phase: phaseOf(queue, isCrawling),
    clock: new Date(clock.now()).toISOString(),
    offered: queue.state.offeredChunks().slice(0, 10_000),
    transferred: queue.transferredChunks().slice(0, 10_000),
    progress: reported(),
    parts: queue.unackedParts(500),
    problem: (queue.diskProblem ?? uploader.problem ?? crawl.problem)?.slice(0, 500) ?? null,
    incident: crawl.incidents.describe(),
    robots: queue.state.robots?.version ?? null,
    ...(userHeaders.needsSecrets ? { secrets: userHeaders.version } : {}),
    ...newsOf(queue),
    understands: ['clock'],
  });
  const follow = async (orders: Orders, answered: AnsweredHeartbeat): Promise<void> => {
    if (orders.clock !== undefined) queue.noteClock(Date.parse(orders.clock), answered.roundTripMs);
    if (orders.fenced) {
      log.info({}, 'fenced: another instance has this slot');
      onFenced();
      return;
    }
    queue.noteAccepted(answered);
    takeSecrets(orders.secrets);
    const wasIdle = queue.state.items.assigned === 0;
    const { granted, transferred, changed: differs } = await queue.follow(orders);
    if (transferred > 0) {
      log.info({ chunks: transferred }, 'chunks returned to the main server');
      heartbeat.poke();
    }
    if ((await queue.takeSlices(orders.nextSlices ?? [])) > 0) heartbeat.poke();
    if (granted > 0 && wasIdle) log.info({ products: queue.state.items.assigned }, 'crawling');
    if (orders.verdict !== null) crawl.incidents.decide(orders.verdict);
    if (orders.returnProducts && queue.state.incident?.verdict === 'banned') returnProducts();
    if (granted > 0 || differs || settings.leaseMs !== undefined) crawl.wake();
  };
  const takeSecrets = (given: Orders['secrets']): void => {
    if (given === undefined) return;
    const secrets = parts.decryptSecrets(given.encrypted);
    // Encrypted to an earlier process of this instance: the next reply is encrypted to the key of the last hello.
    if (secrets === null) return log.warn({}, 'the secrets of the reply are encrypted to another key');
    userHeaders.take(given.version, secrets);
    log.info({}, 'secrets of the site received');
    crawl.wake();
  };
  /** Repeated by each reply until nothing is pending here. */
  const returnProducts = (): void => {
    const end = queue.release();
    if (end === 'uploading') uploader.hurry();
    if (end === 'released') heartbeat.poke();
  };
  const heartbeat = new HeartbeatLoop({ ...parts, describe, follow, intervalMs: settings.heartbeatMs });
  const crawlParts = {
    queue,
    clock,
    pageTimes,
    http: sources.http,
    browser: sources.browser,
    site,
    follow: followRules,
    requests,
    rowPages,
    sectionOf,
    userHeaders,
    reportsLinks: settings.links === 'report',
    rules,
    render: new RenderChoice(site.render),
    onResult: () => uploader.noteResult(),
    onEmpty: () => {
      // What it has found may be all that there is to crawl next.
      if (settings.links === 'report' || queue.state.movedCount > 0) uploader.hurry();
      heartbeat.poke();
    },
    idleMs: settings.heartbeatMs,
  };
  const onIncident = (): void => {
    const { incident } = queue.state;
    if (incident) log.warn({ ...incident }, `the crawl has stopped: ${incident.verdict}`);
    else log.info({}, 'the incident is over: crawling again');
    heartbeat.poke();
  };
  const runMs = Date.parse(settings.deadline) - Date.parse(settings.startedAt);
  const crawl: Crawl =
    sources.hosts === undefined
      ? new SiteCrawl({ ...crawlParts, onIncident })
      : new HostsCrawl({ ...crawlParts, ...sources.hosts, runMs, onNews: () => heartbeat.poke() });

  const crawlAndClose = async (stop: AbortSignal): Promise<void> => {
    const uploading = uploader.run(stop);
    const crawlEnd = await crawl.run(stop);
    if (!stop.aborted) {
      log.info({ end: crawlEnd, ...queue.progress(pageTimes.median()) }, 'crawl ended');
      await untilWritten(() => queue.stopCrawling(), clock, stop);
    }
    isCrawling = false;
    uploader.flush();
    heartbeat.poke();
    await uploading;
    const { privateKey } = parts;
    if (stop.aborted) return;
    await closeEpoch(
      { queue, uploader, session, client, owner, instanceId, privateKey, progress, clock, random, log },
      stop,
    );
    if (queue.state.closed) log.info({ rssMb: Math.round(process.memoryUsage.rss() / 1_048_576) }, 'done');
    heartbeat.poke();
  };

  return {
    describe,
    poke: () => heartbeat.poke(),
    takeOffer: async (offer) => {
      const answer = await queue.offer(offer);
      if (answer.taken) heartbeat.poke();
      return answer;
    },
    drain: () => {
      queue.note({ t: 'drained' });
      crawl.wake();
      heartbeat.poke();
    },
    run: async (stop) => {
      await Promise.all([heartbeat.run(stop), crawlAndClose(stop)]);
    },
  };
}

function phaseOf({ state }: Queue, isCrawling: boolean): Heartbeat['phase'] {
  if (state.closed) return 'done';
  if (!isCrawling) return 'uploading';
  if (state.incident) return 'banned';
  return state.items.assigned > 0 ? 'crawling' : 'ready';
}

/** Of many hosts: what the main server does not know of them yet, and what has been heard from it. */
function newsOf(queue: Queue): Pick<Heartbeat, 'hosts' | 'wishes'> {
  const hosts = queue.hostNews(MAX_HOSTS);
  const { wishesHeard: wishes } = queue;
  return { ...(hosts.length === 0 ? {} : { hosts }), ...(wishes === undefined ? {} : { wishes }) };
}
