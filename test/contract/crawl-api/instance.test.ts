/** The real bundle as a process, with everything around it stubbed over HTTP. */
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { describe, expect, it } from 'vitest';
import { manifestKey } from '../../../shared/domain/keys.ts';
import { MAX_OFFER_BYTES, offerPath } from '../../../shared/wire/instance-api.ts';
import { decodeManifest } from '../../../shared/wire/part.ts';
import { HEADER, createKeyPair, importPublicKey, sha256Hex } from '../../../shared/wire/signature.ts';
import { readProcess } from '../../support/processes.ts';
import { startStub, until } from './http-stub.ts';
import { type PageHandler, products, smallestGap, type Stage, useStages } from './stage.ts';

const { create, start, startReady } = useStages();

const completed = (stage: Stage): Promise<boolean> =>
  until('the completion callback', () => stage.main.completions.length > 0);
const html = { 'content-type': 'text/html' };
/** The products with a result, in the order of their numbers. */
const numbersOf = (stage: Stage): number[] =>
  stage
    .results()
    .map((r) => r.n)
    .sort((a, b) => a - b);

describe('the crawl settings in the bucket', () => {
  const page: PageHandler = (request, response) => {
    if (request.url === '/item/p2') response.writeHead(302, { location: '/private/p2' }).end();
    else response.writeHead(200, html).end('<h1>x</h1>');
  };

  it('are read once, hold for redirects, and outlive a restart when their URL does not', async () => {
    const stage = await startReady({ page, crawl: { deny: ['/private/'] } });
    const { requests } = stage.crawlSettings;
    await stage.crawlSettings.close();
    await stage.kill();
    stage.boot();
    await stage.ready();
    await stage.offer('1-1', products(1, 3));
    stage.main.orders.sealed = true;
    await completed(stage);
    expect(requests).toBe(1);
    expect(stage.visits.map((v) => v.path)).toEqual(['/item/p1', '/item/p2', '/item/p3']);
    expect(stage.results().map((r) => r.outcome)).toEqual(['stored', 'failed', 'stored']);
    expect(stage.results()[1]).toMatchObject({ reason: 'redirect' });
  });

  it('with another hash end the process before its hello', { tags: ['nightly'] }, async () => {
    const object = await startStub((_request, _body, response) => void response.end('something else'));
    try {
      const stage = await start({ settings: { crawlSettings: { url: object.url, sha256: '0'.repeat(64) } } });
      expect(await stage.exitCode()).toBe(1);
      expect(stage.console()).toContain('the crawl settings cannot be read: they have the wrong hash');
      expect([stage.main.hellos.length, object.requests]).toEqual([0, 5]);
    } finally {
      await object.close();
    }
  });

  it('are in the user data itself on a machine that an earlier version has launched', async () => {
    const stage = await startReady({ page, whole: true });
    await stage.offer('1-1', products(1, 1));
    stage.main.orders.sealed = true;
    await completed(stage);
    expect(stage.results().map((r) => r.outcome)).toEqual(['stored']);
    expect(stage.crawlSettings.requests).toBe(0);
  });
});

