/**
 * How the crawl reacts when a site refuses its address: fault rows F28 and F29, and the ban in ancestor B's first
 * crawl.
 */
import { describe, expect, it } from 'vitest';
import type { PageResult, Reply } from '../../../crawl-api/fetch/page-result.ts';
import { readShape } from '../../../crawl-api/fetch/shape-reader.ts';
import {
  broken,
  crawl,
  createScene,
  fine,
  gaps,
  notFound,
  odd,
  outcomes,
  refused,
  results,
  shell,
  type Site,
  toElsewhere,
  urls,
} from './crawl-scene.ts';
import { START_MS, createQueue, give, orders, products, robots, createGranted, refusal } from './fakes.ts';

const canary = { id: 'c1', fields: { t: 'x' } };

/** Serves `count` requests, then answers everything with `ban`. */
const banAfter = (count: number, ban: PageResult): Site => {
  let served = 0;
  return (path) => (served++ < count ? fine(path) : ban);
};

async function world(last = 10, sealed = true) {
  const w = await createGranted(last, { sealed });
  return w;
}

const withReply = (page: PageResult, changes: Partial<Reply>): PageResult => ({
  ...page,
  reply: { ...(page as { reply: Reply }).reply, ...changes },
});
const challengeUnder404 = withReply(notFound, {
  body: '<script>_cf_chl_opt={}</script>',
  shape: () => readShape('<script>_cf_chl_opt={}</script>'),
});
const challengeByHeader = withReply(fine('/p'), { headers: { 'cf-mitigated': 'challenge' } });

