/** F40 over TLS: the limits of a listener see the connection itself and the one that is encrypted in it as one. */
import { once } from 'node:events';
import { createServer, type Server } from 'node:https';
import { type AddressInfo, connect as connectTcp } from 'node:net';
import { connect, type TLSSocket } from 'node:tls';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { limitConnections, markProved } from '../../../../shared/adapters/http/connection-limit.ts';
import { limitRequests } from '../../../../shared/adapters/http/request-limit.ts';
import { closeServer } from '../../../../shared/adapters/http/listening.ts';
import { makeSelfSigned } from '../../../support/self-signed.ts';

const ca = makeSelfSigned('127.0.0.1');

describe('F40: a listener with TLS', () => {
  let server: Server;
  const sockets: TLSSocket[] = [];

  beforeEach(async () => {
    server = createServer({ cert: ca.cert, key: ca.key }, (request, response) => {
      if (request.url === '/signed') markProved(request.socket);
      response.end('served');
    });
    limitConnections(server, { ofAll: 3 });
    limitRequests(server);
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
  });
  afterEach(async () => {
    for (const socket of sockets.splice(0)) socket.destroy();
    await closeServer(server);
  });

  async function open(): Promise<TLSSocket> {
    const { port } = server.address() as AddressInfo;
    const socket = connect({ port, host: '127.0.0.1', ca: ca.cert });
    socket.on('error', () => undefined);
    sockets.push(socket);
    await once(socket, 'secureConnect');
    return socket;
  }
  const request = (path: string): string => `GET ${path} HTTP/1.1\r\nhost: x\r\n\r\n`;
  async function ask(socket: TLSSocket, path: string): Promise<string> {
    socket.write(request(path));
    return String((await once(socket, 'data'))[0]);
  }
  const isClosed = (socket: TLSSocket) => new Promise((resolve) => socket.once('close', resolve));

  it('keeps an authenticated connection in a crowd, and closes the oldest of the others', async () => {
    const own = await open();
    expect(await ask(own, '/signed')).toContain('served');
    const second = await open();
    const closed = isClosed(second);
    for (let i = 0; i < 4; i++) expect(await ask(await open(), '/')).toContain('served');
    await closed;
    expect(await ask(own, '/')).toContain('served');
  });

  it.each([
    ['nothing', ''],
    // The header of a record that announces more than follows.
    ['half of a client hello', '\x16\x03\x01\x02\x00\x01'],
  ])('serves every request among 150 handshakes from as many addresses that stop after %s', async (_, first) => {
    const { port } = server.address() as AddressInfo;
    const own = await open();
    expect(await ask(own, '/signed')).toContain('served');
    const stalled = Array.from({ length: 150 }, (_, i) => {
      const socket = connectTcp({ port, host: '127.0.0.1', localAddress: `127.9.${i >> 7}.${1 + (i & 127)}` });
      socket.on('error', () => undefined).write(Buffer.from(first, 'latin1'));
      return socket;
    });
    try {
      await Promise.all(stalled.map((socket) => once(socket, 'connect').catch(() => undefined)));
      for (let i = 0; i < 10; i++) expect(await ask(own, '/')).toContain('served');
      expect(await ask(await open(), '/')).toContain('served');
    } finally {
      for (const socket of stalled) socket.destroy();
    }
  });

  it('closes a connection with several requests in one read, and serves the others', async () => {
    const stranger = await open();
    const closed = isClosed(stranger);
    stranger.write(request('/').repeat(100));
    await closed;
    expect(await ask(await open(), '/')).toContain('served');
  });
});
