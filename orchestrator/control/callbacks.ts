/**
 * Hello, heartbeat and completion: who may say them, and what they change. Every change is one conditional update, so a
 * repeated or late call-back changes nothing (invariants I8, I9). HTTP is elsewhere: server/callback-app.ts.
 */
import type { KeyObject } from 'node:crypto';
import { describeError } from '../../shared/domain/errors.ts';
import { manifestKey } from '../../shared/domain/keys.ts';
import { isServing } from '../../shared/domain/states.ts';
import {
  COMPLETION_PATH,
  HEARTBEAT_PATH,
  HELLO_PATH,
  completionSchema,
  heartbeatSchema,
  helloSchema,
} from '../../shared/wire/callbacks.ts';
import type { Envelope } from '../../shared/wire/signature.ts';
import {
  importPrivateKey,
  importPublicKey,
  signMessage,
  verifyMac,
  verifyMessage,
} from '../../shared/wire/signature.ts';
import { isOwnPart } from './close-epoch.ts';
import type { Core } from './core.ts';
import { chunkLimit } from './decide.ts';
import type { Dispatcher } from './dispatch.ts';
import { isShardComplete, ordersFor } from './orders.ts';
import type { InstanceRecord } from './stores.ts';
import type { World } from './world.ts';

/** A call-back as it came in; the body is still the exact bytes, because they are what was signed. */
export interface Callback {
  run: string;
  slot: number;
  epoch: number;
  /** Null for hello. */
  counter: number | null;
  signature: string;
  body: Uint8Array;
}

export interface CallbackReply {
  status: number;
  body: string;
  /** Signature of the run's key over the body, or null for a refusal. */
  signature: string | null;
}

/** What the handlers share with the loop. */
export interface LoopLink {
  /** The last world seen; null before the first. */
  world(): World | null;
  wake(): void;
}

/** Between two alarms about the same kind of refused call-back. */
const QUIET_MS = 60_000;

export class Callbacks {
  readonly #core: Core;
  readonly #dispatcher: Dispatcher;
  readonly #loop: LoopLink;
  readonly #privateKey: KeyObject;
  /** Until when a refusal of this kind raises no further alarm. */
  readonly #quietUntilMs = new Map<string, number>();

  constructor(core: Core, dispatcher: Dispatcher, loop: LoopLink, privateKey: string) {
    this.#core = core;
    this.#dispatcher = dispatcher;
    this.#loop = loop;
    this.#privateKey = importPrivateKey(privateKey);
  }

  async hello(callback: Callback): Promise<CallbackReply> {
    const core = this.#core;
    const record = await this.#find(callback);
    if (!record) return refuse(404, 'no such run, slot and epoch');
    const envelope = this.#envelope('POST', HELLO_PATH, callback);
    if (!verifyMac(record.token, envelope, callback.body, callback.signature))
      return this.#reject(callback, 'a hello with a wrong token');
    const hello = parseBody(helloSchema, callback.body);
    if (!hello.ok) return refuse(400, hello.error);
    // RunInstances may still be on its way back to us while the instance is up already.
    if (record.instanceId === null) return refuse(425, 'this instance is not known yet; say hello again');
    try {
      importPublicKey(hello.value.publicKey);
    } catch {
      return refuse(400, 'publicKey is not an Ed25519 key');
    }
    const skewMs = Date.parse(hello.value.clock) - core.clock.now();
    const result = await core.fleet.hello(
      core.runId,
      callback.slot,
      callback.epoch,
      hello.value,
      core.fence,
      core.clock.now(),
    );
    switch (result) {
      case 'accepted':
        core.marks.firstReadyMs ??= core.clock.now();
        core.log.info(
          {
            slot: callback.slot,
            epoch: callback.epoch,
            instance: hello.value.instanceId,
            address: hello.value.address,
          },
          'instance is ready',
        );
        if (Math.abs(skewMs) > 60_000)
          await core.alarm(`the clock of ${hello.value.instanceId} is ${Math.round(skewMs / 1_000)} s off`, callback);
        this.#loop.wake();
        return this.#answer(HELLO_PATH, callback, { ok: true });
      case 'repeated':
        return this.#answer(HELLO_PATH, callback, { ok: true });
      case 'unknown':
        return refuse(425, 'this instance is not known yet; say hello again');
      case 'other-key':
      case 'other-instance':
        return this.#reject(callback, `a second hello with the same token (${result})`);
      case 'too-late':
        return refuse(409, 'this epoch is given up');
    }
  }

