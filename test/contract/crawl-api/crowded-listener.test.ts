/** The instance's listener under load: silent and unfinished connections are bounded, and the main server gets in. */
import { generateKeyPairSync } from 'node:crypto';
import { once } from 'node:events';
import type { Server } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createBalancerApp } from '../../../crawl-api/server/balancer-app.ts';
import { MAX_CONNECTIONS, listen } from '../../../crawl-api/server/listen.ts';
import { closeServer } from '../../../shared/adapters/http/listening.ts';
import { HEALTH_PATH, offerPath } from '../../../shared/wire/instance-api.ts';
import { HEADER, signMessage } from '../../../shared/wire/signature.ts';

const RUN = 'run-1';
const HOST = '127.0.0.78';
const OFFER = JSON.stringify({ chunk: 0, products: [] });

describe('a crowd at the listener of an instance', () => {
  const keys = generateKeyPairSync('ed25519');
  const sockets: Socket[] = [];
  let server: Server;
  beforeEach(async () => {
    const app = createBalancerApp({
      owner: { run: RUN, slot: 0, epoch: 1 },
      instanceId: 'i-1',
      runPublicKey: keys.publicKey,
      isReady: () => true,
      isBanned: () => false,
      takeOffer: () => Promise.resolve({ taken: false, refused: 'draining', room: 0 }),
    });
    server = await listen(app, HOST, 0);
  });
  afterEach(async () => {
    for (const socket of sockets.splice(0)) socket.destroy();
    await closeServer(server);
  });

  async function open(localAddress: string): Promise<Socket> {
    const socket = connect({ port: (server.address() as AddressInfo).port, host: HOST, localAddress });
    socket.on('error', () => undefined);
    sockets.push(socket);
    await once(socket, 'connect');
    return socket;
  }

  const ask = async (socket: Socket, request: string): Promise<string> => {
    socket.write(request);
    const [answer] = (await once(socket, 'data')) as [Buffer];
    return answer.toString('latin1').split('\r\n')[0]!;
  };

  function signedOffer(): string {
    const path = offerPath(RUN);
    const signature = signMessage(keys.privateKey, { method: 'POST', path, run: RUN }, Buffer.from(OFFER));
    const headers = `${HEADER.run}: ${RUN}\r\n${HEADER.signature}: ${signature}\r\ncontent-length: ${OFFER.length}`;
    return `POST ${path} HTTP/1.1\r\nhost: x\r\n${headers}\r\n\r\n${OFFER}`;
  }

  it('holds no more than its bound, and answers complete requests', async () => {
    const balancer = await open('127.0.0.77');
    const accepted = await ask(balancer, signedOffer());
    for (let i = 0; i < MAX_CONNECTIONS + 300; i++) {
      const socket = await open(`127.0.80.${1 + (i % 8)}`);
      // Half send nothing, half never end their headers.
      if (i % 2 === 0) socket.write(`POST / HTTP/1.1\r\nhost: x\r\nx-long: ${'y'.repeat(10_000)}`);
    }
    const newcomer = await open('127.0.0.76');
    expect(await ask(newcomer, `GET ${HEALTH_PATH} HTTP/1.1\r\nhost: x\r\n\r\n`)).toBe('HTTP/1.1 200 OK');
    // A correctly signed offer has arrived on this one: it stays, however old.
    expect(await ask(balancer, signedOffer())).toBe(accepted);
    expect(accepted).toMatch(/^HTTP\/1.1 4(00|09) /);
    const held = await new Promise<number>((resolve) => server.getConnections((_error, count) => resolve(count)));
    expect(held).toBeLessThanOrEqual(MAX_CONNECTIONS + 1);
  });
});
