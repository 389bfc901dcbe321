/** The surroundings of an instance, in the test's own process: metadata service, main server, bucket and shop. */
import type { ServerResponse } from 'node:http';
import type { KeyObject } from 'node:crypto';
import {
  type Completion,
  COMPLETION_PATH,
  type Heartbeat,
  HEARTBEAT_PATH,
  heartbeatSchema,
  HELLO_PATH,
  helloSchema,
  type Orders,
} from '../../../shared/wire/callbacks.ts';
import {
  type Envelope,
  HEADER,
  importPublicKey,
  type KeyPair,
  signMessage,
  verifyMac,
  verifyMessage,
} from '../../../shared/wire/signature.ts';
import { startStub, type Stub } from './http-stub.ts';

/** IMDSv2 of one machine; answers nothing without the token. */
export function startMetadata(machine: { instanceId: string; address: string; userData: () => string }): Promise<Stub> {
  const credentials = JSON.stringify({
    Code: 'Success',
    Type: 'AWS-HMAC',
    AccessKeyId: 'ASIATEST',
    SecretAccessKey: 'test',
    Token: 'test',
    Expiration: new Date(Date.now() + 3_600_000).toISOString(),
  });
  return startStub((request, _body, response) => {
    if (request.method === 'PUT') return void response.end('the-token');
    if (request.headers['x-aws-ec2-metadata-token'] !== 'the-token') return void response.writeHead(401).end();
    const answers: Record<string, () => string> = {
      '/latest/meta-data/instance-id': () => machine.instanceId,
      '/latest/meta-data/local-ipv4': () => machine.address,
      '/latest/user-data': machine.userData,
      '/latest/meta-data/iam/security-credentials/': () => 'role',
      '/latest/meta-data/iam/security-credentials/role': () => credentials,
    };
    const answer = answers[request.url ?? ''];
    return void (answer ? response.end(answer()) : response.writeHead(404).end());
  });
}

/** A bucket with conditional puts. `beforeReply` may take over the reply: it then returns true. */
export interface StubBucket extends Stub {
  objects: Map<string, Buffer>;
  puts: { key: string; created: boolean; from: string | undefined }[];
  refuse: boolean;
  swallowReplies: boolean;
}

export async function startBucket(): Promise<StubBucket> {
  const bucket = { objects: new Map(), puts: [], refuse: false, swallowReplies: false } as unknown as StubBucket;
  const stub = await startStub((request, body, response) => {
    const key = decodeURIComponent((request.url ?? '').split('?')[0]!).replace(/^\/bucket\//, '');
    if (bucket.refuse) return void response.writeHead(403).end('<Error><Code>AccessDenied</Code></Error>');
    const created = !bucket.objects.has(key);
    bucket.puts.push({ key, created, from: request.socket.remoteAddress });
    if (!created) return void response.writeHead(412).end('<Error><Code>PreconditionFailed</Code></Error>');
    bucket.objects.set(key, body);
    if (bucket.swallowReplies) return;
    return void response.writeHead(200, { etag: '"x"' }).end();
  });
  return Object.assign(bucket, stub);
}

export interface StubMainServer extends Stub {
  hellos: { body: ReturnType<typeof helloSchema.parse>; macOk: boolean; from: string | undefined }[];
  heartbeats: (Heartbeat & { counter: number; signed: boolean; at: number })[];
  completions: Completion[];
  /** Overrides of the usual orders: every offer is granted, every part acknowledged. */
  orders: Partial<Orders> & { intervalMs: number; deadline: string };
  helloStatus: number;
  completionStatus: number;
  /** Signs replies with this key; by default the run's. */
  replyKey: KeyObject;
}

export async function startMainServer(
  run: KeyPair,
  token: string,
  orders: { intervalMs: number; deadline: string },
): Promise<StubMainServer> {
  const main = {
    hellos: [],
    heartbeats: [],
    completions: [],
    orders,
    helloStatus: 200,
    completionStatus: 200,
    replyKey: run.privateKey,
  } as unknown as StubMainServer;
  let instanceKey: KeyObject | null = null;
  const stub = await startStub((request, body, response) => {
    const path = request.url ?? '';
    const envelope = envelopeOf(path, request.headers);
    const signature = String(request.headers[HEADER.signature]);
    const json = JSON.parse(body.toString('utf8')) as unknown;
    if (path === HELLO_PATH) {
      const hello = helloSchema.parse(json);
      main.hellos.push({
        body: hello,
        macOk: verifyMac(token, envelope, body, signature),
        from: request.socket.remoteAddress,
      });
      if (main.helloStatus === 200) instanceKey = importPublicKey(hello.publicKey);
      return answer(response, main.helloStatus, { ok: main.helloStatus === 200 });
    }
    const signed = instanceKey !== null && verifyMessage(instanceKey, envelope, body, signature);
    if (path === COMPLETION_PATH) {
      if (main.completionStatus === 200) main.completions.push(json as Completion);
      return answer(response, signed ? main.completionStatus : 401, { ok: main.completionStatus === 200 });
    }
    if (path !== HEARTBEAT_PATH) return answer(response, 404, { ok: false });
    const heartbeat = heartbeatSchema.parse(json);
    main.heartbeats.push({ ...heartbeat, counter: envelope.counter ?? -1, signed, at: performance.now() });
    const reply: Orders = {
      grants: heartbeat.offered,
      drops: [],
      transfer: [],
      transferredAck: heartbeat.transferred,
      maxProducts: null,
      sealed: false,
      drain: false,
      fenced: false,
      partsAck: Math.max(-1, ...heartbeat.parts.map((p) => p.seq)),
      robots: null,
      returnProducts: false,
      verdict: null,
      canaryPage: null,
      ...main.orders,
    };
    const text = JSON.stringify(reply);
    const mark = signMessage(main.replyKey, { ...envelope, method: 'REPLY' }, text);
    return void response.writeHead(200, { [HEADER.signature]: mark }).end(text);
  });
  return Object.assign(main, stub);
}

function envelopeOf(path: string, headers: NodeJS.Dict<string | string[]>): Envelope {
  const number = (name: string): number | undefined =>
    headers[name] === undefined ? undefined : Number(headers[name]);
  const [slot, epoch, counter] = [number(HEADER.slot), number(HEADER.epoch), number(HEADER.counter)];
  return {
    method: 'POST',
    path,
    run: String(headers[HEADER.run]),
    ...(slot === undefined ? {} : { slot }),
    ...(epoch === undefined ? {} : { epoch }),
    ...(counter === undefined ? {} : { counter }),
  };
}

function answer(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
}
