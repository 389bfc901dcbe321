/**
 * Hello, heartbeat and completion: who may send them, and what they change. Every change is one conditional update, so
 * a repeated or late callback changes nothing (invariants I8, I9). HTTP is elsewhere: core/server/callback-app.ts.
 */
import type { KeyObject } from 'node:crypto';
import type { ZodType } from 'zod';
import { parseManifestKey } from '../../../shared/domain/keys.ts';
import { isAnyHost } from '../../../shared/domain/domains.ts';
import { WRONG_CLOCK_MS } from '../../../shared/domain/limits.ts';
import { MAX_CHUNK } from '../../../shared/domain/sharing.ts';
import { isServing } from '../../../shared/domain/states.ts';
import {
  COMPLETION_PATH,
  completionSchema,
  type Heartbeat,
  HEARTBEAT_PATH,
  heartbeatSchema,
  HELLO_PATH,
  type Hello,
  helloSchema,
  type Orders,
  type Incident,
} from '../../../shared/wire/callbacks.ts';
import type { EpochId } from '../../../shared/domain/epoch-id.ts';
import { parseForeign } from '../../../shared/wire/foreign-json.ts';
import { isSecretsKey, secretsKeyText } from '../../../shared/wire/secrets.ts';
import { type Envelope, importPrivateKey, importPublicKey, verifyMac } from '../../../shared/wire/signature.ts';
import { alarmOnce } from '../act/run-notes.ts';
import { isUnavailable, openIncident } from '../decide/ban-policy.ts';
import { robotsInForce } from '../decide/site-cap.ts';
import { CallerKeys } from './caller-keys.ts';
import { isOwnPart } from '../act/results/close-epoch.ts';
import { KeyDocuments } from '../act/results/key-documents.ts';
import type { Core } from '../model/core.ts';
import { chunkLimits, productLimit, slotLimit } from '../decide/shares/chunk-limits.ts';
import type { Dispatcher } from '../act/shares/dispatch.ts';
import { Transfers } from '../act/shares/transfers.ts';
import { HostWishes } from './host-wishes.ts';
import { type Effects, NO_EFFECTS, ordersFor } from './orders.ts';
import type { ChunkLimits } from '../model/forecast.ts';
import { Sources, foreignSource } from '../decide/nat-detection.ts';
import type { HostNote, IncidentReport, InstanceRecord } from '../model/stores.ts';
import type { World } from '../model/world.ts';
import { describeError } from '../../../shared/domain/errors.ts';
import { describeRule, type Evidence } from '../../../shared/domain/verdict.ts';

/** The message of a callback. */
export interface CallbackBody {
  /** Exactly what was signed. */
  signed: Uint8Array | string;
  /** The message in the schema's form; throws an Error of one sentence when it has another. */
  read<T>(schema: ZodType<T>): T;
}

/** The body of a callback that another machine sent. */
export const foreignBody = (bytes: Uint8Array): CallbackBody => ({
  signed: bytes,
  read: (schema) => parseForeign(schema, bytes, MAX_CALLBACK_VALUES),
});

/** A callback as it came in: its headers. */
export interface Callback {
  run: string;
  slot: number;
  epoch: number;
  /** The counter of the message; null for hello. */
  counter: number | null;
  signature: string;
  /** Reads the message; called only once the headers name a claim. May reject. */
  body: () => Promise<CallbackBody>;
  /** Source address as the listener saw it. */
  source?: string;
}

export interface CallbackReply {
  status: number;
  message: unknown;
  /** Signs what of the message is sent with the run's key; null for a refusal. */
  sign: ((body: string) => string) | null;
}

/** What the handlers share with the loop. */
export interface LoopLink {
  /** The last observed world; null before the first. */
  world(): World | null;
  wake(): void;
}

/** A heartbeat of an authenticated instance. */
interface Received {
  record: InstanceRecord;
  heartbeat: Heartbeat;
  /** The world as last observed, with the current row of the run. */
  world: World;
  /** It reports nothing but progress. */
  routine: boolean;
}

