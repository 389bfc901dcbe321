/**
 * F40 on real processes: a run completes while strangers flood its callback listener.
 *
 * @module-tag nightly
 */
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { HEARTBEAT_PATH } from '../../shared/wire/callbacks.ts';
import { HEADER } from '../../shared/wire/signature.ts';
import { expectFlawlessEnd, untilCrawling, useGround } from './ground.ts';
import { MainServers } from './main-servers.ts';
import type { Stage } from './stage.ts';

const SEED = 47;
const PRODUCTS = 60;
const DRIPPING = 300;
const FLOOD_BYTES = 100_000_000;

/** The most that a stranger can know: the run's ID, and that slot 0 has an epoch 1. */
const forgedHeaders = (run: string): Record<string, string> => ({
  [HEADER.run]: run,
  [HEADER.slot]: '0',
  [HEADER.epoch]: '1',
  [HEADER.counter]: '1000000',
  [HEADER.signature]: 'A'.repeat(86),
});

/** The head of a heartbeat up to its length. */
function headOf(headers: Record<string, string>): string {
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  return `POST ${HEARTBEAT_PATH} HTTP/1.1\r\nhost: x\r\n${lines.join('')}`;
}

describe('the callback listener under attack', () => {
  const ground = useGround(SEED, PRODUCTS);
  let stage: Stage;
  let sockets: Socket[];

  beforeEach(() => {
    sockets = [];
  });
  afterEach(() => {
    for (const socket of sockets) socket.destroy();
  });

  async function startRun(): Promise<MainServers> {
    stage = await ground.open({ name: 'attacked', products: PRODUCTS });
    const servers = new MainServers(stage);
    await untilCrawling(stage, 3);
    return servers;
  }

  const expectServed = (servers: MainServers): Promise<void> => expectFlawlessEnd(stage, servers, SEED);

  it('F40: connections that send a byte now and then delay no other request', async () => {
    const servers = await startRun();
    const head = headOf({ 'content-length': '1000' });
    for (let i = 0; i < DRIPPING; i++) {
      const socket = connect({ port: stage.links.callbacks.port, host: '127.0.0.1' });
      socket.on('error', () => undefined);
      // Half of them never end their headers, the rest never end their body.
      socket.write(i % 2 === 0 ? head : `${head}\r\n{`);
      sockets.push(socket);
    }
    const drip = setInterval(() => sockets.forEach((socket) => socket.writable && socket.write('x')), 500);
    try {
      await expectServed(servers);
    } finally {
      clearInterval(drip);
    }
  });

  it('F40: refuses a body of 100 MB, at once if its length is announced, and still serves others', async () => {
    const servers = await startRun();
    const { id } = (await stage.run())!;
    const [announced, unannounced] = await Promise.all([flood(id, 'content-length'), flood(id, 'chunked')]);
    // 401 before slot 0 has sent its hello. A client that keeps sending may see the reset before the answer.
    expect(announced.answer).toMatch(/^(HTTP\/1.1 4(01|13) |$)/);
    expect(announced.bytes).toBeLessThan(FLOOD_BYTES / 4);
    // Its chunks are not read.
    expect(unannounced.answer).toMatch(/^(HTTP\/1.1 411 |$)/);
    await expectServed(servers);
  });

  /** Sends until it is refused; returns the bytes that the server accepted and its answer. */
  async function flood(run: string, how: 'content-length' | 'chunked'): Promise<{ bytes: number; answer: string }> {
    const socket = connect({ port: stage.links.callbacks.port, host: '127.0.0.1' });
    sockets.push(socket);
    let answer = '';
    // The server answers once and then closes.
    const over = new AbortController();
    socket.on('data', (chunk: Buffer) => {
      answer += chunk.toString('latin1');
      over.abort();
    });
    socket.on('error', () => undefined);
    socket.on('close', () => over.abort());
    socket.on('end', () => over.abort());
    const length = how === 'chunked' ? 'transfer-encoding: chunked' : `content-length: ${FLOOD_BYTES}`;
    socket.write(`${headOf(forgedHeaders(run))}${length}\r\n\r\n`);
    const piece = Buffer.alloc(100_000, 'x');
    let bytes = 0;
    while (bytes < FLOOD_BYTES && !over.signal.aborted) {
      const framed = how === 'chunked' ? Buffer.concat([Buffer.from('186a0\r\n'), piece, Buffer.from('\r\n')]) : piece;
      if (!socket.write(framed)) {
        const waiting = AbortSignal.timeout(2_000);
        await Promise.race([once(socket, 'drain', { signal: waiting }), once(socket, 'close')]).catch(() => undefined);
        if (waiting.aborted) break; // the server has stopped reading
      }
      bytes += piece.length;
    }
    return { bytes, answer };
  }
});
