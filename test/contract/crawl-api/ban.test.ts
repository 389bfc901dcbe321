/** Bans, robots.txt and poison with the real bundle as a process: fault rows F25, F28, F29 and F30. */
import { describe, expect, it } from 'vitest';
import { until } from './http-stub.ts';
import { type PageHandler, products, smallestGap, type Stage, useStages } from './stage.ts';

const { startReady: start } = useStages();

const html = { 'content-type': 'text/html' };
const COOL_DOWN_MS = 60_000;
const ban = (coolDownMs = COOL_DOWN_MS) => ({ statuses: [], redirects: [], patterns: [], coolDownMs });

/** Serves this many requests, then bans by `refuse`; `lift` ends the ban. */
function banning(served: number, refuse: PageHandler): { page: PageHandler; lift: () => void } {
  let left = served;
  return {
    page: (request, response) => {
      if (left-- > 0) return void response.writeHead(200, html).end(`<h1>${request.url}</h1>`);
      refuse(request, response);
    },
    lift: () => (left = Infinity),
  };
}

const forbid: PageHandler = (_request, response) => void response.writeHead(403, html).end('<h1>Forbidden</h1>');
const sendAway: PageHandler = (_request, response) => void response.writeHead(302, { location: '/verify' }).end();
const shell: PageHandler = (_request, response) =>
  void response.writeHead(200, html).end('<script>location.href="/check"</script>');

const challenge: PageHandler = (_request, response) =>
  void response.writeHead(200, { ...html, 'cf-mitigated': 'challenge' }).end('<h1>Just a moment</h1>');

const incident = (stage: Stage) => stage.main.heartbeats.at(-1)?.incident ?? null;

describe('F28: a banned instance', () => {
  const expectBan = async (refuse: PageHandler, requests: number, rule: string): Promise<void> => {
    const stage = await start({ page: banning(5, refuse).page, site: { ban: ban() } });
    await stage.offer('1-1', products(1, 40));
    await until('the ban in a heartbeat', () => incident(stage)?.verdict === 'banned');
    const heartbeat = stage.main.heartbeats.at(-1)!;
    expect(heartbeat).toMatchObject({
      phase: 'banned',
      incident: { evidence: { rule }, leftMs: expect.any(Number) },
      progress: { stored: 5, gone: 0, failed: 0, pending: 35, requests },
    });
    expect(await stage.health()).toMatchObject({ status: 503, body: { status: 'banned' } });
    expect(await stage.offer('2-1', products(50, 51))).toMatchObject({ status: 409, body: { refused: 'banned' } });
    await stage.kill();
    stage.boot();
    const { length } = stage.main.heartbeats;
    await until('heartbeats of the next process', () => stage.main.heartbeats.length > length + 3);
    expect(incident(stage)?.verdict).toBe('banned');
    expect(stage.visits).toHaveLength(requests);
  };

  it('by 403 stops at once, reports it with evidence, and keeps its queue', () => expectBan(forbid, 7, 'status-403'));

  it.each<[string, PageHandler, number, string]>([
    ['a 302 to a page that checks', sendAway, 7, 'redirect-check'],
    ['a 200 with one line of script', shell, 7, 'script-shell'],
    ['a header that only a challenge has', challenge, 6, 'challenge-cloudflare'],
  ])('does the same by %s', { tags: ['nightly'] }, (_what, refuse, requests, rule) =>
    expectBan(refuse, requests, rule),
  );

  it('returns what it has not crawled, and crawls new chunks after its cool-down', async () => {
    const site = banning(4, shell);
    const stage = await start({ page: site.page, site: { ban: ban(2_500) }, settings: { partMs: 60_000 } });
    await stage.offer('1-1', products(1, 10));
    await until('the ban', () => incident(stage) !== null);
    stage.main.orders.returnProducts = true;
    await until('the release', () => stage.main.heartbeats.at(-1)!.progress.pending === 0);
    expect(stage.results().map((r) => r.id)).toEqual(['p1', 'p2', 'p3', 'p4']);
    const { length } = stage.main.heartbeats;
    site.lift();
    stage.main.orders.returnProducts = false;
    await until('the end of the ban', () => incident(stage) === null);
    // While the order is in force, it causes no flood of heartbeats.
    expect(stage.main.heartbeats.length - length).toBeLessThan(30);
    expect(await stage.health()).toMatchObject({ status: 200 });
    expect((await stage.offer('1-2', products(5, 10))).status).toBe(202);
    stage.main.orders.sealed = true;
    await until('the completion', () => stage.main.completions.length > 0);
    expect(stage.results().map((r) => [r.id, r.outcome])).toEqual(products(1, 10).map((p) => [p.id, 'stored']));
    expect(smallestGap(stage.visits)).toBeGreaterThanOrEqual(20);
  });

  it('uploads its results and closes its epoch when the run drains', async () => {
    const stage = await start({ page: banning(3, shell).page, site: { ban: ban() } });
    await stage.offer('1-1', products(1, 10));
    await until('the ban', () => incident(stage) !== null);
    stage.main.orders.drain = true;
    await until('the completion', () => stage.main.completions.length > 0);
    expect(stage.results().map((r) => r.id)).toEqual(['p1', 'p2', 'p3']);
    await until('the phase done', () => stage.main.heartbeats.at(-1)!.phase === 'done');
    expect(stage.main.heartbeats.map((h) => h.phase)).toContain('banned');
  });

  it('only suspects when canary pages are odd, too, and follows the decision of the main server', async () => {
    const blank: PageHandler = (_request, response) => void response.writeHead(200, html).end('<h2>Renewed</h2>');
    const stage = await start({ page: banning(3, blank).page, site: { ban: ban() } });
    await stage.offer('1-1', products(1, 20));
    await until('the suspicion', () => incident(stage)?.verdict === 'suspect');
    expect(stage.main.heartbeats.at(-1)).toMatchObject({
      phase: 'banned',
      incident: { leftMs: null, evidence: { rule: 'field-missing' } },
      progress: { stored: 3, failed: 0, canaries: 1 },
    });
    stage.main.orders.verdict = 'banned';
    await until('the ban', () => incident(stage)?.verdict === 'banned');
    expect(stage.visits).toHaveLength(7);
  });
});