/** The same for every unauthenticated caller: it must not reveal whether a run, slot or epoch exists. */
const NOT_PROVED = 'unknown caller or invalid signature; an instance that was claimed a moment ago may try again';
/** Minimum time between two alarms about the same kind of refused callback. */
const QUIET_MS = 60_000;

export class Callbacks {
  readonly #core: Core;
  readonly #dispatcher: Dispatcher;
  readonly #loop: LoopLink;
  readonly #privateKey: KeyObject;
  readonly #transfers: Transfers;
  readonly #callers: CallerKeys;
  readonly #keyDocuments: KeyDocuments;
  readonly #wishes: HostWishes;
  readonly #sources = new Sources();
  /** A product that the fleet has stored; null until one is found. */
  #canaryPage: string | null = null;
  /** Until when a refusal of this kind raises no further alarm. */
  readonly #quietUntilMs = new Map<string, number>();

  constructor(core: Core, dispatcher: Dispatcher, loop: LoopLink, privateKey: string) {
    this.#core = core;
    this.#dispatcher = dispatcher;
    this.#loop = loop;
    this.#transfers = new Transfers(core);
    this.#callers = new CallerKeys(core, () => loop.world());
    this.#wishes = new HostWishes(core);
    this.#privateKey = importPrivateKey(privateKey);
    this.#keyDocuments = new KeyDocuments(core, this.#privateKey);
  }

