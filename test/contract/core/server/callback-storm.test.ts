/** F40: requests of strangers cost the database little or nothing, and do not delay the run's own instances. */
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { limitConnections, markProved } from '../../../../shared/adapters/http/connection-limit.ts';
import { HEARTBEAT_PATH } from '../../../../shared/wire/callbacks.ts';
import type { CallbackStage } from './callback-stage.ts';
import { useCallbackStage } from './use-callback-stage.ts';

const FORGED = 'A'.repeat(86);

describe('F40: a storm of callbacks', () => {
  let stage: CallbackStage;
  useCallbackStage((given) => (stage = given));

  /** Counts, from the call on, the queries of callbacks on the fleet's tables, each of which waits for `hold`. */
  function countLookups(hold: Promise<void> = Promise.resolve()): () => number {
    let lookups = 0;
    stage.core.fleet = new Proxy(stage.core.fleet, {
      get(target, name) {
        const real: unknown = Reflect.get(target, name, target);
        if (typeof real !== 'function') return real;
        return async (...given: unknown[]) => {
          lookups++;
          if (name === 'get') await hold;
          return (real as (...all: unknown[]) => unknown).apply(target, given);
        };
      },
    });
    return () => lookups;
  }

  it('with forged signatures of known instances causes no query, and raises one alarm each', async () => {
    const [a, b] = [await stage.ready(0), await stage.ready(1)];
    const lookups = countLookups();
    for (let i = 0; i < 40; i++) {
      const caller = i % 2 ? a : b;
      const reply = await caller.post(caller.envelope(HEARTBEAT_PATH, 1_000 + i), '{}', FORGED);
      expect(reply.status).toBe(401);
      expect((await caller.hello({}, 'f'.repeat(64))).status).toBe(401);
    }
    expect(lookups()).toBe(0);
    expect(stage.core.alarms).toHaveLength(4);
  });

  it('of another run causes no query', async () => {
    const caller = await stage.ready(0);
    const lookups = countLookups();
    const envelope = { ...caller.envelope(HEARTBEAT_PATH, 9), run: 'another-run' };
    expect((await caller.post(envelope, '{}', FORGED)).status).toBe(401);
    expect(lookups()).toBe(0);
  });

  it('of unknown instances gets a few concurrent look-ups; known instances are served at the same time', async () => {
    const caller = await stage.ready(0);
    const strangers = await stage.launched(1);
    const { promise: held, resolve: release } = Promise.withResolvers<void>();
    const lookups = countLookups(held);
    const storm = Array.from({ length: 100 }, (_, i) =>
      strangers.post({ ...strangers.envelope(HEARTBEAT_PATH, 1), epoch: 100 + i }, '{}', FORGED),
    );
    const answered: number[] = [];
    for (const reply of storm) void reply.then(({ status }) => answered.push(status));
    while (answered.length < 96) await new Promise((resolve) => setImmediate(resolve));
    expect(lookups()).toBe(4);
    // The gate knows this instance since its hello; its own row is read as soon as the database allows it.
    const heartbeat = caller.heartbeat();
    release();
    expect(await heartbeat).toMatchObject({ status: 200, authentic: true });
    // No reply reveals whether the run, slot or epoch exists.
    expect(new Set((await Promise.all(storm)).map(({ status }) => status))).toEqual(new Set([401]));
    // The same client, rejected because of the other requests, is accepted later.
    expect(await strangers.hello()).toMatchObject({ status: 200 });
  });

  it('of unknown instances gets fifty look-ups a second and no more', async () => {
    const caller = await stage.ready(0);
    const lookups = countLookups();
    const ask = (epoch: number) => caller.post({ ...caller.envelope(HEARTBEAT_PATH, 1), epoch }, '{}', FORGED);
    for (let epoch = 100; epoch < 170; epoch++) expect((await ask(epoch)).status).toBe(401);
    const inThatSecond = lookups();
    expect(inThatSecond).toBeGreaterThan(40);
    expect(inThatSecond).toBeLessThanOrEqual(50);
    await stage.clock.advance(1_000);
    expect((await ask(200)).status).toBe(401);
    expect(lookups()).toBe(inThatSecond + 1);
  });
});

describe('F40: connections', () => {
  let server: Server;
  const sockets: Socket[] = [];
  afterEach(() => {
    for (const socket of sockets.splice(0)) socket.destroy();
    server.closeAllConnections();
    server.close();
  });

  it.each([
    ['one address', { ofOne: 3, ofAll: 100 }],
    ['all', { ofAll: 3 }],
  ])(
    'beyond the bound of %s the oldest unauthenticated one is closed, and an authenticated one stays',
    async (_, bounds) => {
      const accepted: Socket[] = [];
      server = createServer((_request, response) => response.end('served'));
      limitConnections(server, bounds);
      server.on('connection', (socket) => accepted.push(socket));
      server.listen(0, '127.0.0.1');
      await once(server, 'listening');
      const open = async (): Promise<Socket> => {
        const socket = connect((server.address() as AddressInfo).port, '127.0.0.1');
        socket.on('error', () => undefined);
        sockets.push(socket);
        const before = accepted.length;
        while (accepted.length === before) await new Promise((resolve) => setImmediate(resolve));
        return socket;
      };
      const first = await open();
      markProved(accepted[0]!);
      const second = await open();
      const third = await open();
      await open();
      // The first was due and has authenticated; the next in line is closed when another arrives.
      const gone = new Promise((resolve) => second.once('close', resolve));
      const newest = await open();
      await gone;
      expect([first.destroyed, third.destroyed]).toEqual([false, false]);
      newest.write('GET / HTTP/1.1\r\nhost: x\r\n\r\n');
      const [reply] = (await once(newest, 'data')) as [Buffer];
      expect(reply.toString()).toContain('served');
    },
  );
});
