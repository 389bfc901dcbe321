/** A small HTTP server on its own address, closed with all its connections. */
import http, { type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { randomInt } from 'node:crypto';

export interface Stub {
  url: string;
  address: string;
  port: number;
  /** Number of requests so far. */
  readonly requests: number;
  close: () => Promise<void>;
}

/** A loopback address that is unlikely to be in use: 127.x.y.z with x from 130. */
export function ownAddress(): string {
  return `127.${randomInt(130, 250)}.${randomInt(1, 250)}.${randomInt(2, 250)}`;
}

export function startStub(
  handle: (request: IncomingMessage, body: Buffer, response: ServerResponse) => void,
  address = ownAddress(),
): Promise<Stub> {
  let requests = 0;
  const server = http.createServer((request, response) => {
    requests++;
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => handle(request, Buffer.concat(chunks), response));
    request.on('error', () => undefined);
  });
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(0, address, () => {
      const { port } = server.address() as AddressInfo;
      resolve({
        url: `http://${address}:${port}`,
        address,
        port,
        get requests() {
          return requests;
        },
        close: () =>
          new Promise((done) => {
            server.close(() => done());
            server.closeAllConnections();
          }),
      });
    });
  });
}

/** Waits for the condition; the error names it. */
export async function until<T>(
  what: string,
  condition: () => T | Promise<T>,
  timeoutMs = 20_000,
): Promise<NonNullable<T>> {
  const end = performance.now() + timeoutMs;
  for (;;) {
    const value = await condition();
    if (value) return value;
    if (performance.now() > end) throw new Error(`waited ${timeoutMs} ms for: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}