describe('F29: Retry-After', () => {
  it('is respected', async () => {
    let asked = false;
    const page: PageHandler = (request, response) => {
      if (!asked && request.url!.endsWith('p3')) {
        asked = true;
        return void response.writeHead(429, { ...html, 'retry-after': '1' }).end();
      }
      response.writeHead(200, html).end('<h1>x</h1>');
    };
    const stage = await start({ page });
    await stage.offer('1-1', products(1, 5));
    stage.main.orders.sealed = true;
    await until('the completion', () => stage.main.completions.length > 0);
    expect(stage.results().every((r) => r.outcome === 'stored')).toBe(true);
    const at = stage.visits.findIndex((v) => v.path.endsWith('p3'));
    expect(stage.visits[at + 1]!.path).toBe('/item/p3');
    expect(stage.visits[at + 1]!.at - stage.visits[at]!.at).toBeGreaterThanOrEqual(1_000);
  });
});

describe('F30: robots.txt', () => {
  it('comes with the orders: nothing is requested before it, nor anything that it disallows', async () => {
    const stage = await start({ site: { robots: 'respect' } });
    await stage.offer('1-1', products(1, 4));
    await until('the grant', () => stage.main.heartbeats.at(-1)!.progress.assigned === 4);
    const { length } = stage.main.heartbeats;
    await until('some heartbeats', () => stage.main.heartbeats.length > length + 2);
    expect(stage.visits).toEqual([]);
    stage.main.orders.robots = {
      version: 'v7',
      access: 'rules',
      rules: [{ allow: false, pattern: '/item/p3$' }],
      crawlDelayMs: null,
      source: 'a test',
    };
    stage.main.orders.sealed = true;
    await until('the completion', () => stage.main.completions.length > 0);
    expect(stage.main.heartbeats.at(-1)!.robots).toBe('v7');
    expect(stage.visits.map((v) => v.path)).toEqual(['/item/p1', '/item/p2', '/item/p4']);
    expect(stage.results().find((r) => r.id === 'p3')).toMatchObject({ outcome: 'failed', reason: 'robots' });
  });
});

describe('F25: a product during which the process dies twice', () => {
  it('is given up, and the other products are crawled', async () => {
    const page: PageHandler = (request, response) => {
      if (request.url!.endsWith('p2')) return;
      response.writeHead(200, html).end('<h1>x</h1>');
    };
    const stage = await start({ page, site: { timeoutMs: 60_000 } });
    await stage.offer('1-1', products(1, 4));
    const tries = (): number => stage.visits.filter((v) => v.path.endsWith('p2')).length;
    for (const deaths of [1, 2]) {
      await until(`try ${deaths}`, () => tries() === deaths);
      await stage.kill();
      stage.boot();
    }
    stage.main.orders.sealed = true;
    await until('the completion', () => stage.main.completions.length > 0);
    const outcomes = stage.results().toSorted((a, b) => a.n - b.n);
    expect(outcomes.map((r) => (r.outcome === 'failed' ? r.reason : r.outcome))).toEqual([
      'stored',
      'poison',
      'stored',
      'stored',
    ]);
    expect(tries()).toBe(2);
  });
});
