/**
 * Limits what unauthenticated connections of a listener make it parse. A read from a socket brings 64 KB: 10,000 chunks
 * of one byte, or 2,400 requests, which take 20 to 100 ms. From 150 connections at once, no other client is served.
 */
import type { IncomingMessage, RequestListener, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { Server as TlsServer } from 'node:tls';
import { isProved, resetConnection } from './connection-limit.ts';

/** Fed to the parser at once: a refusal takes effect behind them. A signed request without its body fits in. */
const PIECE_BYTES = 1_024;

interface Intake {
  /** Requests that began in the current read. */
  requests: number;
  /** True once the connection is refused: what it sends is dropped. */
  isRefused: boolean;
}

/**
 * Refuses two things that no honest client of ours does, before more than a kilobyte of them is parsed: chunked bodies
 * (411, on all connections), and several requests in one read before the connection is authenticated (reset). Call it
 * on a server that has its request listener and does not listen yet.
 */
export function limitRequests(server: Server): void {
  const intakes = new WeakMap<Socket, Intake>();
  server.on(server instanceof TlsServer ? 'secureConnection' : 'connection', (socket: Socket) => {
    const intake: Intake = { requests: 0, isRefused: false };
    intakes.set(socket, intake);
    feedInPieces(socket, intake);
  });
  const serve = server.listeners('request') as RequestListener[];
  server.removeAllListeners('request').on('request', (request: IncomingMessage, response: ServerResponse) => {
    const intake = intakes.get(request.socket);
    if (!intake || intake.isRefused) return;
    intake.requests++;
    if (request.headers['transfer-encoding'] !== undefined) {
      intake.isRefused = true;
      response.writeHead(411, { connection: 'close' }).end();
    } else if (intake.requests > 1 && !isProved(request.socket)) {
      intake.isRefused = true;
      resetConnection(request.socket);
    } else for (const listener of serve) listener(request, response);
  });
}

/** Puts itself between the socket and Node's parser, which has subscribed before. */
function feedInPieces(socket: Socket, intake: Intake): void {
  const parsers = socket.listeners('data') as ((bytes: Buffer) => void)[];
  socket.removeAllListeners('data').on('data', (bytes: Buffer) => {
    intake.requests = 0;
    for (let from = 0; from < bytes.length && !intake.isRefused && !socket.destroyed;) {
      const to = isProved(socket) ? bytes.length : from + PIECE_BYTES;
      for (const parse of parsers) parse(bytes.subarray(from, to));
      from = to;
    }
  });
}