describe('a whole shard', () => {
  it('is crawled at the pace, uploaded in parts, closed by a signed manifest and reported', async () => {
    const stage = await startReady({ site: { intervalMs: 30 } });
    const { main, bucket, settings } = stage;
    for (const [chunk, first, last] of [
      ['1-1', 1, 20],
      ['2-1', 21, 40],
    ] as const) {
      const reply = await stage.offer(chunk, products(first, last));
      expect(reply.status).toBe(202);
      expect(reply.body).toEqual({
        chunk,
        run: 'run-1',
        slot: 2,
        epoch: 3,
        instanceId: 'i-0123456789abcdef0',
        held: last,
      });
      expect(reply.headers['x-crawlfleet-instance']).toBe('i-0123456789abcdef0');
    }
    main.orders.sealed = true;
    await completed(stage);

    const hello = main.hellos[0]!;
    expect(hello).toMatchObject({
      macOk: true,
      from: stage.address,
      body: { address: stage.address, bundleSha256: settings.bundle.sha256 },
    });
    expect(stage.visits.map((v) => v.path)).toEqual(products(1, 40).map((p) => `/item/${p.id}`));
    expect(new Set(stage.visits.map((v) => v.from))).toEqual(new Set([stage.address]));
    expect(stage.visits[0]!.userAgent).toBe('testbot/1.0');
    expect(smallestGap(stage.visits)).toBeGreaterThanOrEqual(30);

    const results = stage.results();
    expect(results.map((r) => r.n)).toEqual(products(1, 40).map((p) => p.n));
    expect(results[0]).toMatchObject({
      id: 'p1',
      outcome: 'stored',
      attempts: 1,
      rows: [{ key: null, row: { title: 'Item p1', price: 1234 } }],
    });
    expect(new Set(bucket.puts.map((p) => p.from))).toEqual(new Set([stage.address]));

    const key = manifestKey('run-1', 2, 3);
    const bytes = bucket.objects.get(key)!;
    expect(main.completions[0]).toEqual({ manifestKey: key, manifestSha256: sha256Hex(bytes) });
    const manifest = decodeManifest(bytes, importPublicKey(hello.body.publicKey));
    expect(manifest).toMatchObject({
      closedBy: 'instance',
      progress: { assigned: 40, pending: 0, stored: 40, requests: 40 },
    });
    expect(manifest.progress.minGapMs).toBeGreaterThanOrEqual(30);
    expect(manifest.parts.length).toBeGreaterThan(1);
    expect(manifest.parts.map((p) => p.seq)).toEqual(manifest.parts.map((_, i) => i));
    for (const part of manifest.parts) expect(sha256Hex(bucket.objects.get(part.key)!)).toBe(part.sha256);

    await until('heartbeats of phase done', () => main.heartbeats.at(-1)!.phase === 'done');
    expect(main.heartbeats.every((h) => h.signed)).toBe(true);
    const counters = main.heartbeats.map((h) => h.counter);
    expect(counters.slice(1).every((c, i) => c > counters[i]!)).toBe(true);
    expect([...new Set(main.heartbeats.map((h) => h.phase))]).toEqual(['ready', 'crawling', 'uploading', 'done']);
    expect(main.heartbeats.at(-1)!.parts).toEqual([]);
    // 120 MB is the limit of the contract; measured 95 to 108.
    expect(readProcess(stage.pid()).peakRssBytes / 1_024 ** 2).toBeLessThan(120);
    expect(stage.console()).not.toContain(settings.token);
  });

  it('retries failures at the end, and reports the outcome of each product', async () => {
    const tries = new Map<string, number>();
    const page: PageHandler = (request, response) => {
      const id = request.url!.split('/').at(-1)!;
      tries.set(id, (tries.get(id) ?? 0) + 1);
      if (id === 'p2') return void response.writeHead(404, html).end();
      if (id === 'p3') return void response.writeHead(500, html).end();
      if (request.url === '/item/p4') return void response.writeHead(302, { location: '/elsewhere/p4' }).end();
      if (id === 'p5' && tries.get(id) === 1)
        return void response.writeHead(200, html).write('<h1>', () => request.socket.destroy());
      if (id === 'p6') return void response.writeHead(200, html).end('<h2>no title</h2>');
      if (id === 'p7') return;
      response.writeHead(200, html).end(`<h1>${id}</h1>`);
    };
    const stage = await startReady({ page, site: { timeoutMs: 1_500 } });
    await stage.offer('1-1', products(1, 8));
    stage.main.orders.sealed = true;
    await completed(stage);
    const line = (r: ReturnType<Stage['results']>[number]) => [
      r.id,
      r.outcome,
      r.outcome === 'failed' ? r.reason : '',
      r.attempts,
    ];
    expect(
      stage
        .results()
        .sort((a, b) => a.n - b.n)
        .map(line),
    ).toEqual([
      ['p1', 'stored', '', 1],
      ['p2', 'gone', '', 1],
      ['p3', 'failed', 'http-status', 2],
      ['p4', 'stored', '', 1],
      ['p5', 'stored', '', 2],
      ['p6', 'failed', 'parse', 2],
      ['p7', 'failed', 'timeout', 2],
      ['p8', 'stored', '', 1],
    ]);
    expect(stage.results().find((r) => r.id === 'p6')).toMatchObject({
      detail: 'the required field title has no value',
    });
    const first = products(1, 8).map((p) => `/item/${p.id}`);
    expect(stage.visits.slice(0, 9).map((v) => v.path)).toEqual(first.toSpliced(4, 0, '/elsewhere/p4'));
  });

  it(
    'closes the epoch with the results so far at the deadline; the rest gets no result',
    { tags: ['nightly'] },
    async () => {
      const stage = await startReady({ site: { intervalMs: 100 } });
      // Counted from here: the time that a busy machine takes to boot the process must not count.
      const deadline = new Date(Date.now() + 8_000).toISOString();
      stage.main.orders.deadline = deadline;
      await until('the deadline to be known', async () =>
        (await stage.local('GET', '/v1/runs/run-1')).text.includes(deadline),
      );
      expect((await stage.offer('1-1', products(1, 30))).status).toBe(202);
      expect(await stage.offer('2-1', products(31, 130))).toMatchObject({ status: 409, body: { refused: 'deadline' } });
      stage.main.orders.intervalMs = 1_000;
      await completed(stage);
      const results = stage.results();
      expect(results.length).toBeGreaterThan(2);
      expect(results.length).toBeLessThan(30);
      expect(results.every((r) => r.outcome === 'stored')).toBe(true);
      expect(await stage.offer('3-1', products(131, 132))).toMatchObject({
        status: 409,
        body: { refused: 'draining', room: 0 },
      });
    },
  );

  it('sends odd IDs percent-encoded and reports them unchanged', { tags: ['nightly'] }, async () => {
    const ids = ['a b', 'a/b', `q"u'o`, '日本語', '..', '%41', 'x'.repeat(500), 'a?b#c&d'];
    const stage = await startReady({
      page: (_request, response) => void response.writeHead(200, html).end('<h1>x</h1>'),
    });
    await stage.offer(
      '1-1',
      ids.map((id, i) => ({ n: i + 1, id })),
    );
    stage.main.orders.sealed = true;
    await completed(stage);
    expect(stage.results().map((r) => r.id)).toEqual(ids);
    expect(stage.visits.map((v) => decodeURIComponent(v.path.slice('/item/'.length)))).toEqual(ids);
  });
});

