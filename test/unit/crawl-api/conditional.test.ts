/**
 * `site.conditional` on an instance: which validators it keeps, which requests are conditional, and what a 304 proves.
 */
import { describe, expect, it } from 'vitest';
import { conditionsOf, stampOf } from '../../../crawl-api/fetch/validators.ts';
import type { PageResult } from '../../../crawl-api/fetch/page-result.ts';
import { judge } from '../../../crawl-api/politeness/ban-rules.ts';
import { compileSiteRules } from '../../../crawl-api/politeness/site-rules.ts';
import type { Validators } from '../../../shared/domain/validators.ts';
import { createScene, fine, notFound, outcomes, reply, results, type Site, toElsewhere, urls } from './crawl-scene.ts';
import { createQueue, orders } from './fakes.ts';

const TAG: Validators = { etag: '"v1"' };
const DATE = 'Sat, 21 Nov 2026 02:15:30 GMT';

/** A queue whose products all have validators. */
async function world(products: number, validators: Validators | null = TAG) {
  const w = createQueue();
  const of = (n: number) => ({ n, id: `p${n}`, ...(validators && { validators }) });
  const all = Array.from({ length: products }, (_, i) => of(i + 1));
  await w.queue.offer({ chunk: '1-1', share: 1_000, products: all });
  await w.queue.follow(orders({ grants: ['1-1'], sealed: true }));
  return w;
}

const unchanged = (validators: Validators): PageResult => ({ kind: 'unchanged', reply: reply('/', 304), validators });
const named = (path: string, links: string[] = []): PageResult => {
  const page = fine(path, { t: 'x' }, links) as PageResult & { kind: 'page' };
  return { ...page, reply: { ...page.reply, headers: { etag: '"v2"' }, bytes: 4_000 } };
};
/** Answers 304 to whatever is conditional, else with the page. */
const honest: Site = (path, _tries, _via, { validators }) => (validators ? unchanged(validators) : named(path));

describe('the validators of a page', () => {
  const stamp = (headers: Record<string, string>, changes: object = { bytes: 9 }) =>
    stampOf({ ...reply('/', 200), headers, ...changes });

  it('are its ETag and its Last-Modified as sent', () => {
    expect(stamp({ etag: 'W/"a/b=="' })).toEqual({ etag: 'W/"a/b=="', bytes: 9 });
    const date = 'Sat, 21 Nov 2026 02:16:30 GMT';
    expect(stamp({ 'last-modified': DATE, date })).toEqual({ modified: DATE, bytes: 9 });
    expect(conditionsOf({ etag: '"a"', modified: DATE })).toEqual({
      'if-none-match': '"a"',
      'if-modified-since': DATE,
    });
  });

  it.each<[string, Record<string, string>, object?]>([
    ['there is none', {}],
    ['an ETag is longer than 256 bytes', { etag: `"${'x'.repeat(255)}"` }],
    ['an ETag is no ETag', { etag: '"a"\r\nx: "b"' }],
    ['the page changed within the last minute', { 'last-modified': DATE, date: 'Sat, 21 Nov 2026 02:16:29 GMT' }],
    ['Last-Modified is not a date', { 'last-modified': 'yesterday', date: DATE }],
    ['a browser got it', { etag: '"a"' }, { bytes: undefined }],
    ['its status is 203', { etag: '"a"' }, { bytes: 9, status: 203 }],
  ])('are not kept where %s', (_what, headers, changes) => {
    expect(stamp(headers, changes)).toBeNull();
  });
});