  async hello(callback: Callback): Promise<CallbackReply> {
    const core = this.#core;
    const { slot, epoch } = callback;
    const known = await this.#callers.find(callback, false);
    if (known === null) return refuse(401, NOT_PROVED);
    const body = await callback.body();
    const envelope = this.#envelope('POST', HELLO_PATH, callback);
    if (!verifyMac(known.token, envelope, body.signed, callback.signature)) {
      await this.#alarmOfForgery(callback, 'a hello with a wrong token');
      return refuse(401, NOT_PROVED);
    }
    const hello = readBody(helloSchema, body);
    if (!hello.ok) return refuse(400, hello.error);
    const record = await core.fleet.get(callback);
    if (!record) return refuse(404, 'no such slot and epoch');
    // The instance may be up before the reply of RunInstances arrives.
    if (record.instanceId === null) return refuse(425, 'this instance is not known yet; send hello again');
    let publicKey: KeyObject;
    try {
      publicKey = importPublicKey(hello.value.publicKey);
    } catch {
      return refuse(400, 'publicKey is not an Ed25519 key');
    }
    if (!this.#isOwnSecretsKey(callback, hello.value, publicKey))
      return refuse(400, 'secretsKey is not an X25519 key that publicKey has signed');
    const address = await this.#addressOf(callback, record, hello.value.address);
    const skewMs = Date.parse(hello.value.clock) - core.clock.now();
    const result = await core.fleet.hello(callback, { ...hello.value, address });
    if (result === 'accepted' || result === 'repeated') {
      this.#callers.bound(callback, publicKey);
      this.#keyDocuments.ensure({ slot, epoch, publicKey: hello.value.publicKey });
    }
    switch (result) {
      case 'accepted':
        core.processState.firstReadyMs ??= core.clock.now();
        core.log.info({ slot, epoch, instance: hello.value.instanceId, address }, 'instance is ready');
        if (skewMs > WRONG_CLOCK_MS || -skewMs > WRONG_CLOCK_MS + this.#mostWaitMs())
          await core.alarm(`the clock of ${hello.value.instanceId} is ${Math.round(skewMs / 1_000)} s off`, record);
        await this.#lookAtSource(callback, record);
        this.#loop.wake();
        return this.#answer(HELLO_PATH, callback, { ok: true });
      case 'repeated':
        return this.#answer(HELLO_PATH, callback, { ok: true });
      case 'unknown':
        return refuse(425, 'this instance is not known yet; send hello again');
      case 'other-key':
      case 'other-instance':
        await this.#alarmOfForgery(callback, `a second hello with the same token (${result})`);
        return refuse(409, 'another instance or key has this slot and epoch');
      case 'too-late':
        return refuse(409, 'this epoch is given up');
    }
  }

  /** False for a key to encrypt secrets to that is none, or that another machine may have named. */
  #isOwnSecretsKey({ slot, epoch }: EpochId, hello: Hello, publicKey: KeyObject): boolean {
    const { secretsKey: key, secretsKeySignature: signature = '' } = hello;
    if (key === undefined) return true;
    const { runId: run, signatures } = this.#core;
    const text = secretsKeyText(key, { run, slot, epoch });
    return isSecretsKey(key) && signatures.verifyText(publicKey, text, Buffer.from(signature, 'base64'));
  }

  /** How long a callback may have waited in the socket: as long as this process stood still. */
  #mostWaitMs(): number {
    const { processState, clock } = this.#core;
    return Math.max(processState.longestStandstillMs, clock.now() - (this.#loop.world()?.nowMs ?? Infinity));
  }

  /** Another machine may have read the token. Behind a NAT all hellos come from one address: one alarm is enough. */
  async #lookAtSource({ source, slot, epoch }: Callback, { instanceId, address }: InstanceRecord): Promise<void> {
    const regions = this.#loop.world()?.regions ?? [];
    const machine = regions.flatMap((r) => r.cloud?.instances ?? []).find(({ id }) => id === instanceId);
    const shown = { public: machine?.publicAddress ?? address, private: machine?.privateAddress ?? null };
    const foreign = foreignSource(source, shown);
    if (foreign === null) return;
    const known = [shown.public, shown.private].filter((one) => one !== null).join(' and ');
    const detail = `the hello of ${instanceId} came from ${foreign}, but EC2 shows ${known} for it; expected behind a NAT or a proxy, otherwise another machine has its user data`;
    await alarmOnce(this.#core, `source ${foreign}`, detail, { slot, epoch });
  }

  /** The address to record; also corrects those of others once this hello shows which source to trust. */
  async #addressOf(callback: Callback, record: InstanceRecord, own: string): Promise<string> {
    // After the first hello the record holds that hello's address, not EC2's: nothing to learn.
    if (record.publicKey !== null) return record.address ?? own;
    const { address, corrected } = this.#sources.hello(callback, { source: callback.source, ec2: record.address, own });
    for (const at of corrected) await this.#core.fleet.patch(at, { address: at.address });
    return address;
  }

  async heartbeat(callback: Callback): Promise<CallbackReply> {
    const sender = await this.#authenticate(callback, HEARTBEAT_PATH, heartbeatSchema);
    if ('status' in sender) return sender;
    const { record: known, message: heartbeat } = sender;
    const routine = isRoutine(heartbeat, known);
    const observed = this.#loop.world();
    const world = observed === null || routine ? observed : await this.#withRun(observed);
    if (world === null) return refuse(503, 'the main server is starting');
    const received = { record: known, heartbeat, routine, world };
    // A fenced epoch's heartbeat is not recorded; the reply only reports that it is fenced.
    if (isFenced(received)) {
      const none = { ...NO_EFFECTS, robots: null, maxProducts: null, awaited: false, fenced: true };
      const orders = ordersFor(world, { ...none, record: known, heartbeat });
      return this.#answer(HEARTBEAT_PATH, callback, orders);
    }
    const core = this.#core;
    const { progress, problem } = heartbeat;
    await core.processState.restClock.keep(core, world.run);
    if (!(await core.fleet.heartbeat(known, { counter: sender.counter, progress, problem })))
      return refuse(409, 'this counter has been used, or the epoch is given up');
    // Before the reply: after it the host may be asked again, and its next owner must know what this one knows.
    const heard = hostNotesOf(heartbeat, core.clock.now());
    if (heard.length > 0) await core.work.noteHosts(known, heard);
    // A routine one waits for nothing more: a large fleet sends hundreds of heartbeats a second.
    const incident = routine ? known.incident : await this.#noteNews(known, heartbeat);
    const record = { ...known, progress, lastHeartbeatAtMs: core.clock.now(), incident };
    const recorded = { ...received, record };
    const serving = isServing(record.phase);
    const { partsAck, granted } = serving && !routine ? await this.#takeOver(recorded) : NO_EFFECTS;
    const wanted = serving ? this.#transfers.wanted(world, record) : [];
    const transfer = wanted instanceof Promise ? await wanted : wanted;
    const isManyHosts = isAnyHost(world.run.settings.site.productUrl);
    const needsPage = serving && !isManyHosts && needsCanaryPage(heartbeat, world);
    const canaryPage = needsPage ? await this.#anyPage() : null;
    // The owner of a host alone gets the rest of it, which no balancer could tell from others.
    const nextSlices = serving && isManyHosts ? await core.work.nextSlices(record, MAX_CHUNK) : [];
    const wished = serving && isManyHosts ? await this.#wishes.newFor(heartbeat, world) : null;
    const hosts = isManyHosts && granted.length > 0 ? await core.work.hostNotes(granted) : [];
    const work = serving && !routine ? await core.work.counts() : world.work;
    const effects = { partsAck, granted, transfer, canaryPage, nextSlices, hosts, wished };
    const orders = this.#ordersAfter(recorded, effects, work);
    if (serving && !record.sealed && orders.sealed) await core.fleet.patch(record, { sealed: true });
    this.#dispatcher.release(orders.drops);
    if (!routine) this.#loop.wake();
    return this.#answer(HEARTBEAT_PATH, callback, orders);
  }

  /** What the loop last observed, with the current row of the run: a heartbeat with news gets it. */
  async #withRun(observed: World): Promise<World | null> {
    const run = await this.#core.run.get();
    // With the tail that only the loop measures.
    const { measuredTailMs } = observed.run;
    return run && { ...observed, run: { ...run, measuredTailMs } };
  }

