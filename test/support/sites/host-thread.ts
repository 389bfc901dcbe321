/* oxlint-disable unicorn/require-post-message-target-origin -- threads have no origin */
/** The thread of a world of hosts (host-world.ts): a pause of the test must not falsify arrival times. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { gzipSync } from 'node:zlib';
import { parentPort, workerData } from 'node:worker_threads';
import { listen } from '../../../shared/adapters/http/listening.ts';
import type { HostRequest } from './host-ledger.ts';
import {
  type HostBehaviour,
  type HostChange,
  type HostSpec,
  pathsOf,
  renderHostPage,
  robotsTextOf,
} from './host-spec.ts';

export interface HostThreadData {
  specs: readonly HostSpec[];
  /** Where to listen. */
  addresses: readonly string[];
  port: number;
}

export type HostThreadOrder = { id: number; do: 'ledger' } | { id: number; do: 'change'; name: string; to: HostChange };

interface Host {
  spec: HostSpec;
  paths: ReadonlySet<string>;
  /** By source address: pages since the last ban, and until when it is banned. */
  counts: Map<string, { pages: number; untilMs: number }>;
  /** Requests for its robots.txt. */
  rulesAsked: number;
  /** Its robots.txt, where that is sent so: packed before the first request, because others would wait for that. */
  packed: Buffer | null;
}

const FILLER = Buffer.alloc(65_536, '<!-- filler -->\n');

const { specs, addresses, port } = workerData as HostThreadData;
const hosts = new Map<string, Host>();
const requests: HostRequest[] = [];

const put = (spec: HostSpec): void => {
  const paths = new Set([...pathsOf(spec), ...Object.keys(spec.contacts ?? {})]);
  hosts.set(spec.name, { spec, paths, counts: new Map(), rulesAsked: 0, packed: packedRules(spec) });
};

function answer(request: IncomingMessage, response: ServerResponse): void {
  // Taken before any other work, because tests judge politeness by this number.
  const atMs = performance.now();
  const name = (request.headers.host ?? '').replace(/:\d+$/, '').toLowerCase();
  const path = request.url ?? '/';
  const entry: HostRequest = {
    host: name,
    atMs,
    wallMs: Date.now(),
    method: request.method ?? '',
    path,
    from: request.socket.remoteAddress ?? '',
    to: request.socket.localAddress ?? '',
    userAgent: request.headers['user-agent'] ?? '',
    status: null,
    endMs: null,
  };
  requests.push(entry);
  request.resume();
  const end = (): void => {
    entry.status ??= response.headersSent ? response.statusCode : 0;
    entry.endMs ??= performance.now();
  };
  // When the last byte is handed over: before the client can have it and ask for something else.
  response.once('prefinish', end);
  response.once('close', end);
  const host = hosts.get(name.replace(/\.$/, ''));
  if (host === undefined) return void response.writeHead(421).end('no such host here');
  if (host.spec.behaviour === 'silent') return;
  const refusal = refusalOf(host, entry);
  if (refusal) return void response.writeHead(refusal.status, refusal.headers).end('<h1>Not now</h1>');
  if (path === '/robots.txt') sendRobots(host, response);
  else sendPage(host, path, response);
}

function packedRules(spec: HostSpec): Buffer | null {
  const { robots } = spec;
  if (typeof robots !== 'object' || !('packed' in robots)) return null;
  const text = robotsTextOf(spec);
  return gzipSync(text + '# filler\n'.repeat((robots.bytes - text.length) / 9));
}

interface Refusal {
  status: number;
  headers: Record<string, string>;
}

function refusalOf({ spec, counts }: Host, { from, path, atMs }: HostRequest): Refusal | null {
  const { behaviour } = spec;
  if (typeof behaviour !== 'object' || !('ban' in behaviour || 'tooMany' in behaviour)) return null;
  const policy = 'ban' in behaviour ? behaviour.ban : behaviour.tooMany;
  const count = counts.get(from) ?? { pages: 0, untilMs: -Infinity };
  counts.set(from, count);
  if (atMs >= count.untilMs) {
    if (path !== '/robots.txt') count.pages++;
    if (count.pages <= policy.afterPages) return null;
    count.pages = 0;
    count.untilMs = atMs + policy.forMs;
  }
  if ('ban' in behaviour) return { status: 403, headers: { 'content-type': 'text/html' } };
  const headers = { 'content-type': 'text/html', 'retry-after': String(behaviour.tooMany.retryAfterSeconds) };
  return { status: 429, headers };
}

