/** The callback listener itself: sizes, shapes, headers, routes, and its reply when it cannot answer. */
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import {
  COMPLETION_PATH,
  type Heartbeat,
  HEARTBEAT_PATH,
  HELLO_PATH,
  MAX_CALLBACK_BYTES,
} from '../../../../shared/wire/callbacks.ts';
import { HEADER, envelopeHeaders, macMessage, signMessage } from '../../../../shared/wire/signature.ts';
import type { CallbackStage } from './callback-stage.ts';
import { useCallbackStage } from './use-callback-stage.ts';

describe('the callback listener', () => {
  let stage: CallbackStage;
  const { expectRefused } = useCallbackStage((given) => (stage = given));

  const sockets: Socket[] = [];
  afterEach(() => sockets.splice(0).forEach((socket) => socket.destroy()));

  const closed = (socket: Socket): Promise<void> =>
    new Promise((resolve) => void (socket.destroyed ? resolve() : socket.once('close', () => resolve())));

  /** Sends headers that announce a body of this size, and then its beginning. */
  function begin(headers: Record<string, string>, announced: number | null, beginning = ''): Socket {
    const socket = connect(Number(new URL(stage.baseUrl).port), '127.0.0.1');
    sockets.push(socket.on('error', () => undefined));
    const lines = Object.entries({
      host: 'x',
      ...(announced === null ? {} : { 'content-length': String(announced) }),
      ...headers,
    });
    socket.write(
      `POST ${HEARTBEAT_PATH} HTTP/1.1\r\n${lines.map(([name, value]) => `${name}: ${value}\r\n`).join('')}\r\n`,
    );
    socket.write(beginning);
    return socket;
  }
  const headersOf = (place: object): Record<string, string> =>
    envelopeHeaders(
      { method: 'POST', path: HEARTBEAT_PATH, run: stage.run.id, slot: 0, epoch: 1, counter: 9, ...place },
      'A'.repeat(86),
    );

  it.each([{ run: 'other' }, { slot: 7 }, { epoch: 2 }])('reads no body from a stranger: %o', async (place) => {
    await stage.ready(0);
    const [answer] = (await once(begin(headersOf(place), 300_000), 'data')) as [Buffer];
    expect(answer.toString()).toMatch(/^HTTP\/1.1 401 [^]*connection: close/i);
  });

  it('reads a large body only from authenticated instances', async () => {
    const caller = await stage.ready(0);
    const [answer] = (await once(begin(headersOf({}), 600_000), 'data')) as [Buffer];
    expect(answer.toString()).toMatch(/^HTTP\/1.1 413 /);
    // Its connection is kept, and known since its hello: only signature and shape are checked.
    await expectRefused(400, () => caller.signed(HEARTBEAT_PATH, JSON.stringify({ problem: 'x'.repeat(600_000) })));
  });

  it('refuses a chunked body before it parses its chunks, and closes the connection', async () => {
    await stage.ready(0);
    const socket = begin({ ...headersOf({}), 'transfer-encoding': 'chunked' }, null, '1\r\nx\r\n'.repeat(10_000));
    const [answer] = (await once(socket, 'data')) as [Buffer];
    expect(answer.toString()).toMatch(/^HTTP\/1.1 411 [^]*connection: close/i);
    await closed(socket);
  });

  it('closes an unauthenticated connection that sends requests without waiting for answers', async () => {
    const caller = await stage.ready(0);
    const socket = connect(Number(new URL(stage.baseUrl).port), '127.0.0.1');
    sockets.push(socket.on('error', () => undefined));
    let answers = '';
    socket.on('data', (bytes: Buffer) => (answers += bytes.toString()));
    socket.write('GET / HTTP/1.1\r\nhost: x\r\n\r\n'.repeat(2_000));
    await closed(socket);
    expect(answers.split('HTTP/1.1').length - 1).toBeLessThanOrEqual(1);
    expect(await caller.heartbeat()).toMatchObject({ status: 200 });
  });

  it('serves its own instances while strangers occupy all the room for their bodies', async () => {
    await stage.ready(0);
    const late = await stage.launched(1);
    // Each withholds the last byte.
    const stalled = Array.from({ length: 40 }, () => begin(headersOf({}), 300_000, 'x'.repeat(299_999)));
    const answers = stalled.map((socket) => once(socket, 'data').then(([text]) => String(text).slice(9, 12)));
    // The first ones made room for the later ones.
    expect(await Promise.race(answers)).toBe('503');
    expect(await late.hello()).toMatchObject({ status: 200, authentic: true });
    expect(await late.heartbeat()).toMatchObject({ status: 200, authentic: true });
  });

  /** What a hostile connection sends at once, and then as fast as it is read. */
  const hostile = (): Record<string, [first: string, piece: string]> => {
    const head = `POST ${HEARTBEAT_PATH} HTTP/1.1\r\nhost: x\r\n${Object.entries(headersOf({}))
      .map(([name, value]) => `${name}: ${value}\r\n`)
      .join('')}`;
    return {
      'one-byte chunks': [`${head}transfer-encoding: chunked\r\n\r\n`, '1\r\nx\r\n'.repeat(1_000)],
      'half a head': [head, ''],
      'half a body': [`${head}content-length: 1000\r\n\r\n{`, ''],
      'requests without end': ['', 'GET / HTTP/1.1\r\nhost: x\r\n\r\n'.repeat(500)],
    };
  };

  it.each(['one-byte chunks', 'half a head', 'half a body', 'requests without end'])(
    'loses no heartbeat among 150 connections from as many addresses with %s',
    async (kind) => {
      const caller = await stage.ready(0);
      const [first, piece] = hostile()[kind]!;
      let isOver = false;
      const attack = (number: number): Promise<void> =>
        new Promise((resolve) => {
          const localAddress = `127.9.${number >> 7}.${1 + (number & 127)}`;
          const socket = connect({ port: Number(new URL(stage.baseUrl).port), host: '127.0.0.1', localAddress });
          const push = (): void => {
            if (piece === '') return;
            while (socket.writable && socket.write(piece));
          };
          sockets.push(socket.on('error', () => undefined).on('data', () => undefined));
          socket.on('drain', push).on('connect', () => {
            socket.write(first);
            push();
            resolve();
          });
          socket.on('close', () => void (isOver ? resolve() : setImmediate(() => void attack(number))));
        });
      await Promise.all(Array.from({ length: 150 }, (_, number) => attack(number)));
      try {
        for (let i = 0; i < 20; i++) expect((await caller.heartbeat()).status).toBe(200);
        const another = await stage.ready(1);
        expect((await another.heartbeat()).status).toBe(200);
      } finally {
        isOver = true;
      }
    },
  );

  it('refuses bodies that are too large before it checks their signature', async () => {
    const caller = await stage.ready(0);
    const problem = 'x'.repeat(MAX_CALLBACK_BYTES);
    await expectRefused(413, () => caller.signed(HEARTBEAT_PATH, JSON.stringify({ problem })));
    expect(stage.core.alarms).toEqual([]);
  });

  it.each([
    ['no JSON', '{"phase":'],
    ['nothing', ''],
    ['another shape', '{"phase":"crawling"}'],
    ['a field too many', null],
    ['nested deep', '['.repeat(1_000)],
  ])('refuses a signed body that is %s', async (_what, text) => {
    const caller = await stage.ready(0);
    const body = text ?? caller.heartbeatBody({ extra: 1 } as Partial<Heartbeat>);
    await expectRefused(400, async () => {
      const answer = await caller.signed(HEARTBEAT_PATH, body);
      expect(answer.body.error).toMatch(/^[^\n]{1,200}$/);
      return answer;
    });
    await expectRefused(400, () => caller.signed(COMPLETION_PATH, text ?? '{"extra":1}'));
  });

  it('refuses a hello with a valid MAC but a malformed body', async () => {
    const caller = await stage.launched(0);
    const envelope = caller.envelope(HELLO_PATH);
    for (const body of ['{"instanceId":', '{}', caller.helloBody({ clock: 'yesterday' })])
      await expectRefused(400, () => caller.post(envelope, body, macMessage(caller.options.token, envelope, body)));
  });

  it.each([HEADER.run, HEADER.slot, HEADER.epoch, HEADER.counter, HEADER.signature])(
    'refuses a heartbeat without %s',
    async (header) => {
      const caller = await stage.ready(0);
      const body = caller.heartbeatBody();
      const envelope = caller.envelope(HEARTBEAT_PATH, 5);
      const { [header]: _left, ...headers } = envelopeHeaders(
        envelope,
        signMessage(caller.keys.privateKey, envelope, body),
      );
      await expectRefused(400, () => caller.send(envelope, body, headers));
    },
  );

  it.each(['-1', '1.5', '0x1', '1e3', '9'.repeat(17), 'NaN', '9007199254740993'])(
    'refuses the counter %s',
    async (counter) => {
      const caller = await stage.ready(0);
      const headers = { ...envelopeHeaders(caller.envelope(HEARTBEAT_PATH, 5), 'x'), [HEADER.counter]: counter };
      await expectRefused(400, () => caller.send(caller.envelope(HEARTBEAT_PATH, 5), '{}', headers));
    },
  );

  it('has no other routes, reveals nothing about itself, and accepts only POST', async () => {
    const reply = await fetch(`${stage.baseUrl}/v1/instances/other`, { method: 'POST', body: '{}' });
    expect(reply.status).toBe(404);
    expect(await reply.json()).toEqual({ ok: false, error: 'no such route' });
    expect(reply.headers.get('x-powered-by')).toBeNull();
    expect((await fetch(stage.baseUrl + HELLO_PATH)).status).toBe(404);
  });

  it('answers only "try again" when the database fails', async () => {
    const caller = await stage.ready(0);
    stage.core.fleet = new Proxy(stage.core.fleet, {
      get: () => () => Promise.reject(new Error('secret of the database')),
    });
    const answer = await caller.heartbeat();
    expect(answer).toEqual({ status: 500, body: { ok: false, error: 'try again' }, authentic: false });
  });

  it('answers 503 before the loop has made its first observation, and accepts the next heartbeat', async () => {
    const caller = await stage.ready(0);
    const { run } = stage.core;
    stage.core.run = new Proxy(run, {
      get: (target, name) => (name === 'get' ? () => Promise.resolve(null) : Reflect.get(target, name, target)),
    });
    expect(await caller.heartbeat({ offered: ['1-1'] })).toMatchObject({ status: 503, authentic: false });
    stage.core.run = run;
    expect(await caller.orders({ offered: ['1-1'] })).toMatchObject({ grants: ['1-1'] });
  });
});