describe('a product', () => {
  it('has the validators of its page when that alone gave its rows', async () => {
    const w = await world(3, null);
    const site: Site = (path) =>
      path === '/p2' ? toElsewhere('/q2') : named(path, path === '/p3' ? ['http://shop.example/p3?page=2'] : []);
    const scene = await createScene(w, site);
    await scene.run(20_000);
    expect(urls(scene)).toEqual(['p1', 'p2', 'q2', 'p3', 'p3?page=2']);
    const pages = results(w.journal).map((result) => (result as { page?: unknown }).page);
    expect(pages).toEqual([{ etag: '"v2"', bytes: 4_000 }, undefined, undefined]);
  });

  it('is requested conditionally at its own URL only, even after a restart', async () => {
    const w = await world(2);
    const asked: string[] = [];
    const site: Site = (path, _tries, _via, { validators }) => {
      asked.push(`${path} ${validators?.etag ?? '-'}`);
      return path === '/p1' ? toElsewhere('/q1') : validators ? unchanged(validators) : fine(path);
    };
    const restarted = createQueue({ clock: w.clock, journal: w.journal });
    const scene = await createScene({ queue: restarted.queue, clock: w.clock }, site);
    await scene.run(20_000);
    // The second q1 is the canary page that proves p2.
    expect(asked).toEqual(['/p1 "v1"', '/q1 -', '/p2 "v1"', '/p1 -', '/q1 -']);
    expect(results(w.journal)).toMatchObject([
      { id: 'p1', outcome: 'stored', rows: [{ row: { t: 'x' } }] },
      { id: 'p2', outcome: 'stored', rows: [], unchanged: TAG },
    ]);
  });
});

describe('a 304', () => {
  it.each([
    [[], 'unchanged', null],
    [[304], 'banned', 'site-status'],
  ])('is judged by the rules of the site: %j', async (statuses, kind, rule) => {
    const rules = await compileSiteRules({ statuses, redirects: [], patterns: [] }, true);
    expect(
      judge({ kind: 'unchanged', reply: reply('/', 304) }, { url: '/', product: { id: '1', url: '/' } }, rules),
    ).toMatchObject({ kind, rule });
  });

  it('is accepted once an unconditional request yields a right page: at the end, and after fifty', async () => {
    const w = await world(60);
    const scene = await createScene(w, honest);
    await scene.run(45_000);
    expect(outcomes(w.journal)).toEqual([]);
    await scene.run(60_000);
    expect(outcomes(w.journal)).toHaveLength(60);
    expect(scene.starts).toHaveLength(62);
    expect(scene.end()).toBe('finished');
  });

  it('still waits for its proof after the process has died, and is not requested again', async () => {
    const w = await world(9);
    const scene = await createScene(w, honest);
    await scene.run(5_500);
    expect(scene.starts).toHaveLength(6);
    scene.stop.abort();
    await scene.run(0);
    const { queue } = createQueue({ clock: w.clock, journal: w.journal });
    const next = await createScene({ queue, clock: w.clock }, honest);
    await next.run(20_000);
    expect(urls(next)).toEqual(['p7', 'p8', 'p9', 'p1']);
    expect(outcomes(w.journal)).toHaveLength(9);
  });

  it('proves nothing: a shop that answers it to everything makes the address suspect', async () => {
    const w = await world(5);
    const refuses: PageResult = {
      kind: 'failed',
      reason: 'redirect',
      detail: '304 without a location that can be read',
      reply: reply('/', 304),
      retryAfterMs: null,
    };
    const scene = await createScene(w, (_path, _tries, _via, { validators }) =>
      validators ? unchanged(validators) : refuses,
    );
    await scene.run(60_000);
    expect(w.queue.state.incident).toMatchObject({ verdict: 'suspect' });
    expect(outcomes(w.journal)).toEqual([]);
    expect(scene.starts).toHaveLength(8);
    await scene.follow({ verdict: 'banned', returnProducts: true });
    scene.incidents.decide('banned');
    expect(w.queue.state.items.count('held')).toBe(0);
  });

  it('does not clear the evidence of odd pages before it, and does not add to it', async () => {
    const w = await world(9);
    const site: Site = (path, _tries, _via, { validators }) =>
      Number(path.slice(2)) % 2 === 1 && validators
        ? unchanged(validators)
        : validators
          ? { ...(fine(path) as PageResult & { kind: 'page' }), extraction: { rows: null, missing: 't', links: [] } }
          : notFound;
    const scene = await createScene(w, site);
    await scene.run(60_000);
    // The third odd page, p6, is checked at once, however many 304s were between.
    expect(urls(scene).slice(0, 7)).toEqual(['p1', 'p2', 'p3', 'p4', 'p5', 'p6', 'p1']);
    expect(w.queue.state.incident).toMatchObject({ verdict: 'suspect' });
  });
});
