/**
 * The browser's only way out: a forward proxy on loopback. It connects from the instance's own address, only to
 * addresses that the guard allows, and only while a product is being fetched. Chromium's own checks are not enough:
 * page interception sees neither redirects nor WebSockets.
 */
import { randomBytes, timingSafeEqual } from 'node:crypto';
import { once } from 'node:events';
import { Agent, createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { bareHostOf } from '../../../shared/domain/same-site.ts';
import { forwardRequest } from './forward-request.ts';
import { connectGuarded, type ConnectOptions } from './guarded-connect.ts';
import { openTunnel } from './open-tunnel.ts';
import { ProxyGate } from './proxy-gate.ts';
import type { Duplex } from 'node:stream';

/** The proxy itself answers requests for this host, which proves that the browser has the credential. */
export const CHECK_URL = 'http://filter-proxy.invalid/';
/** Header of every reply that is the proxy's own and not the site's. */
export const PROXY_ANSWER = 'x-filter-proxy';

/** Chromium itself requests this host after a certificate error, to detect a captive portal. */
const CHROMIUMS_OWN = new Set(['connectivitycheck.gstatic.com']);

/** Chromium opens at most 32 connections to a proxy. */
const MAX_CONNECTIONS = 64;
const MAX_HEADER_BYTES = 64 * 1024;

export interface FilterProxy {
  /** The address for the browser: `http://127.0.0.1:port`. */
  url: string;
  /** Known to this process only, so that no other program on the machine can use the proxy. */
  username: string;
  password: string;
  gate: ProxyGate;
  /** Ends every connection. */
  close(): Promise<void>;
}

/** Starts the proxy on a free port of `listenAddress`. */
export async function startFilterProxy(options: ConnectOptions & { listenAddress?: string }): Promise<FilterProxy> {
  const username = 'browser';
  const password = randomBytes(24).toString('hex');
  const expected = Buffer.from(`Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`);
  const gate = new ProxyGate();
  const agent = new UpstreamAgent(options);
  const sockets = new Set<Socket>();
  const server = createServer({ maxHeaderSize: MAX_HEADER_BYTES });
  server.maxConnections = MAX_CONNECTIONS;
  // The browser reuses its connections; closing one here at the wrong moment would fail a request.
  server.keepAliveTimeout = 0;
  server.requestTimeout = 0;

  /** Why a request is refused, as status and text; null when it is allowed. */
  const refuse = (request: IncomingMessage, { host, port, path }: Target): [number, string] | null => {
    const authority = `${host}:${port}`;
    const isTunnel = request.method === 'CONNECT';
    if (CHROMIUMS_OWN.has(host)) return [403, 'not for the page'];
    if (!gate.admits(authority, isTunnel ? null : path, isForDocument(request)))
      return [503, 'no product is being fetched, or its page has made too many requests'];
    const fault = options.guard.checkHost(host, port);
    if (fault === null) return null;
    gate.fault(authority, fault);
    request.resume();
    return [403, fault];
  };

  server.on('connection', (socket: Socket) => {
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
  });
  server.on('request', (request, response) => {
    if (!isAuthorised(request, expected)) return answer(response, 407, 'the credential is missing');
    if (request.url === CHECK_URL) return answer(response, 200, 'ready');
    const url = parseTarget(request.url);
    if (url === null) return answer(response, 400, 'not a request to a proxy');
    const refusal = refuse(request, url);
    if (refusal !== null) return answer(response, ...refusal);
    forwardRequest({ request, response, ...url, gate, agent, isDocument: isForDocument(request) });
  });
  server.on('connect', (request, socket: Socket, head) => {
    const target = parseTarget(`http://${request.url}`, 443);
    const refusal: [number, string] | null = !isAuthorised(request, expected)
      ? [407, 'the credential is missing']
      : target === null
        ? [400, 'no host and port']
        : refuse(request, target);
    if (refusal !== null) return answerRaw(socket, ...refusal);
    openTunnel({ client: socket, head, ...target!, gate, options });
  });
  server.on('clientError', (_error, socket) => socket.destroy());

  server.listen(0, options.listenAddress ?? '127.0.0.1');
  await once(server, 'listening');
  const { address, port } = server.address() as AddressInfo;
  return {
    url: `http://${address}:${port}`,
    username,
    password,
    gate,
    async close() {
      gate.shut();
      const closed = once(server, 'close');
      server.close();
      for (const socket of sockets) socket.destroy();
      agent.destroy();
      await closed;
    },
  };
}

interface Target {
  host: string;
  port: number;
  path: string;
}

/** Removes the brackets of an IPv6 address; null for anything but an absolute http URL. */
function parseTarget(text: string | undefined, defaultPort = 80): Target | null {
  if (text === undefined || !/^http:\/\//i.test(text) || !URL.canParse(text)) return null;
  const url = new URL(text);
  // The parser drops :80 as the scheme's default; in CONNECT it must stay.
  const port = url.port !== '' ? Number(url.port) : text.endsWith(':80') ? 80 : defaultPort;
  return { host: bareHostOf(url), port, path: url.pathname + url.search };
}

/** Chromium sends this header for pages, frames and windows that it requests over plain HTTP, and for nothing else. */
const isForDocument = ({ headers }: IncomingMessage): boolean => headers['upgrade-insecure-requests'] === '1';

function isAuthorised(request: IncomingMessage, expected: Buffer): boolean {
  const given = Buffer.from(request.headers['proxy-authorization'] ?? '');
  return given.length === expected.length && timingSafeEqual(given, expected);
}

function answer(response: ServerResponse, status: number, text: string): void {
  response.writeHead(status, {
    [PROXY_ANSWER]: text.replaceAll(/[^\x20-\x7e]/g, '?'),
    'content-type': 'text/html; charset=utf-8',
    'content-length': Buffer.byteLength(text),
    ...(status === 407 ? { 'proxy-authenticate': 'Basic realm="filter-proxy"' } : {}),
  });
  response.end(text);
}

function answerRaw(socket: Socket, status: number, text: string): void {
  socket.on('error', () => {});
  const challenge = status === 407 ? 'proxy-authenticate: Basic realm="filter-proxy"\r\n' : '';
  socket.end(`HTTP/1.1 ${status} Refused\r\n${challenge}content-length: ${Buffer.byteLength(text)}\r\n\r\n${text}`);
}

/** The most connections to one host: as many as a browser itself would open. */
const MAX_PER_HOST = 6;
/** Shorter than what web servers use, so that a request does not meet a connection that is being closed. */
const IDLE_MS = 4_000;

class UpstreamAgent extends Agent {
  readonly #options: ConnectOptions;

  constructor(options: ConnectOptions) {
    super({ keepAlive: true, maxSockets: MAX_PER_HOST, maxFreeSockets: MAX_PER_HOST, timeout: IDLE_MS });
    this.#options = options;
  }

  override createConnection(target: { host?: string | null; port?: number | string | null }): Duplex {
    return connectGuarded(target.host ?? '', Number(target.port ?? 80), this.#options);
  }
}
