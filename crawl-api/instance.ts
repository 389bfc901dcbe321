/**
 * One instance from hello to power-off: opens its files, listeners and clients, and runs its work (work.ts) beside
 * them.
 *
 *   listeners   from the start; not ready before the hello is accepted
 *   heartbeats  from the hello to the end
 *   crawl       until every granted product has its outcome, or an order or the deadline ends it
 *   upload      alongside the crawl; then the manifest and the completion callback
 *   idle        sends heartbeats until the instance is terminated, fenced, or reaches its own power-off time
 */
import { type KeyObject, sign } from 'node:crypto';
import { closeServer } from '../shared/adapters/http/listening.ts';
import type { Clock } from '../shared/ports/clock.ts';
import type { ObjectStore } from '../shared/ports/object-store.ts';
import type { Random } from '../shared/ports/random.ts';
import type { InstanceSettings } from '../shared/wire/settings.ts';
import type { Hello } from '../shared/wire/callbacks.ts';
import { createSecretsKey, decryptSecrets, type Recipient, secretsKeyText } from '../shared/wire/secrets.ts';
import { importPublicKey } from '../shared/wire/signature.ts';
import { sayHello } from './callbacks/hello.ts';
import { compileRowPages, compileSections } from './extract/row-pages.ts';
import type { Log } from './process/retry.ts';
import { MainServerClient } from './callbacks/main-server-client.ts';
import type { InstanceMetadata } from './callbacks/metadata.ts';
import type { StateFolder } from './process/state-folder.ts';
import { UserHeaders } from './fetch/user-headers.ts';
import { localAddressOf, openSources, provesPages } from './open-sources.ts';
import { compileFollowRules } from './politeness/follow-rules.ts';
import { compileRequests } from './fetch/compile-requests.ts';
import { compileSiteRules } from './politeness/site-rules.ts';
import { JournalFile } from './queue/journal-file.ts';
import { openQueue } from './queue/open-queue.ts';
import { ReserveFile } from './queue/reserve-file.ts';
import { createBalancerApp } from './server/balancer-app.ts';
import { listen } from './server/listen.ts';
import { createLocalApp } from './server/local-app.ts';
import { roleSessionOf } from './upload/role-session.ts';
import { createWork } from './work.ts';

export interface InstanceParts {
  settings: InstanceSettings;
  metadata: InstanceMetadata;
  /** Base URL of the metadata service: the crawl never connects to it. */
  metadataEndpoint: string;
  /** Survives a process restart. */
  folder: StateFolder;
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
  const { settings, metadata, folder, clock, random } = parts;
  const userHeaders = new UserHeaders(settings.site);
  const log = maskedLog(parts.log, userHeaders);
  const owner = { run: settings.run, slot: settings.slot, epoch: settings.epoch };
  const { instanceId, address } = metadata;
  const runPublicKey = importPublicKey(settings.runPublicKey);
  const { site } = settings;
  const follow = await compileFollowRules(settings);
  const requests = await compileRequests(settings);
  const rowPages = await compileRowPages(settings.mapping);
  const sectionOf = await compileSections(settings.mapping);
  const rules = await compileSiteRules(site.ban, provesPages(settings.mapping));
  const sources = await openSources({ ...parts, log, address, scratchDirectory: folder.scratchPath });
  const { queue, journal } = openQueue({ ...parts, userHeaders, log }, (apply) => {
    const opened = JournalFile.open(folder.journalPath, apply);
    return { ...opened, reserve: new ReserveFile(folder.reservePath) };
  });

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
  let isReady = folder.helloAccepted;
  const secretsKey = createSecretsKey();

  const wanted = settings.s3.roleSession === true;
  const session = roleSessionOf({ wanted, folder, readUserId: parts.readUserId, clock, random, log });
  const work = createWork({
    settings,
    instanceId,
    privateKey: folder.privateKey,
    queue,
    client,
    session,
    openStore: parts.openStore,
    sources,
    rules,
    follow,
    requests,
    rowPages,
    sectionOf,
    userHeaders,
    decryptSecrets: (encrypted) => decryptSecrets(encrypted, secretsKey, owner),
    onFenced: () => endNow('fenced'),
    clock,
    random,
    log,
  });

  const balancerApp = createBalancerApp({
    owner,
    instanceId,
    runPublicKey,
    isReady: () => isReady,
    isBanned: () => queue.state.incident !== null,
    takeOffer: work.takeOffer,
  });
  const localApp = createLocalApp({ owner, instanceId, queue, describe: work.describe, drain: work.drain });
  const servers = await Promise.all([
    listen(balancerApp, address, settings.apiPort),
    listen(localApp, localAddressOf(address), settings.localPort),
  ]);
  log.info({ address, apiPort: settings.apiPort, ...owner }, 'listening');

  try {
    const powerOff = powerOffAt(Date.parse(settings.powerOffAt), clock, ending.signal, () => endNow('power-off-time'));
    const { publicKeyText: publicKey } = folder;
    const named = userHeaders.needsSecrets ? signedKeyOf(secretsKey.key, owner, folder.privateKey) : {};
    const hello = { instanceId, address, publicKey, bundleSha256: settings.bundle.sha256, ...named };
    const greet = () => sayHello(client, hello, { clock, random, log }, ending.signal);
    if (!isReady) {
      const answer = await greet();
      if (answer === 'refused') endNow('refused');
      if (answer === 'accepted') {
        folder.markHelloAccepted();
        isReady = true;
        log.info({ instanceId }, 'hello accepted');
      }
      // A later process has another key. What the main server thinks of the instance, its heartbeats show.
    } else if (userHeaders.needsSecrets) void greet().then(work.poke);
    // Without its browser the crawl could only fail products; a restarted process may start one.
    await Promise.race([Promise.all([work.run(ending.signal), powerOff]), sources.broken]);
    return end;
  } finally {
    ending.abort();
    stop.removeEventListener('abort', onStop);
    await Promise.all([...servers.map(closeServer), client.close(), sources.http.close(), sources.browser?.close()]);
    await journal.close();
  }
}

/** The key that secrets are encrypted to, as the hello names it. */
function signedKeyOf(key: string, owner: Recipient, privateKey: KeyObject): Partial<Hello> {
  const signature = sign(null, secretsKeyText(key, owner), privateKey).toString('base64');
  return { secretsKey: key, secretsKeySignature: signature };
}

/** Writes no secret of the user, whatever an error quotes. */
function maskedLog(log: Log, userHeaders: Pick<UserHeaders, 'mask' | 'maskAll'>): Log {
  const as =
    (level: keyof Log): Log[keyof Log] =>
    (fields, message) =>
      log[level](userHeaders.maskAll(fields), userHeaders.mask(message));
  return { info: as('info'), warn: as('warn'), error: as('error') };
}

/** Sleeps at most an hour at a time: timers cannot exceed 24 days, and the system clock may change. */
async function powerOffAt(atMs: number, clock: Clock, stop: AbortSignal, powerOff: () => void): Promise<void> {
  while (!stop.aborted && clock.now() < atMs) await clock.sleep(Math.min(3_600_000, atMs - clock.now()), stop);
  if (!stop.aborted) powerOff();
}
