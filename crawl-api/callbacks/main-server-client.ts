/** Sends messages to the main server: one at a time, so that counters arrive in order, each with a hard timeout. */
import type { EpochId } from '../../shared/domain/epoch-id.ts';
import { Agent } from 'undici';
import type { KeyObject } from 'node:crypto';
import {
  type Envelope,
  envelopeHeaders,
  HEADER,
  macMessage,
  signMessage,
  verifyMessage,
} from '../../shared/wire/signature.ts';

export interface MainServerOptions {
  callbackUrl: string;
  owner: { run: string } & EpochId;
  token: string;
  privateKey: KeyObject;
  runPublicKey: KeyObject;
  nextCounter: () => number;
  /** Source address of the connections. */
  localAddress: string;
  timeoutMs: number;
}

export interface Reply {
  status: number;
  body: string;
  /** True when the run's key signed exactly this reply to exactly this message. */
  authentic: boolean;
}

const MAX_REPLY_BYTES = 4_000_000;

export class MainServerClient {
  readonly #options: MainServerOptions;
  readonly #agent: Agent;
  #last: Promise<unknown> = Promise.resolve();

  constructor(options: MainServerOptions) {
    this.#options = options;
    this.#agent = new Agent({
      connections: 1,
      localAddress: options.localAddress,
      connect: { timeout: options.timeoutMs },
    });
  }

  /** The hello, MACed with the enrolment token. Rejects when there is no answer. */
  sendHello(path: string, message: unknown): Promise<Reply> {
    return this.#inTurn(() => {
      const body = JSON.stringify(message);
      const envelope: Envelope = { method: 'POST', path, ...this.#options.owner };
      return this.#post(envelope, body, macMessage(this.#options.token, envelope, body));
    });
  }

  /** A callback, signed with the instance's key under a counter of its own. Rejects when there is no answer. */
  sendSigned(path: string, message: unknown): Promise<Reply> {
    return this.#inTurn(() => {
      const body = JSON.stringify(message);
      const envelope: Envelope = { method: 'POST', path, ...this.#options.owner, counter: this.#options.nextCounter() };
      return this.#post(envelope, body, signMessage(this.#options.privateKey, envelope, body));
    });
  }

  /** Closes the connection and aborts any request in flight. */
  close(): Promise<void> {
    return this.#agent.destroy();
  }

  #inTurn<T>(send: () => Promise<T>): Promise<T> {
    const turn = this.#last.then(send);
    this.#last = turn.catch(() => undefined);
    return turn;
  }

  async #post(envelope: Envelope, body: string, signature: string): Promise<Reply> {
    const { callbackUrl, runPublicKey, timeoutMs } = this.#options;
    const base = new URL(callbackUrl);
    const response = await this.#agent.request({
      origin: base.origin,
      path: base.pathname.replace(/\/+$/, '') + envelope.path,
      method: 'POST',
      headers: { 'content-type': 'application/json', ...envelopeHeaders(envelope, signature) },
      body,
      signal: AbortSignal.timeout(timeoutMs),
    });
    const chunks: Uint8Array[] = [];
    let bytes = 0;
    for await (const chunk of response.body as AsyncIterable<Uint8Array>) {
      bytes += chunk.length;
      if (bytes > MAX_REPLY_BYTES) throw new Error('the reply of the main server is too long');
      chunks.push(chunk);
    }
    const raw = Buffer.concat(chunks);
    const given = response.headers[HEADER.signature];
    const authentic =
      typeof given === 'string' && verifyMessage(runPublicKey, { ...envelope, method: 'REPLY' }, raw, given);
    return { status: response.statusCode, body: raw.toString('utf8'), authentic };
  }
}