describe('F28: a ban', () => {
  it.each<[string, PageResult]>([
    ['403', refused(403)],
    ['a 302 to a verification page', toElsewhere('/verify?x=1')],
    ['a 302 to the front page', toElsewhere('/')],
    ['a 302 to another site', toElsewhere('http://validate.example.net/')],
    ['a 503 without Retry-After', refused(503)],
    ['a 200 with a single line of script', shell],
    ['a captcha', odd('<div class="g-recaptcha"></div>')],
    ['a challenge under 404', challengeUnder404],
  ])('by %s is confirmed by one request for a canary page, and no other request is sent', async (_what, ban) => {
    const scene = await crawl(10, banAfter(4, ban));
    expect(urls(scene)).toEqual(['p1', 'p2', 'p3', 'p4', 'p5', 'p4']);
    expect(scene.incidents.describe()).toMatchObject({
      verdict: 'banned',
      leftMs: 1_800_000 - (scene.clock.now() - scene.queue.state.incident!.sinceMs),
    });
    expect(scene.queue.progress(null)).toMatchObject({
      stored: 4,
      gone: 0,
      failed: 0,
      pending: 6,
      requests: 6,
      canaries: 1,
    });
    expect(Math.min(...gaps(scene.starts))).toBeGreaterThanOrEqual(1_010);
  });

  it.each<[string, PageResult]>([
    ['429 without Retry-After', refused(429)],
    ['a challenge header', challengeByHeader],
  ])('by %s is certain: no canary page is fetched', async (_what, ban) => {
    const scene = await crawl(10, banAfter(4, ban), { canaries: [canary] });
    expect(urls(scene)).toEqual(['p1', 'p2', 'p3', 'p4', 'p5']);
    expect(scene.queue.state.incident).toMatchObject({ verdict: 'banned', evidence: { url: expect.any(String) } });
    expect(scene.queue.progress(null)).toMatchObject({ stored: 4, gone: 0, failed: 0, pending: 6 });
  });

  it('before any right page is detected at the second refusal', async () => {
    const scene = await crawl(10, banAfter(0, refused(403)));
    expect(urls(scene)).toEqual(['p1', 'p2']);
    expect(scene.queue.progress(null)).toMatchObject({ failed: 0, pending: 10 });
    expect(scene.queue.state.items.count('held')).toBe(0);
  });

  it('leaves unproven gone products pending', async () => {
    let served = 0;
    const site: Site = (path) => (++served <= 2 ? fine(path) : served <= 5 ? notFound : refused(403));
    const scene = await crawl(10, site);
    expect(scene.queue.progress(null)).toMatchObject({ stored: 2, gone: 0, failed: 0, pending: 8 });
    expect(scene.queue.state.items.count('pending')).toBe(8);
  });

  it('ends after its cool-down, and the crawl continues at its pace', async () => {
    let served = 0;
    const scene = await crawl(6, (path) => (++served > 3 && served <= 5 ? refused(403) : fine(path)), {
      ms: 500_000,
      coolDownMs: 600_000,
    });
    expect(scene.starts).toHaveLength(5);
    await scene.run(110_000);
    expect(scene.incidents.describe()).toBeNull();
    await scene.run(10_000);
    expect(scene.end()).toBe('finished');
    expect(scene.queue.progress(null)).toMatchObject({ stored: 6, pending: 0, failed: 0 });
    expect(scene.starts[5]!.at - scene.starts[4]!.at).toBeGreaterThanOrEqual(600_000);
  });

  it('survives a restart: the next process sends no request before the cool-down is over', async () => {
    const w = await world();
    const first = await createScene(w, banAfter(2, shell));
    await first.run(20_000);
    first.stop.abort();
    await first.run(0);
    const again = createQueue({ journal: w.journal, clock: w.clock });
    const second = await createScene(again);
    await second.run(1_700_000);
    expect(second.starts).toEqual([]);
    expect(await again.queue.offer({ chunk: '9-1', share: 99, products: products(90, 91) })).toEqual(refusal('sealed'));
    await second.run(200_000);
    expect(second.starts.length).toBeGreaterThan(0);
  });

  it('refuses offers while it lasts', async () => {
    let served = 0;
    const scene = await crawl(10, (path) => (++served === 2 ? refused(429) : fine(path)), {
      ms: 10_000,
      sealed: false,
    });
    const offer = { chunk: '9-1', share: 99, products: products(90, 91) };
    expect(await scene.queue.offer(offer)).toEqual(refusal('banned'));
    await scene.run(1_900_000);
    expect(await scene.queue.offer(offer)).toMatchObject({ taken: true });
  });

  it('ends with the drain of the run; uncrawled products get no outcome', async () => {
    const scene = await crawl(10, banAfter(2, shell));
    await scene.follow({ drain: true });
    await scene.run(10);
    expect(scene.end()).toBe('drained');
    scene.queue.stopCrawling();
    expect(outcomes(scene.journal)).toEqual(['p1 stored', 'p2 stored']);
  });
});

describe('an ordinary page that looks like a ban', () => {
  /** A discontinued product that redirects elsewhere, as shops do. */
  const oddOne =
    (id: string): Site =>
    (path) =>
      path.endsWith(`/${id}`) ? shell : fine(path);

  it('fails alone and is requested once, where a canary is right', async () => {
    const scene = await crawl(6, oddOne('p3'), { canaries: [canary] });
    expect(urls(scene)).toEqual(['p1', 'p2', 'p3', 'c1', 'p4', 'p5', 'p6']);
    expect(outcomes(scene.journal).filter((outcome) => !outcome.endsWith('stored'))).toEqual(['p3 parse']);
    expect(results(scene.journal).find(({ id }) => id === 'p3')).toMatchObject({
      reason: 'parse',
      detail: expect.stringMatching(/^an odd page \(script-shell\).*site\.ban\.patterns/) as string,
      evidence: { rule: 'script-shell' },
    });
    expect(scene.end()).toBe('finished');
    expect(scene.queue.state.incident).toBeNull();
  });

  it('fails alone where the last stored product is right', async () => {
    const scene = await crawl(4, oddOne('p2'));
    expect(urls(scene)).toEqual(['p1', 'p2', 'p1', 'p3', 'p4']);
    expect(scene.queue.progress(null)).toMatchObject({ stored: 3, failed: 1, pending: 0 });
  });

  it('is checked with a page stored by another instance before this instance has stored one', async () => {
    const w = await world(3);
    const scene = await createScene(w, oddOne('p1'));
    await scene.follow({ canaryPage: 'f9' });
    await scene.run(60_000);
    expect(urls(scene)).toEqual(['p1', 'f9', 'p2', 'p3']);
    expect(w.queue.progress(null)).toMatchObject({ stored: 2, failed: 1, canaries: 1 });
  });

  it('is a ban where the page stored by another instance is refused too', async () => {
    const w = await world(3);
    const scene = await createScene(w, () => shell);
    await scene.follow({ canaryPage: 'f9' });
    await scene.run(60_000);
    expect(urls(scene)).toEqual(['p1', 'f9']);
    expect(w.queue.state.incident).toMatchObject({ verdict: 'banned', evidence: { rule: 'script-shell' } });
  });

  it('is no ban on its own without a canary page, however often it occurs', async () => {
    const scene = await crawl(1, oddOne('p1'));
    expect(scene.queue.state.incident).toBeNull();
    expect(outcomes(scene.journal)).toEqual(['p1 parse']);
  });
});

