/** Forwards one plain-HTTP request of the browser, and its reply, during the product that it was made for. */
import { type Agent, type IncomingMessage, request as httpRequest, type ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { endToEndHeaders } from '../../../shared/adapters/http/end-to-end-headers.ts';
import { MAX_HEAD_BYTES } from '../../../shared/adapters/http/reply-head.ts';
import { describeError } from '../../../shared/domain/errors.ts';
import type { ProxyGate } from './proxy-gate.ts';

export interface ForwardedRequest {
  request: IncomingMessage;
  response: ServerResponse;
  host: string;
  port: number;
  path: string;
  gate: ProxyGate;
  agent: Agent;
  isDocument: boolean;
}

export function forwardRequest(forwarded: ForwardedRequest): void {
  const { request, response, host, port, path, gate, agent } = forwarded;
  const authority = `${host}:${port}`;
  const upstream = httpRequest({
    agent,
    host,
    port,
    path,
    method: request.method ?? 'GET',
    headers: endToEndHeaders(request.rawHeaders),
    setDefaultHeaders: false,
    maxHeaderSize: MAX_HEAD_BYTES,
  });
  const asked = gate.report;
  gate.countRequest(forwarded.isDocument);
  let finished = false;
  const finish = (fault: string | null): void => {
    if (finished) return;
    finished = true;
    if (fault === null) return;
    gate.fault(authority, fault);
    upstream.destroy();
    // No status of the proxy's own: the browser would show it as the site's page.
    response.destroy();
  };

  upstream.once('socket', (socket: Socket) => {
    const send = (): void => {
      if (gate.start(asked)) request.pipe(upstream);
      else finish('the request was not allowed to start');
    };
    if (socket.connecting) socket.once('connect', send);
    else send();
  });
  upstream.once('response', (reply) => {
    response.writeHead(reply.statusCode ?? 502, reply.statusMessage, endToEndHeaders(reply.rawHeaders));
    // The head counts too: a reply without a body also has a first byte.
    if (!gate.receive(0, asked)) return finish('no product is being fetched');
    reply.on('data', (chunk: Buffer) => {
      if (!gate.receive(chunk.length, asked)) finish('too many bytes for one product');
    });
    reply.once('error', (error) => finish(describeError(error)));
    reply.pipe(response);
  });
  upstream.once('error', (error) => finish(describeError(error)));
  request.once('error', (error) => finish(describeError(error)));
  response.once('finish', () => finish(null));
  response.once('close', () => {
    // The browser no longer needs the reply.
    if (!response.writableFinished) finish('the browser hung up');
  });
}