describe('a killed process', () => {
  it('continues where it was: nothing lost, at most one product fetched twice, the pace kept', async () => {
    const stage = await startReady({ site: { intervalMs: 60 } });
    await stage.offer('1-1', products(1, 60));
    await until('some pages and a part', () => stage.visits.length >= 12 && stage.bucket.objects.size > 0);
    for (const moment of [25, 40]) {
      await stage.kill();
      stage.boot();
      await until(`${moment} pages`, () => stage.visits.length >= moment);
    }
    stage.main.orders.sealed = true;
    await completed(stage);
    expect(numbersOf(stage)).toEqual(products(1, 60).map((p) => p.n));
    expect(stage.visits.length).toBeLessThanOrEqual(60 + 2);
    expect(smallestGap(stage.visits)).toBeGreaterThanOrEqual(60);
    // It remembers that it was accepted: the enrolment token would be invalid by now.
    expect(stage.main.hellos).toHaveLength(1);
    const counters = stage.main.heartbeats.map((h) => h.counter);
    expect(counters.slice(1).every((c, i) => c > counters[i]!)).toBe(true);
  });

  it('keeps the pace even if it is killed right after a request', { tags: ['nightly'] }, async () => {
    const stage = await startReady({ site: { intervalMs: 1_500 } });
    await stage.offer('1-1', products(1, 5));
    await until('the first page', () => stage.visits.length === 1);
    await stage.kill();
    stage.boot();
    await until('the next page', () => stage.visits.length === 2);
    expect(smallestGap(stage.visits)).toBeGreaterThanOrEqual(1_500);
  });

  it('writes no product twice when the reply to its upload was lost', async () => {
    const stage = await start({ site: { intervalMs: 20 }, settings: { partMs: 100 } });
    stage.bucket.swallowReplies = true;
    await stage.ready();
    await stage.offer('1-1', products(1, 10));
    await until('the upload', () => stage.bucket.objects.size === 1);
    await stage.kill();
    stage.bucket.swallowReplies = false;
    stage.main.orders.sealed = true;
    stage.boot();
    await completed(stage);
    const [first] = stage.bucket.puts;
    expect(stage.bucket.puts.filter((p) => p.key === first!.key).map((p) => p.created)).toEqual([true, false]);
    expect(numbersOf(stage)).toEqual(products(1, 10).map((p) => p.n));
  });

  it('still holds the offers it has acknowledged', async () => {
    const stage = await start();
    stage.main.orders.grants = [];
    await stage.ready();
    expect((await stage.offer('1-1', products(1, 3))).status).toBe(202);
    await stage.kill();
    stage.boot();
    const { length } = stage.main.heartbeats;
    await until('a heartbeat', () => stage.main.heartbeats.length > length);
    expect(stage.main.heartbeats.at(-1)!.offered).toEqual(['1-1']);
    expect(stage.visits).toEqual([]);
  });
});