describe('the release of a banned instance', () => {
  it('drops uncrawled products once the rest is in the bucket, and accepts the same products again', async () => {
    let served = 0;
    const scene = await crawl(6, (path) => (++served === 4 ? refused(429) : fine(path)), {
      ms: 10_000,
      sealed: false,
      coolDownMs: 60_000,
    });
    expect(scene.queue.release()).toBe('uploading');
    const cut = (await scene.queue.cut(1_000))!;
    expect(scene.queue.release()).toBe('uploading');
    scene.queue.note({
      t: 'part',
      part: { seq: cut.seq, key: 'k', sha256: '0'.repeat(64), sizeBytes: 1, products: 3 },
    });
    expect(scene.queue.release()).toBe('released');
    expect(scene.queue.release()).toBe('nothing-left');
    expect(scene.queue.progress(null)).toMatchObject({ assigned: 3, pending: 0, stored: 3 });
    expect(scene.queue.state.held).toBe(3);
    expect(createQueue({ journal: scene.journal }).queue.progress(null)).toMatchObject({ assigned: 3, pending: 0 });

    await scene.run(60_000);
    await scene.queue.offer({ chunk: '1-2', share: 100, products: products(3, 6) });
    await scene.follow({ grants: ['1-2'], sealed: true });
    await scene.run(10_000);
    expect(scene.end()).toBe('finished');
    expect(scene.queue.progress(null)).toMatchObject({ assigned: 6, pending: 0, stored: 6, failed: 0 });
    expect(urls(scene)).toEqual(['p1', 'p2', 'p3', 'p4', 'p4', 'p5', 'p6']);
  });

  it('accepts the same chunk again', async () => {
    const w = await world(3, false);
    w.queue.release();
    await give(w.queue, '1-1', [1, 3]);
    expect(w.queue.progress(null)).toMatchObject({ assigned: 3, pending: 3 });
  });
});

