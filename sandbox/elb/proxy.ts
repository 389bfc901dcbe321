/**
 * The data plane of a load balancer: an HTTP/1.1 round-robin reverse proxy. Bodies are streamed in both directions;
 * connections to targets are kept alive. Answers with AWS's statuses where no target can answer.
 */
import {
  Agent,
  type ClientRequest,
  createServer,
  type IncomingMessage,
  type OutgoingHttpHeaders,
  request as httpRequest,
  type ServerResponse,
} from 'node:http';
import type { Socket } from 'node:net';
import { endToEndHeaders, isEndToEnd } from '../../shared/adapters/http/end-to-end-headers.ts';
import { closeServer, listen } from '../../shared/adapters/http/listening.ts';
import type { Target, TargetGroup } from './target-group.ts';

/** Connect timeout of an application load balancer. */
const CONNECT_TIMEOUT_MS = 10_000;

/** The current state of a load balancer. */
export interface BalancerState {
  /**
   * Number of its nodes. A connection belongs to one of them, as on AWS, where each has an address and a round robin.
   */
  nodes: () => number;
  /** Its region fails whole: it drops every connection. */
  isOut: () => boolean;
}

export interface ProxyOptions extends BalancerState {
  /** The load balancer's address, for listening and as source of its requests to targets. */
  address: string;
  port: number;
  group: TargetGroup;
  /** Replaces the target's answer to a request of this path; null forwards the answer. */
  lostDelivery: (path: string) => 502 | 504 | null;
  /** Idle timeout of a connection. */
  idleMs: () => number;
}

export interface Proxy {
  close(): Promise<void>;
}

/** Rejects when the port cannot be bound. */
export async function startProxy(options: ProxyOptions): Promise<Proxy> {
  const agent = new Agent({ keepAlive: true, maxFreeSockets: 1_024, localAddress: options.address });
  const nodeOf = new WeakMap<Socket, number>();
  let connections = 0;
  const server = createServer({ keepAliveTimeout: options.idleMs(), requestTimeout: 0 }, (request, response) =>
    forward(request, response, options, { agent, node: (nodeOf.get(request.socket) ?? 0) % options.nodes() }),
  );
  server.on('connection', (socket: Socket) => {
    nodeOf.set(socket, connections++);
    if (options.isOut()) socket.destroy();
  });
  await listen(server, { host: options.address, port: options.port, backlog: 4_096 });
  return {
    close: () => {
      const closed = closeServer(server);
      agent.destroy();
      return closed;
    },
  };
}

function forward(
  incoming: IncomingMessage,
  outgoing: ServerResponse,
  options: ProxyOptions,
  { agent, node }: { agent: Agent; node: number },
): void {
  if (options.isOut()) return void incoming.socket.destroy();
  const chosen = options.group.next(node);
  if (!chosen) {
    incoming.resume();
    return fail(outgoing, 503, 'Service Temporarily Unavailable');
  }
  const { target, address } = chosen;
  const upstream = httpRequest({
    host: address,
    port: target.port,
    method: incoming.method,
    path: incoming.url,
    headers: forwardedHeaders(incoming, options.port),
    setHost: false,
    agent,
    timeout: options.idleMs(),
  });
  track(target, upstream, outgoing);
  limitConnect(upstream);
  upstream.on('response', (reply) => {
    const lost = options.lostDelivery(incoming.url ?? '/');
    if (lost !== null) {
      reply.resume();
      return fail(outgoing, lost, lost === 502 ? 'Bad Gateway' : 'Gateway Time-out');
    }
    outgoing.writeHead(reply.statusCode ?? 502, reply.statusMessage, endToEndHeaders(reply.rawHeaders));
    reply.pipe(outgoing);
    // Node delays the headers until the first chunk of the body, which may take long.
    setImmediate(() => outgoing.flushHeaders());
    reply.on('error', () => outgoing.destroy());
  });
  upstream.on('timeout', () => {
    fail(outgoing, 504, 'Gateway Time-out');
    upstream.destroy();
  });
  upstream.on('error', () => {
    incoming.unpipe(upstream);
    incoming.resume();
    fail(outgoing, 502, 'Bad Gateway');
  });
  incoming.on('error', () => upstream.destroy());
  if (!hasBody(incoming)) {
    upstream.end();
    return;
  }
  incoming.pipe(upstream);
  setImmediate(() => upstream.flushHeaders());
}

const hasBody = ({ headers }: IncomingMessage): boolean =>
  headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0;

/** Ends the request when the target is removed while it is in progress, or the client disconnects. */
function track(target: Target, upstream: ClientRequest, outgoing: ServerResponse): void {
  const end = (): void => void upstream.destroy();
  target.inFlight.add(end);
  outgoing.on('close', () => {
    target.inFlight.delete(end);
    if (!outgoing.writableFinished) upstream.destroy();
  });
}

/** A target that does not accept the connection fails sooner than one that replies slowly. */
function limitConnect(upstream: ClientRequest): void {
  upstream.on('socket', (socket) => {
    if (!socket.connecting) return;
    const timer = setTimeout(() => upstream.emit('timeout'), CONNECT_TIMEOUT_MS);
    const clear = (): void => clearTimeout(timer);
    socket.once('connect', clear);
    socket.once('close', clear);
  });
}

function forwardedHeaders(incoming: IncomingMessage, port: number): OutgoingHttpHeaders {
  const headers: OutgoingHttpHeaders = {};
  for (const name in incoming.headers) {
    if (isEndToEnd(name)) headers[name] = incoming.headers[name];
  }
  // Without a length the body is forwarded chunked, as received.
  if (incoming.headers['transfer-encoding'] !== undefined) headers['transfer-encoding'] = 'chunked';
  const before = incoming.headers['x-forwarded-for'];
  const from = incoming.socket.remoteAddress ?? '';
  headers['x-forwarded-for'] = before === undefined ? from : `${String(before)}, ${from}`;
  headers['x-forwarded-proto'] = 'http';
  headers['x-forwarded-port'] = String(port);
  return headers;
}

function fail(outgoing: ServerResponse, status: number, text: string): void {
  if (outgoing.headersSent) {
    // Part of the answer has been sent: only a broken connection shows that it is incomplete.
    outgoing.destroy();
    return;
  }
  const title = `${status} ${text}`;
  const body = `<html>\r\n<head><title>${title}</title></head>\r\n<body>\r\n<center><h1>${title}</h1></center>\r\n</body>\r\n</html>\r\n`;
  outgoing.writeHead(status, { server: 'awselb/2.0', 'content-type': 'text/html', 'content-length': body.length });
  outgoing.end(body);
}