  /** Raises an alarm about a new problem; returns the incident of the record after this heartbeat. */
  async #noteNews(record: InstanceRecord, { problem, incident }: Heartbeat): Promise<InstanceRecord['incident']> {
    if (problem !== null && problem !== record.problem)
      await this.#core.alarm(`slot ${record.slot}: ${problem}`, record);
    return recordIncident(this.#core, record, incident);
  }

  /** Takes over what a heartbeat reports, in an order that matters: parts, transferred chunks, then grants. */
  async #takeOver(received: Received): Promise<Pick<Effects, 'partsAck' | 'granted'>> {
    const { record, heartbeat, world } = received;
    const partsAck = await this.#registerParts(received);
    // Transferred chunks are no longer its own, and count for its share.
    await this.#transfers.take(record, heartbeat.transferred);
    // An address with an open incident does not crawl: chunks just offered to it go to other instances.
    const granted = isUnavailable(record) ? [] : await this.#grant(record, heartbeat.offered, world);
    return { partsAck, granted };
  }

  /** Registers its parts up to the first that is not its own; returns the last sequence number to acknowledge. */
  async #registerParts({ record, heartbeat }: Received): Promise<number> {
    const { runId, results } = this.#core;
    const foreignAt = heartbeat.parts.findIndex((p) => !isOwnPart(runId, record, p));
    const own = foreignAt === -1 ? heartbeat.parts : heartbeat.parts.slice(0, foreignAt);
    await results.register(record, own);
    // Sequence numbers may have gaps: after damage to its journal an instance continues with much higher ones.
    return Math.max(-1, ...own.map((p) => p.seq));
  }

  /** The orders for the state after these effects. */
  #ordersAfter({ record, heartbeat, routine, world }: Received, effects: Effects, work: World['work']): Orders {
    const core = this.#core;
    // A routine heartbeat changes nothing that depends on the rest of the fleet.
    const fleet = routine ? world.fleet : world.fleet.with(record);
    const current = { ...world, fleet, work, nowMs: core.clock.now() };
    const limits = this.#limits(current);
    return ordersFor(current, {
      ...effects,
      record,
      heartbeat,
      fenced: false,
      robots: robotsInForce(current, core.robots.policy),
      maxProducts: productLimit(limits, record.slot, world.run.plan.chunkSize),
      awaited: world.forecast?.balance.get.has(record.slot) === true,
      ...core.secrets?.encryptedFor(record, heartbeat),
    });
  }

  /** A page that some instance has stored, the same one each time: the canary of those that have stored nothing. */
  async #anyPage(): Promise<string | null> {
    this.#canaryPage ??= await this.#core.work.anyStored();
    return this.#canaryPage;
  }

  async completion(callback: Callback): Promise<CallbackReply> {
    const core = this.#core;
    const sender = await this.#authenticate(callback, COMPLETION_PATH, completionSchema);
    if ('status' in sender) return sender;
    const { record, message } = sender;
    const named = parseManifestKey(core.runId, message.manifestKey);
    if (named?.slot !== callback.slot || named.epoch !== callback.epoch)
      return refuse(400, 'manifestKey is not the key of this epoch');
    if (isServing(record.phase) && record.manifestKey === null) {
      // If it has been given up since, only `close` may close the epoch.
      await core.fleet.noteManifest(callback, message);
      this.#loop.wake();
    }
    return this.#answer(COMPLETION_PATH, callback, { ok: true });
  }

  async #grant(at: EpochId, offered: readonly string[], world: World): Promise<string[]> {
    const core = this.#core;
    if (offered.length === 0) return [];
    await core.processState.restClock.keep(core, world.run);
    const granted = await core.work.grant(at, offered, slotLimit(this.#limits(world), at.slot));
    if (granted.length > 0) core.processState.lastGrantMs = core.clock.now();
    return granted;
  }

  /** The limits as observed, unless chunks were returned since: by the old limits their giver could get them again. */
  #limits(world: World): ChunkLimits {
    const { lastTransferMs } = this.#core.processState;
    if (lastTransferMs === world.lastTransferAtMs) return world.chunkLimits;
    return chunkLimits({ ...world, lastTransferAtMs: lastTransferMs });
  }

  /** The sender's record and its message, or the refusal to send back. */
  async #authenticate<T>(
    callback: Callback,
    path: string,
    schema: ZodType<T>,
  ): Promise<{ record: InstanceRecord; message: T; counter: number } | CallbackReply> {
    const known = this.#callers.known(callback, true) ?? (await this.#callers.find(callback, true));
    const { counter } = callback;
    if (known === null || known.publicKey === null || counter === null) return refuse(401, NOT_PROVED);
    const body = await callback.body();
    const envelope = this.#envelope('POST', path, callback);
    if (!this.#core.signatures.verify(known.publicKey, envelope, body.signed, callback.signature)) {
      await this.#alarmOfForgery(callback, 'a callback with a wrong signature');
      return refuse(401, NOT_PROVED);
    }
    // Only for an authenticated caller: this queries the database.
    const record = await this.#core.fleet.get(callback);
    if (!record) return refuse(404, 'no such slot and epoch');
    if (counter < record.counter) return refuse(409, 'this counter has been used');
    this.#keyDocuments.ensure(record);
    const parsed = readBody(schema, body);
    return parsed.ok ? { record, message: parsed.value, counter } : refuse(400, parsed.error);
  }

  /** Unauthenticated callers must not be able to fill the log and the database. */
  async #alarmOfForgery({ slot, epoch }: Callback, what: string): Promise<void> {
    const detail = `${what} was refused for slot ${slot} epoch ${epoch}`;
    const now = this.#core.clock.now();
    if ((this.#quietUntilMs.get(detail) ?? 0) > now) return;
    this.#quietUntilMs.set(detail, now + QUIET_MS);
    await this.#core.alarm(detail, { slot, epoch });
  }

  #envelope(method: string, path: string, callback: Callback): Envelope {
    const { run, slot, epoch, counter } = callback;
    return { method, path, run, slot, epoch, counter };
  }

  #answer(path: string, callback: Callback, message: unknown): CallbackReply {
    const sign = (body: string): string =>
      this.#core.signatures.sign(this.#privateKey, this.#envelope('REPLY', path, callback), body);
    return { status: 200, message, sign };
  }
}