function sendRobots(host: Host, response: ServerResponse): void {
  const { spec } = host;
  const { robots } = spec;
  if (robots === 'silent') return;
  if (robots !== undefined && 'status' in robots) return void response.writeHead(robots.status).end();
  if (robots !== undefined && 'redirectTo' in robots) return redirect(response, robots.redirectTo, '/robots.txt');
  const { refuses = 0, drips = false } = robots !== undefined && !('bytes' in robots) ? robots : {};
  if (host.rulesAsked++ < refuses) return void response.writeHead(503).end();
  const text = robotsTextOf(spec);
  const type = { 'content-type': 'text/plain; charset=utf-8' };
  if (host.packed !== null) {
    response.writeHead(200, { ...type, 'content-encoding': 'gzip' });
    return void response.end(host.packed);
  }
  response.writeHead(200, type);
  if (drips) {
    response.write(text);
    const timer = setInterval(() => response.write('# more\n'), 100);
    return void response.once('close', () => clearInterval(timer));
  }
  if (robots !== undefined && 'bytes' in robots) stream(response, text, rulesOfOthers(robots.bytes - text.length));
  else response.end(text);
}

function* rulesOfOthers(bytes: number): Generator<string> {
  for (let sent = 0, i = 0; sent < bytes; i++) {
    const group = `\nUser-agent: other${i}\nDisallow: /for-others-${i}\n`;
    const text = group.slice(0, bytes - sent);
    sent += text.length;
    yield text;
  }
}

function* filler(bytes: number): Generator<Buffer> {
  for (let left = bytes; left > 0; left -= FILLER.length) yield FILLER.subarray(0, left);
}

function sendPage({ spec, paths }: Host, path: string, response: ServerResponse): void {
  const behaviour: HostBehaviour = spec.behaviour ?? 'ok';
  if (typeof behaviour === 'object' && 'redirectTo' in behaviour) return redirect(response, behaviour.redirectTo, path);
  if (typeof behaviour === 'object' && 'raw' in behaviour)
    return void response.socket?.end(filled(behaviour.raw, path));
  const html = { 'content-type': 'text/html; charset=utf-8' };
  const send = (): void => {
    if (!paths.has(path)) return void response.writeHead(404, html).end('<h1>No such page</h1>');
    response.writeHead(200, html);
    const page = renderHostPage(spec, path, port);
    if (typeof behaviour === 'object' && 'hugeBytes' in behaviour)
      stream(response, page, filler(behaviour.hugeBytes - Buffer.byteLength(page)));
    else response.end(page);
  };
  if (typeof behaviour !== 'object' || !('slowMs' in behaviour)) return send();
  const timer = setTimeout(send, behaviour.slowMs);
  response.once('close', () => clearTimeout(timer));
}

function redirect(response: ServerResponse, to: string, path: string): void {
  response.writeHead(302, { location: filled(to, path) }).end();
}

const filled = (text: string, path: string): string =>
  text.replaceAll('{port}', String(port)).replaceAll('{path}', path);

function stream(response: ServerResponse, first: string, rest: Iterable<string | Buffer>): void {
  response.write(first);
  // A client that has read enough closes the connection.
  pipeline(Readable.from(rest), response).catch(() => undefined);
}

for (const spec of specs) put(spec);
for (const address of addresses) {
  const server = createServer(answer);
  // As long as common front-end servers keep idle connections.
  server.keepAliveTimeout = 75_000;
  server.requestTimeout = 0;
  await listen(server, { host: address, port, exclusive: true });
}

parentPort!.on('message', (order: HostThreadOrder) => {
  const { id } = order;
  if (order.do === 'change') {
    put({ ...hosts.get(order.name)!.spec, ...order.to });
    parentPort!.postMessage({ id, nowMs: performance.now() });
  } else parentPort!.postMessage({ id, requests, nowMs: performance.now() });
});
parentPort!.postMessage('ready');