/** The headers of an offer from a client that knows the run but has no key. */
function beginOffer(stage: Stage, run: string, announced: number): Socket {
  const socket = connect(stage.settings.apiPort, stage.address).on('error', () => undefined);
  const headers = { [HEADER.run]: run, [HEADER.signature]: 'A'.repeat(86), 'content-length': announced };
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  socket.write(`POST ${offerPath(run)} HTTP/1.1\r\nhost: x\r\n${lines.join('')}\r\n`);
  return socket;
}

describe('offers', () => {
  it('are refused with the reason', async () => {
    const stage = await startReady();
    const good = products(1, 3);
    for (const stranger of [{ sign: false }, { run: 'run-2' }]) {
      const reply = await stage.offer('1-1', good, stranger);
      expect(reply.status).toBe(401);
      expect(reply.headers).not.toHaveProperty('x-crawlfleet-instance');
    }
    expect((await stage.offer('1-1', good, { body: '{"chunk":' })).status).toBe(400);
    expect((await stage.offer('1-1', good, { body: '{"chunk":"1-1"}' })).body.error).toContain('malformed');
    expect(
      (await stage.offer('1-1', good, { body: JSON.stringify({ chunk: 'x', share: 1, products: good }) })).status,
    ).toBe(400);
    const tooLarge = beginOffer(stage, 'run-1', MAX_OFFER_BYTES + 1);
    expect(String(await once(tooLarge, 'data'))).toMatch(/^HTTP\/1.1 413 /);
    tooLarge.destroy();
    expect(await stage.offer('1-1', good, { share: 2 })).toMatchObject({
      status: 409,
      body: { refused: 'share', room: 2 },
    });
    expect(stage.main.heartbeats.flatMap((h) => h.offered)).toEqual([]);
    expect((await stage.offer('1-1', good)).status).toBe(202);
    expect((await stage.offer('1-1', good, { share: 3 })).body.held).toBe(3);
  });

  it('from unauthenticated clients fill no memory, whether they know the run or not; those of the run are accepted', async () => {
    const stage = await startReady();
    const almost = Buffer.alloc(MAX_OFFER_BYTES - 1, 'x');
    const sockets = Array.from({ length: 240 }, (_, i) => {
      const socket = beginOffer(stage, i % 4 === 0 ? 'run-2' : 'run-1', MAX_OFFER_BYTES);
      socket.write(almost);
      return socket;
    });
    try {
      // Each of them has sent what it can, or was rejected.
      await until('the storm', () => sockets.every((s) => s.destroyed || s.bytesWritten > 0));
      for (let i = 1; i <= 5; i++) expect((await stage.offer(`${i}-1`, products(i, i))).status).toBe(202);
      expect(readProcess(stage.pid()).peakRssBytes).toBeLessThan(200e6);
    } finally {
      for (const socket of sockets) socket.destroy();
    }
  });

  it('are reported to the main server at once, and crawled only when granted', async () => {
    const stage = await start({ settings: { heartbeatMs: 5_000 } });
    stage.main.orders.grants = [];
    await stage.ready();
    await until('the first heartbeat', () => stage.main.heartbeats.length > 0);
    const before = performance.now();
    await stage.offer('7-2', products(1, 3));
    await until('the heartbeat that asks for it', () => stage.main.heartbeats.some((h) => h.offered.includes('7-2')));
    expect(performance.now() - before).toBeLessThan(4_000);
    expect(stage.visits).toEqual([]);
    stage.main.orders.drops = ['7-2'];
    await stage.offer('8-1', products(4, 5));
    await until('the drop to be carried out', () => stage.main.heartbeats.at(-1)!.offered.join() === '8-1');
    delete stage.main.orders.grants;
    stage.main.orders.drops = [];
    await stage.offer('9-1', products(6, 6));
    await until('the granted pages', () => stage.visits.length === 3);
    expect(stage.visits.map((v) => v.path)).toEqual(['/item/p4', '/item/p5', '/item/p6']);
  });

  it('get 503 before the hello is accepted', async () => {
    const stage = await create();
    stage.main.helloStatus = 503;
    stage.boot();
    await until('two hellos', () => stage.main.hellos.length >= 2);
    expect((await stage.offer('1-1', products(1, 2))).status).toBe(503);
    stage.main.helloStatus = 200;
    await stage.ready();
    expect((await stage.offer('1-1', products(1, 2))).status).toBe(202);
  });
});

