/** An instance from the main server's view: sends hello, heartbeats and completions over HTTP, well or badly signed. */
import {
  type Completion,
  COMPLETION_PATH,
  type Heartbeat,
  HEARTBEAT_PATH,
  type Hello,
  HELLO_PATH,
  NO_PROGRESS,
  type Orders,
  type PartRef,
} from '../../../../shared/wire/callbacks.ts';
import {
  createKeyPair,
  type Envelope,
  envelopeHeaders,
  exportPublicKey,
  HEADER,
  importPublicKey,
  type KeyPair,
  macMessage,
  signMessage,
  verifyMessage,
} from '../../../../shared/wire/signature.ts';

export interface Answer {
  status: number;
  body: Record<string, unknown>;
  /** True when the run's key signed exactly this reply to exactly this message. */
  authentic: boolean;
}

export interface CallerOptions {
  baseUrl: string;
  run: { id: string; publicKey: string };
  slot: number;
  epoch: number;
  instanceId: string;
  token: string;
  now: () => number;
}

export class Caller {
  readonly options: CallerOptions;
  readonly keys: KeyPair;
  counter = 0;

  /** With keys of its own, or with those of another one. */
  constructor(options: CallerOptions, keys = createKeyPair()) {
    this.options = options;
    this.keys = keys;
  }

  /** This instance's path and identity; changed for forgeries. */
  envelope(path: string, counter?: number): Envelope {
    const { run, slot, epoch } = this.options;
    return { method: 'POST', path, run: run.id, slot, epoch, ...(counter === undefined ? {} : { counter }) };
  }

  helloBody(change: Partial<Hello> = {}): string {
    const { instanceId, slot, now } = this.options;
    return JSON.stringify({
      instanceId,
      address: `127.1.0.${slot + 1}`,
      publicKey: exportPublicKey(this.keys.publicKey),
      bundleSha256: 'b'.repeat(64),
      clock: new Date(now()).toISOString(),
      ...change,
    });
  }

  hello(change: Partial<Hello> = {}, token = this.options.token): Promise<Answer> {
    const envelope = this.envelope(HELLO_PATH);
    const body = this.helloBody(change);
    return this.post(envelope, body, macMessage(token, envelope, body));
  }

  heartbeatBody(change: Partial<Heartbeat> & { pending?: number } = {}): string {
    const { pending = 1, ...rest } = change;
    const progress = { ...NO_PROGRESS, assigned: 1, pending };
    const clock = new Date(this.options.now()).toISOString();
    return JSON.stringify({
      phase: 'crawling',
      clock,
      offered: [],
      transferred: [],
      progress,
      parts: [],
      problem: null,
      incident: null,
      robots: null,
      ...rest,
    });
  }

  heartbeat(change: Partial<Heartbeat> & { pending?: number } = {}): Promise<Answer> {
    return this.signed(HEARTBEAT_PATH, this.heartbeatBody(change));
  }

  async orders(change: Partial<Heartbeat> & { pending?: number } = {}): Promise<Orders> {
    const answer = await this.heartbeat(change);
    if (answer.status !== 200 || !answer.authentic) throw new Error(`no orders: ${JSON.stringify(answer)}`);
    return answer.body as Orders;
  }

  complete(completion: Completion): Promise<Answer> {
    return this.signed(COMPLETION_PATH, JSON.stringify(completion));
  }

  signed(path: string, body: string): Promise<Answer> {
    const envelope = this.envelope(path, ++this.counter);
    return this.post(envelope, body, signMessage(this.keys.privateKey, envelope, body));
  }

  async post(envelope: Envelope, body: string, signature: string): Promise<Answer> {
    return this.send(envelope, body, envelopeHeaders(envelope, signature));
  }

  async send(envelope: Envelope, body: string, headers: Record<string, string>): Promise<Answer> {
    const response = await fetch(this.options.baseUrl + envelope.path, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body,
    });
    const text = await response.text();
    const given = response.headers.get(HEADER.signature);
    const reply = { ...envelope, method: 'REPLY' };
    const key = importPublicKey(this.options.run.publicKey);
    const authentic = given !== null && verifyMessage(key, reply, text, given);
    return { status: response.status, body: JSON.parse(text) as Record<string, unknown>, authentic };
  }

  /** A part of this instance, under the key that its hash gives. */
  part(seq: number, change: Partial<PartRef> = {}): PartRef {
    const { run, slot, epoch } = this.options;
    const sha256 = (seq + 16).toString(16).padStart(64, '0');
    const key = `runs/${run.id}/${slot}/${epoch}/${seq}-${sha256}.ndjson.gz`;
    return { seq, key, sha256, sizeBytes: 100, products: 1, ...change };
  }
}
