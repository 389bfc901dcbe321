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
import { highWaterMark } from '../system/memory-watch.ts';
import { expectFlawlessEnd, untilCrawling, useGround } from './ground.ts';
import { MainServers } from './main-servers.ts';
import type { Stage } from './stage.ts';

const SEED = 47;
const PRODUCTS = 60;
/** The crawl must outlast the attack on a slow machine, too. */
const PRODUCTS_IN_A_STORM = 300;
const DRIPPING = 300;
const FLOOD_BYTES = 100_000_000;
const STORM = 2_000;
const CONNECTIONS = 50;

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
  const ground = useGround(SEED, PRODUCTS_IN_A_STORM);
  let stage: Stage;
  let sockets: Socket[];
  let url: string;

  beforeEach(() => {
    sockets = [];
  });
  afterEach(() => {
    for (const socket of sockets) socket.destroy();
  });

  async function startRun(products = PRODUCTS): Promise<MainServers> {
    stage = await ground.open({ name: 'attacked', products });
    url = `http://127.0.0.1:${stage.links.callbacks.port}${HEARTBEAT_PATH}`;
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
    // Its length shows only as it arrives; it is dropped piece by piece and is never whole in memory.
    expect(unannounced.answer).toMatch(/^(HTTP\/1.1 4(01|13) |$)/);
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

  it('unfinished bodies from four addresses fill no memory, and other requests are served', async () => {
    const servers = await startRun();
    const { id } = (await stage.run())!;
    const [row] = await stage.query('select settings from crawlfleet_runs');
    const { server } = JSON.parse(String(row!.settings)) as { server: { callbackListen: string } };
    const port = Number(server.callbackListen.slice(server.callbackListen.lastIndexOf(':') + 1));
    const head = headOf(forgedHeaders(id));
    for (let i = 0; i < 1_000; i++) {
      const socket = connect({ port, host: '127.0.0.1', localAddress: `127.0.77.${1 + (i % 4)}` });
      socket.on('error', () => undefined);
      // Half announce a length and withhold the last byte, half send chunks without end.
      const announced = i % 2 === 0 ? 'content-length: 390000\r\n\r\n' : 'transfer-encoding: chunked\r\n\r\n61a80\r\n';
      socket.write(`${head}${announced}${'x'.repeat(389_999)}`);
      sockets.push(socket);
    }
    let peakBytes = 0;
    const watch = setInterval(() => (peakBytes = Math.max(peakBytes, highWaterMark(servers.pid))), 100);
    await expectServed(servers).finally(() => clearInterval(watch));
    expect(peakBytes).toBeGreaterThan(0);
    expect(peakBytes).toBeLessThan(350e6);
  });

  it('F40: refuses thousands of concurrent forged and false callbacks and still serves others', async () => {
    const servers = await startRun(PRODUCTS_IN_A_STORM);
    const { id } = (await stage.run())!;
    const forged = forgedHeaders(id);
    const foreign = { ...forged, [HEADER.run]: 'another-run' };
    const attempts = Array.from({ length: STORM }, (_, i) => [forged, foreign, {}][i % 3]!);
    const statuses = new Map<number, number>();
    const send = async (): Promise<void> => {
      for (let headers = attempts.pop(); headers; headers = attempts.pop()) {
        const reply = await fetch(url, { method: 'POST', headers, body: '{}' }).catch(() => null);
        await reply?.arrayBuffer();
        statuses.set(reply?.status ?? 0, (statuses.get(reply?.status ?? 0) ?? 0) + 1);
      }
    };
    await Promise.all(Array.from({ length: CONNECTIONS }, send));
    expect([...statuses.keys()].filter((status) => status < 400 || status >= 500)).toEqual([]);
    await expectServed(servers);
  });
});