describe('an instance that is not needed', () => {
  it('ends with code 0 when its hello is refused', async () => {
    const stage = await create();
    stage.main.helloStatus = 403;
    stage.boot();
    expect(await stage.exitCode()).toBe(0);
    expect(stage.main.hellos).toHaveLength(1);
    expect(stage.console()).toContain('refuses this instance');
  });

  it('ends with code 0 when it is fenced, in the middle of its work, and writes nothing more', async () => {
    const stage = await startReady({ settings: { partMs: 60_000 } });
    await stage.offer('1-1', products(1, 500));
    await until('some pages', () => stage.visits.length > 5);
    stage.main.orders.fenced = true;
    expect(await stage.exitCode()).toBe(0);
    expect(stage.bucket.objects.size).toBe(0);
  });

  it('ends with code 0 at its own time, whatever the main server orders', async () => {
    const stage = await start({ settings: { powerOffAt: new Date(Date.now() + 1_500).toISOString() } });
    expect(await stage.exitCode()).toBe(0);
    expect(stage.console()).toContain('power-off-time');
  });

  it('follows no orders that the run did not sign', async () => {
    const stage = await create();
    stage.main.replyKey = createKeyPair().privateKey;
    stage.main.orders.fenced = true;
    stage.boot();
    await stage.ready();
    await stage.offer('1-1', products(1, 2));
    await until('some heartbeats', () => stage.main.heartbeats.length > 5);
    expect(stage.visits).toEqual([]);
    expect(stage.console()).toContain('not signed by the run');
  });
});