describe('a page that is odd, or refused individually', () => {
  it('keeps its result when a canary page is fine', async () => {
    const scene = await crawl(5, (path) => (path === '/p3' ? refused(403) : fine(path)));
    expect(urls(scene)).toEqual(['p1', 'p2', 'p3', 'p2', 'p4', 'p5', 'p3', 'p5']);
    expect(scene.end()).toBe('finished');
    expect(outcomes(scene.journal)).toEqual(['p1 stored', 'p2 stored', 'p4 stored', 'p5 stored', 'p3 http-status']);
    expect(results(scene.journal).at(-1)).toMatchObject({ attempts: 2, evidence: { rule: 'status-403', status: 403 } });
  });

  it('leads to a canary request only after three in a row', async () => {
    const scene = await crawl(9, (path) => (/p[36]$/.test(path) ? odd() : fine(path)));
    expect(scene.queue.progress(null)).toMatchObject({ stored: 7, failed: 2 });
    // The second attempts are the last pages of the shard: one canary page confirms them.
    expect(scene.queue.state.canaries).toBe(1);
  });

  it('with an odd canary page stops the crawl until the main server has decided', async () => {
    const scene = await crawl(10, banAfter(3, odd()), { sealed: false });
    expect(urls(scene)).toEqual(['p1', 'p2', 'p3', 'p4', 'p5', 'p6', 'p3']);
    expect(scene.incidents.describe()).toMatchObject({
      verdict: 'suspect',
      leftMs: null,
      evidence: { rule: 'field-missing' },
    });
    await scene.run(3_000_000);
    expect(scene.starts).toHaveLength(7);

    scene.incidents.decide('banned');
    expect(scene.incidents.describe()).toMatchObject({ verdict: 'banned', leftMs: 1_800_000 });
    const { items } = scene.queue.state;
    expect([items.count('pending'), items.count('held')]).toEqual([7, 0]);
    expect(scene.queue.progress(null)).toMatchObject({ stored: 3, failed: 0, gone: 0 });
  });

  it('continues when the main server decides that the address is fine', async () => {
    let served = 0;
    const scene = await crawl(8, (path) => (++served > 3 && served <= 7 ? odd() : fine(path)));
    scene.incidents.decide('ok');
    await scene.run(60_000);
    expect(scene.end()).toBe('finished');
    expect(scene.queue.progress(null)).toMatchObject({ stored: 8 });
  });

  it('is not stored without a value in any field', async () => {
    const scene = await crawl(1, () => fine('/p1', { t: null }));
    expect(outcomes(scene.journal)).toEqual(['p1 parse']);
  });
});

describe('canary pages', () => {
  it('are the configured canaries, whose values must match', async () => {
    const site: Site = (path) => (path === '/p1' ? refused(403) : fine(path, { t: 'other' }));
    const scene = await crawl(3, site, { canaries: [canary] });
    expect(urls(scene)).toEqual(['p1', 'c1']);
    expect(scene.queue.state.incident).toMatchObject({ verdict: 'suspect', evidence: { rule: 'status-403' } });
  });

  it('are the last stored product when a canary differs; when that product is right, the canary is out of date', async () => {
    const site: Site = (path) => (path === '/p3' ? refused(403) : fine(path, { t: path === '/c1' ? 'renamed' : path }));
    const scene = await crawl(5, site, { canaries: [canary] });
    expect(urls(scene).slice(0, 5)).toEqual(['p1', 'p2', 'p3', 'c1', 'p2']);
    expect(scene.queue.state.incident).toBeNull();
    expect(scene.problem()).toBe('the canary c1 is out of date: t is "renamed", not "x"');
    expect(scene.queue.progress(null)).toMatchObject({ stored: 4, failed: 1 });
  });

  it('count as bad when the last stored product is not right either; the canary is not out of date', async () => {
    let served = 0;
    const site: Site = (path) => (++served > 2 ? odd() : fine(path));
    const scene = await crawl(5, site, { canaries: [{ id: 'c1', fields: { t: 'never' } }] });
    expect(scene.queue.state.incident?.verdict).toBe('suspect');
    expect(scene.problem()).toBeNull();
  });

  it('are requested at most three times without an answer', async () => {
    const site: Site = (path) => (path === '/p1' ? refused(403) : broken());
    const scene = await crawl(3, site, { canaries: [canary] });
    expect(urls(scene)).toEqual(['p1', 'c1', 'c1', 'c1']);
    expect(scene.queue.state.incident?.verdict).toBe('suspect');
  });

  it('confirm gone products at the end of the shard', async () => {
    const scene = await crawl(4, (path) => (/p[34]$/.test(path) ? notFound : fine(path)));
    expect(urls(scene)).toEqual(['p1', 'p2', 'p3', 'p4', 'p2']);
    expect(scene.end()).toBe('finished');
    expect(outcomes(scene.journal)).toEqual(['p1 stored', 'p2 stored', 'p3 gone', 'p4 gone']);
  });

  it('are not needed where none exist: the site is believed', async () => {
    const scene = await crawl(3, () => notFound);
    expect(urls(scene)).toEqual(['p1', 'p2', 'p3']);
    expect(outcomes(scene.journal)).toEqual(['p1 gone', 'p2 gone', 'p3 gone']);
  });

  it('are requested before the seal when nothing else arrives', async () => {
    const scene = await crawl(2, (path) => (path === '/p2' ? notFound : fine(path)), { ms: 4_000, sealed: false });
    expect(scene.queue.progress(null)).toMatchObject({ pending: 1, gone: 0 });
    await scene.run(6_000);
    expect(scene.queue.progress(null)).toMatchObject({ pending: 0, gone: 1 });
  });

  it('are not requested past the deadline: unproven products get no outcome', async () => {
    const w = await createGranted(3, { deadline: new Date(START_MS + 2_900).toISOString(), sealed: true });
    const scene = await createScene(w, (path) => (path === '/p1' ? fine(path) : notFound));
    await scene.run(10_000);
    expect(scene.end()).toBe('deadline');
    w.queue.stopCrawling();
    expect(w.queue.progress(null)).toMatchObject({ stored: 1, gone: 0, pending: 2 });
  });
});

