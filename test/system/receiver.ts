/** A webhook that keeps what it receives. */
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { beforeEach } from 'vitest';
import type { Notice } from '../../orchestrator/features/notify/notice.ts';

export interface Receiver {
  url: (path: string) => string;
  /** The paths of all requests of the test, in order. */
  paths: () => string[];
  /** The bodies that this path has received. */
  at: (path: string) => string[];
  notices: (path: string) => Notice[];
}

/** A receiver for each test. It answers 404 to these paths. */
export function useReceiver(...refused: string[]): Receiver {
  let base = '';
  let got: { path: string; body: string }[] = [];
  beforeEach(async () => {
    got = [];
    const server = createServer((request, response) => {
      let body = '';
      request.setEncoding('utf8').on('data', (text: string) => (body += text));
      request.on('end', () => {
        got.push({ path: request.url!, body });
        response.writeHead(refused.includes(request.url!) ? 404 : 200).end();
      });
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    return () => {
      server.closeAllConnections();
      server.close();
    };
  });
  const at = (path: string): string[] => got.filter((one) => one.path === path).map(({ body }) => body);
  return {
    url: (path) => `${base}${path}`,
    paths: () => got.map(({ path }) => path),
    at,
    notices: (path) => at(path).map((body) => JSON.parse(body) as Notice),
  };
}