describe('faults around it', () => {
  it('continues to crawl while S3 refuses, and reports that in its heartbeats', { tags: ['nightly'] }, async () => {
    const stage = await start({ settings: { partMs: 100 } });
    stage.bucket.refuse = true;
    await stage.ready();
    await stage.offer('1-1', products(1, 30));
    stage.main.orders.sealed = true;
    await until('all pages', () => stage.visits.length === 30);
    await until('the problem', () => stage.main.heartbeats.at(-1)!.problem?.includes('S3'));
    stage.bucket.refuse = false;
    await completed(stage);
    expect(stage.results()).toHaveLength(30);
    await until('no problem', () => stage.main.heartbeats.at(-1)!.problem === null);
  });

  it('repeats the completion until the main server confirms it', async () => {
    const stage = await start();
    stage.main.completionStatus = 503;
    await stage.ready();
    stage.main.orders.sealed = true;
    await until('the manifest', () => stage.bucket.objects.has(manifestKey('run-1', 2, 3)));
    await until('a refused completion', () => stage.console().includes('completion not confirmed yet'));
    stage.main.completionStatus = 200;
    await completed(stage);
    expect(stage.bucket.puts.filter((p) => p.key.endsWith('manifest.json'))).toHaveLength(1);
  });
});

describe('the local listener', () => {
  it('shows the run, its products page by page, and metrics', async () => {
    const stage = await startReady({
      page: (request, response) =>
        void response.writeHead(request.url!.endsWith('2') ? 404 : 200, html).end('<h1>x</h1>'),
    });
    await stage.offer('1-1', products(1, 5));
    await until(
      'all pages',
      async () =>
        (
          JSON.parse((await stage.local('GET', '/v1/runs/run-1')).text) as {
            progress: { pending: number; assigned: number };
          }
        ).progress.pending === 0 && stage.visits.length === 5,
    );
    const status = JSON.parse((await stage.local('GET', '/v1/runs/run-1')).text) as object;
    expect(status).toMatchObject({
      run: 'run-1',
      slot: 2,
      epoch: 3,
      phase: 'crawling',
      held: 5,
      sealed: false,
      progress: { stored: 4, gone: 1 },
      incident: null,
    });
    const get = async (query: string): Promise<unknown> =>
      JSON.parse((await stage.local('GET', `/v1/runs/run-1/products${query}`)).text);
    expect(await get('?state=gone')).toEqual({ products: [{ n: 2, id: 'p2', state: 'gone' }], next: null });
    expect(await get('?state=stored&limit=2')).toMatchObject({ products: [{ n: 1 }, { n: 3 }], next: 3 });
    expect(await get('?state=stored&limit=2&after=3')).toMatchObject({ products: [{ n: 4 }, { n: 5 }], next: null });
    expect((await stage.local('GET', '/v1/runs/run-1/products?state=eaten')).status).toBe(400);
    expect((await stage.local('GET', '/v1/runs/run-9')).status).toBe(404);
    const metrics = (await stage.local('GET', '/metrics')).text;
    expect(metrics).toContain('crawlfleet_products_total{outcome="stored"} 4');
    expect(metrics).toContain('crawlfleet_requests_total 5');
  });

  it('drains on request', async () => {
    const stage = await startReady();
    await stage.offer('1-1', products(1, 500));
    await until('some pages', () => stage.visits.length > 3);
    expect((await stage.local('POST', '/v1/runs/run-1/drain')).status).toBe(202);
    await completed(stage);
    expect(stage.results().length).toBeLessThan(100);
  });

  it('is not for pages: an Origin or a foreign Host is refused', async () => {
    const stage = await startReady();
    expect((await stage.local('POST', '/v1/runs/run-1/drain', { origin: 'http://shop.example' })).status).toBe(403);
    expect((await stage.local('GET', '/v1/runs/run-1', { host: 'rebound.example' })).status).toBe(403);
  });
});

describe('a start that cannot work', () => {
  it('ends with code 0 and reports why when the user data is not usable', async () => {
    const stage = await create();
    (stage.settings as { slot: number }).slot = -1;
    stage.boot();
    expect(await stage.exitCode()).toBe(0);
    expect(stage.console()).toContain('the user data is invalid');
  });
});