describe('F28: a ban by 404 from the first request on', () => {
  it('marks no product gone: the main server decides, also before the seal', async () => {
    for (const sealed of [true, false]) {
      const w = await world(10, sealed);
      const scene = await createScene(w, () => notFound);
      await scene.run(60_000);
      expect(scene.starts).toHaveLength(10);
      expect(w.queue.progress(null)).toMatchObject({ gone: 0, pending: 10, okAgoMs: null });
      expect(w.queue.state.incident).toMatchObject({ verdict: 'suspect', evidence: { rule: 'all-gone', status: 404 } });
    }
  });

  it('is confirmed by the main server: the products are pending again', async () => {
    const scene = await crawl(10, () => notFound);
    scene.incidents.decide('banned');
    const { items } = scene.queue.state;
    expect([items.count('pending'), items.count('held')]).toEqual([10, 0]);
  });

  it('is rejected by the main server: the site is believed', async () => {
    const scene = await crawl(10, () => notFound);
    scene.incidents.decide('ok');
    await scene.run(10_000);
    expect(scene.end()).toBe('finished');
    expect(scene.queue.progress(null)).toMatchObject({ gone: 10, pending: 0 });
  });

  it('is detected by a canary', async () => {
    const scene = await crawl(10, () => notFound, { canaries: [canary] });
    expect(scene.queue.state.incident).toMatchObject({ verdict: 'suspect' });
    expect(scene.queue.progress(null)).toMatchObject({ gone: 0, canaries: 1 });
  });
});

describe('F29: Retry-After', () => {
  it('pauses the address, and afterwards the product is retried', async () => {
    const scene = await crawl(3, (path, tries) => (path === '/p2' && tries === 1 ? refused(429, 30_000) : fine(path)));
    expect(urls(scene)).toEqual(['p1', 'p2', 'p2', 'p3']);
    expect(scene.starts[2]!.at - scene.starts[1]!.at).toBeGreaterThanOrEqual(30_000);
    expect(scene.queue.progress(null)).toMatchObject({ stored: 3, failed: 0 });
  });

  it('is honoured by the next process too', async () => {
    const w = await world(3);
    const first = await createScene(w, () => refused(503, 300_000));
    await first.run(1_000);
    first.stop.abort();
    await first.run(0);
    const second = await createScene(createQueue({ journal: w.journal, clock: w.clock }));
    await second.run(290_000);
    expect(second.starts).toEqual([]);
    await second.run(20_000);
    expect(urls(second)[0]).toBe('p1');
  });

  it('fails a product at the third time', async () => {
    const scene = await crawl(2, (path) => (path === '/p1' ? refused(503, 5_000) : fine(path)), { ms: 120_000 });
    expect(urls(scene)).toEqual(['p1', 'p1', 'p1', 'p2', 'p1']);
    expect(outcomes(scene.journal)).toEqual(['p2 stored', 'p1 http-status']);
  });

  it('of a canary page counts as no answer: three of them, each followed by its pause, raise a suspicion', async () => {
    const site: Site = (path) => (path === '/p2' ? refused(403) : path === '/c1' ? refused(503, 5_000) : fine(path));
    const scene = await crawl(10, site, { ms: 600_000, canaries: [canary] });
    expect(urls(scene)).toEqual(['p1', 'p2', 'c1', 'p2', 'c1', 'p2', 'c1']);
    expect(scene.starts[3]!.at - scene.starts[2]!.at).toBeGreaterThanOrEqual(5_000);
    expect(scene.queue.state.domains.pausedUntilMs).toBeGreaterThan(scene.starts[6]!.at);
    expect(scene.queue.state.incident).toMatchObject({ verdict: 'suspect', evidence: { rule: 'status-403' } });
  });

  it('beyond the deadline is a ban', async () => {
    const scene = await crawl(3, (path) => (path === '/p2' ? refused(429, 36_000_000) : fine(path)));
    expect(urls(scene)).toEqual(['p1', 'p2']);
    expect(scene.queue.state.incident).toMatchObject({ verdict: 'banned', evidence: { rule: 'retry-after' } });
    expect(scene.incidents.describe()!.leftMs).toBeGreaterThan(35_000_000);
  });
});