  async heartbeat(callback: Callback): Promise<CallbackReply> {
    const core = this.#core;
    const checked = await this.#checkSigned(callback, HEARTBEAT_PATH);
    if ('status' in checked) return checked;
    const parsed = parseBody(heartbeatSchema, callback.body);
    if (!parsed.ok) return refuse(400, parsed.error);
    const heartbeat = parsed.value;
    const { slot, epoch } = callback;
    const beat = { counter: callback.counter!, progress: heartbeat.progress, problem: heartbeat.problem };
    const fresh = await core.fleet.heartbeat(core.runId, slot, epoch, beat, core.fence, core.clock.now());
    if (!fresh) return refuse(409, 'this counter has been used');
    if (heartbeat.problem !== null && heartbeat.problem !== checked.problem)
      await core.alarm(`slot ${slot}: ${heartbeat.problem}`, callback);

    const run = await core.runs.get(core.runId);
    const world = this.#loop.world();
    if (!run || !world) return refuse(503, 'the main server is starting');
    const superseded = world.instances.some((i) => i.slot === slot && i.epoch > epoch);
    const serving = isServing(checked.phase) && !superseded;
    const own = heartbeat.parts.filter((p) => isOwnPart(core.runId, callback, p));
    const partsAck = serving ? await core.results.register(core.runId, slot, epoch, own, core.fence) : -1;
    const granted = serving ? await this.#grant(callback, heartbeat.offered, world) : [];
    const { waiting } = serving ? await core.work.counts(core.runId) : { waiting: 0 };
    const input = { nowMs: core.clock.now(), run, record: checked, heartbeat, granted, waiting, partsAck, superseded };
    if (serving && !checked.sealed && isShardComplete(input))
      await core.fleet.patch(core.runId, slot, epoch, { sealed: true }, core.fence);
    const orders = ordersFor(input);
    this.#dispatcher.release(orders.drops);
    this.#loop.wake();
    return this.#answer(HEARTBEAT_PATH, callback, orders);
  }

  async completion(callback: Callback): Promise<CallbackReply> {
    const core = this.#core;
    const checked = await this.#checkSigned(callback, COMPLETION_PATH);
    if ('status' in checked) return checked;
    const parsed = parseBody(completionSchema, callback.body);
    if (!parsed.ok) return refuse(400, parsed.error);
    const { slot, epoch } = callback;
    if (parsed.value.manifestKey !== manifestKey(core.runId, slot, epoch))
      return refuse(400, 'manifestKey is not the key of this epoch');
    if (isServing(checked.phase) && checked.manifestKey === null) {
      const { manifestKey: key, manifestSha256 } = parsed.value;
      await core.fleet.patch(core.runId, slot, epoch, { manifestKey: key, manifestSha256 }, core.fence);
      // Given up meanwhile: then only `close` may say that the epoch is closed, and it may have to say so again.
      const after = await core.fleet.get(core.runId, slot, epoch);
      if (after !== null && after.reason !== null)
        await core.fleet.patch(core.runId, slot, epoch, { manifestKey: null, manifestSha256: null }, core.fence);
      this.#loop.wake();
    }
    return this.#answer(COMPLETION_PATH, callback, { ok: true });
  }

  async #grant(callback: Callback, offered: readonly string[], world: World): Promise<string[]> {
    const core = this.#core;
    if (offered.length === 0) return [];
    const work = await core.work.counts(core.runId);
    const limit = chunkLimit({ ...world, work, nowMs: core.clock.now() });
    const granted = await core.work.grant(
      core.runId,
      callback.slot,
      callback.epoch,
      offered,
      limit,
      core.fence,
      core.clock.now(),
    );
    if (granted.length > 0) core.marks.lastGrantMs = core.clock.now();
    return granted;
  }

  async #find(callback: Callback): Promise<InstanceRecord | null> {
    return callback.run === this.#core.runId ? this.#core.fleet.get(callback.run, callback.slot, callback.epoch) : null;
  }

  async #checkSigned(callback: Callback, path: string): Promise<InstanceRecord | CallbackReply> {
    const record = await this.#find(callback);
    if (!record) return refuse(404, 'no such run, slot and epoch');
    if (record.publicKey === null || callback.counter === null) return refuse(401, 'say hello first');
    const envelope = this.#envelope('POST', path, callback);
    if (!verifyMessage(importPublicKey(record.publicKey), envelope, callback.body, callback.signature)) {
      return this.#reject(callback, 'a call-back with a wrong signature');
    }
    if (callback.counter < record.counter) return refuse(409, 'this counter has been used');
    return record;
  }

  /** Anybody who reaches the port can be refused as often as he likes; that must not fill the database. */
  async #reject(callback: Callback, what: string): Promise<CallbackReply> {
    const detail = `${what} was refused for slot ${callback.slot} epoch ${callback.epoch}`;
    const now = this.#core.clock.now();
    if ((this.#quietUntilMs.get(detail) ?? 0) <= now) {
      this.#quietUntilMs.set(detail, now + QUIET_MS);
      await this.#core.alarm(detail, callback);
    }
    return refuse(401, 'the signature is not valid');
  }

  #envelope(method: string, path: string, callback: Callback): Envelope {
    const { run, slot, epoch, counter } = callback;
    return { method, path, run, slot, epoch, ...(counter === null ? {} : { counter }) };
  }

  #answer(path: string, callback: Callback, value: unknown): CallbackReply {
    const body = JSON.stringify(value);
    return {
      status: 200,
      body,
      signature: signMessage(this.#privateKey, this.#envelope('REPLY', path, callback), body),
    };
  }
}

function refuse(status: number, error: string): CallbackReply {
  return { status, body: JSON.stringify({ ok: false, error }), signature: null };
}

function parseBody<T>(
  schema: { parse(value: unknown): T },
  body: Uint8Array,
): { ok: true; value: T } | { ok: false; error: string } {
  try {
    return { ok: true, value: schema.parse(JSON.parse(Buffer.from(body).toString('utf8'))) };
  } catch (error) {
    return { ok: false, error: describeError(error).slice(0, 500) };
  }
}