/** What the heartbeat says of hosts, by the main server's clock. */
const hostNotesOf = ({ hosts = [] }: Heartbeat, nowMs: number): HostNote[] =>
  hosts.map(({ host, delayMs, waitMs, refusals }) => ({
    host,
    ...(refusals === undefined ? {} : { refusals }),
    ...(delayMs === undefined ? {} : { delayMs: Math.ceil(delayMs) }),
    ...(waitMs === undefined ? {} : { notBeforeMs: nowMs + Math.ceil(waitMs) }),
  }));

/** It has stored nothing and another one has: a page of that one lest it takes an odd page for a ban. */
const needsCanaryPage = ({ progress }: Heartbeat, { totals }: World): boolean =>
  progress.stored === 0 && totals.stored > 0;

/** A newer epoch has its slot, or it is given up. */
function isFenced({ record, world }: Received): boolean {
  if (!isServing(record.phase) && record.phase !== 'done') return true;
  return (world.fleet.latest.get(record.slot)?.epoch ?? 0) > record.epoch;
}

function refuse(status: number, error: string): CallbackReply {
  return { status, message: { ok: false, error }, sign: null };
}

/**
 * True when a heartbeat only reports that the instance goes on crawling, as most do. Then the last observed world is
 * good enough for the reply, and the loop need not wake up; a large fleet sends hundreds of heartbeats a second.
 */