describe('a suspicion', () => {
  it('is decided by orders, which never end a ban', async () => {
    const scene = await crawl(10, banAfter(1, shell));
    scene.incidents.decide('ok');
    expect(scene.queue.state.incident?.verdict).toBe('banned');
    await scene.queue.follow(orders({ verdict: 'ok' }));
    expect(scene.queue.state.incident?.verdict).toBe('banned');
  });
});

describe('a ban page with its own heading', () => {
  const full = { t: 'a title', price: 3, brand: 'Acme' };

  it('is not stored once the usual fields of the pages are known', async () => {
    let served = 0;
    const scene = await crawl(
      20,
      (path) => fine(path, ++served <= 12 ? full : { t: 'Busy', price: null, brand: null }),
      { ms: 120_000 },
    );
    // Three thin pages, then the last right page.
    expect(urls(scene).slice(12)).toEqual(['p13', 'p14', 'p15', 'p12']);
    expect(scene.queue.state.incident).toMatchObject({ verdict: 'suspect', evidence: { rule: 'values-missing' } });
    expect(scene.queue.progress(null)).toMatchObject({ stored: 12, pending: 8 });
  });

  it('is distinguished from products with fewer fields, which are stored', async () => {
    const isThin = (path: string): boolean => Number(path.slice(2)) > 12;
    const scene = await crawl(
      30,
      (path) => fine(path, isThin(path) ? { t: 'a book', price: null, brand: null } : full),
      { ms: 120_000 },
    );
    expect(scene.queue.state.incident).toBeNull();
    expect(scene.queue.progress(null)).toMatchObject({ stored: 30, canaries: 1 });
  });

  describe('is distinguished from a single product with fewer fields', () => {
    const less = { t: 'sold out', price: null, brand: null };
    const LESS = 'half of the fields that pages of this site usually fill have no value';

    it('by a second fetch and a canary page: it is stored', async () => {
      const scene = await crawl(40, (path) => fine(path, path === '/p20' ? less : full), { ms: 120_000 });
      expect(urls(scene).slice(40)).toEqual(['p20', 'p40']);
      expect(scene.end()).toBe('finished');
      expect(scene.queue.progress(null)).toMatchObject({ stored: 40, failed: 0, canaries: 1 });
      expect(results(scene.journal).at(-1)).toMatchObject({ id: 'p20', attempts: 2, rows: [{ row: less }] });
    });

    it('only by two fetches with fewer fields: a transient page is not stored', async () => {
      const scene = await crawl(
        40,
        (path, tries) => (path !== '/p20' ? fine(path, full) : tries === 1 ? broken() : fine(path, less)),
        { ms: 120_000 },
      );
      expect(scene.queue.state.incident).toBeNull();
      expect(results(scene.journal).at(-1)).toMatchObject({ id: 'p20', reason: 'parse', detail: LESS });
    });

    it.each<[string, PageResult, string]>([
      ['has fewer fields too', fine('/', less), 'suspect'],
      ['is missing', notFound, 'suspect'],
      ['is refused', refused(403), 'banned'],
      ['gives no answer', broken(), 'suspect'],
    ])('which is not stored when the canary page %s', async (_what, answer, verdict) => {
      const scene = await crawl(
        40,
        (path, tries) =>
          path === '/p20' ? fine(path, less) : path === '/p40' && tries > 1 ? answer : fine(path, full),
        { ms: 120_000 },
      );
      expect(scene.queue.state.incident).toMatchObject({ verdict, evidence: { rule: 'values-missing' } });
      expect(scene.queue.progress(null)).toMatchObject({ stored: 39, failed: 0, pending: 1 });
      expect(scene.queue.state.items.count('held')).toBe(0);
    });

    it('which fails when robots.txt forbids every canary page', async () => {
      const w = await createGranted(41, { robots: robots() });
      const site: Site = (path, tries) =>
        path === '/p20' ? fine(path, less) : path === '/p41' && tries === 1 ? broken() : fine(path, full);
      const scene = await createScene(w, site, { robots: 'respect' });
      await scene.run(44_000);
      await scene.follow({
        sealed: true,
        robots: robots({ version: 'v2', access: 'rules', rules: [{ allow: false, pattern: '/p40' }] }),
      });
      await scene.run(60_000);
      // The right page after it confirms other results, but not this one.
      expect(urls(scene).slice(41)).toEqual(['p20', 'p41']);
      expect(scene.end()).toBe('finished');
      expect(outcomes(w.journal).slice(-2)).toEqual(['p41 stored', 'p20 parse']);
      expect(results(w.journal).at(-1)).toMatchObject({ attempts: 2, detail: LESS });
    });

    it('which fails when there is no time for the second fetch', async () => {
      const w = await createGranted(30, { deadline: new Date(START_MS + 25_000).toISOString() });
      const scene = await createScene(w, (path) => fine(path, path === '/p20' ? less : full));
      await scene.run(60_000);
      w.queue.stopCrawling();
      expect(results(w.journal).at(-1)).toMatchObject({ id: 'p20', reason: 'parse', detail: LESS });
    });
  });

  describe('with fields that are only on further pages', () => {
    const reviews = (path: string): string => `http://shop.example${path}/reviews`;
    const site =
      (own: Site): Site =>
      (path, tries, via, sent) =>
        path.endsWith('/reviews')
          ? fine(path, { t: null, price: null, rating: 4, brand: 'Acme' })
          : own(path, tries, via, sent);
    const first = (path: string): PageResult =>
      fine(path, { t: 'a', price: 3, rating: null, brand: null }, [reviews(path)]);

    it('is distinguished from a canary page, whose further pages are fetched too', async () => {
      const scene = await crawl(
        20,
        site((path) => (path === '/p15' ? refused(403) : first(path))),
        { ms: 120_000 },
      );
      expect(scene.queue.state.incident).toBeNull();
      const asked = urls(scene);
      expect(asked.slice(asked.indexOf('p15'), asked.indexOf('p16'))).toEqual(['p15', 'p14', 'p14/reviews']);
      expect(scene.queue.progress(null)).toMatchObject({ stored: 19, failed: 1, pending: 0 });
    });

    it('does not pass as a canary page: it is suspect', async () => {
      let isBan = false;
      const scene = await crawl(
        20,
        site((path) => {
          isBan ||= path === '/p15';
          return isBan ? fine(path, { t: 'Busy', price: null, rating: null, brand: null }) : first(path);
        }),
        { ms: 120_000 },
      );
      expect(urls(scene).slice(-4)).toEqual(['p15', 'p16', 'p17', 'p14']);
      expect(scene.queue.state.incident).toMatchObject({ verdict: 'suspect' });
      expect(scene.queue.progress(null)).toMatchObject({ stored: 14, pending: 6 });
    });
  });
});