function isRoutine(heartbeat: Heartbeat, record: Pick<InstanceRecord, 'phase' | 'incident'>): boolean {
  const { progress, offered, transferred, parts, incident, problem } = heartbeat;
  const news = offered.length + transferred.length + parts.length > 0 || incident !== null || problem !== null;
  return record.phase === 'crawling' && progress.pending > 0 && !news && openIncident(record) === null;
}

/** Maximum values of a body: 20,000 chunks and 500 parts make some 23,000. */
const MAX_CALLBACK_VALUES = 50_000;

/** The message in its schema's form, or what is wrong with it. */
function readBody<T>(schema: ZodType<T>, body: CallbackBody): { ok: true; value: T } | { ok: false; error: string } {
  try {
    return { ok: true, value: body.read(schema) };
  } catch (error) {
    return { ok: false, error: describeError(error) };
  }
}

const MAX_URL = 2_000;
const MAX_HEADERS = 40;
const MAX_HEADER = 500;

/** The incident of the record after this heartbeat. Writes only when it began, became a ban, or ended. */
async function recordIncident(
  core: Core,
  record: InstanceRecord,
  incident: Incident | null,
): Promise<InstanceRecord['incident']> {
  if ((openIncident(record)?.verdict ?? null) === (incident?.verdict ?? null)) return record.incident;
  await core.fleet.recordIncident(record, incident === null ? null : toReport(incident, core.clock.now()));
  if (incident?.verdict === 'suspect')
    await core.alarm(
      `slot ${record.slot}: a canary page is unreadable from ${record.address ?? 'its address'} (${describeRule(incident.evidence)}); ` +
        'the other addresses will show whether it is banned or the site has changed',
      record,
    );
  return (await core.fleet.get(record))?.incident ?? null;
}

function toReport(incident: Incident, nowMs: number): IncidentReport {
  return {
    verdict: incident.verdict,
    atMs: nowMs - Math.round(incident.sinceMs),
    untilMs: incident.leftMs === null ? null : nowMs + Math.round(incident.leftMs),
    evidence: trim(incident.evidence),
  };
}

/** An instance may send as much as a callback holds; evidence needs less. */
function trim(evidence: Evidence): Evidence {
  const headers = Object.entries(evidence.headers)
    .slice(0, MAX_HEADERS)
    .map(([name, value]) => [name.slice(0, 100), value.slice(0, MAX_HEADER)] as const);
  return { ...evidence, url: evidence.url.slice(0, MAX_URL), headers: Object.fromEntries(headers) };
}
