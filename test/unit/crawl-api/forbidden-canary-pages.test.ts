/** Canary pages that robots.txt forbids: fault row F30. */
import { describe, expect, it } from 'vitest';
import type { RobotsPolicy } from '../../../shared/domain/robots-matcher.ts';
import type { Orders } from '../../../shared/wire/callbacks.ts';
import {
  createScene,
  fine,
  notFound,
  odd,
  outcomes,
  refused,
  results,
  type SceneOptions,
  SHOP,
  type Site,
  urls,
} from './crawl-scene.ts';
import { robots, createGranted } from './fakes.ts';

const canary = (id: string) => ({ id, fields: { t: 'x' } });

let versions = 0;
const forbid = (...patterns: string[]): RobotsPolicy =>
  robots({
    version: `forbids ${++versions}`,
    access: 'rules',
    rules: patterns.map((pattern) => ({ allow: false, pattern })),
  });

async function world(last: number, site: Site, changes: Partial<Orders> = {}, options: SceneOptions = {}) {
  const w = await createGranted(last, { robots: robots(), ...changes });
  return { ...w, scene: await createScene(w, site, { robots: 'respect', ...options }) };
}

/** A different response for one product. */
const but =
  (path: string, answer: ReturnType<Site>): Site =>
  (asked) =>
    asked === path ? answer : fine(asked);

describe('F30: a robots.txt that forbids canary pages', () => {
  it('is no sign of a ban: a gone product that cannot be confirmed fails', async () => {
    const { scene, queue, journal } = await world(20, but('/p5', notFound));
    await scene.run(4_800);
    expect(queue.state.items.count('held')).toBe(1);
    await scene.follow({ sealed: true, robots: forbid('/') });
    await scene.run(60_000);
    expect(urls(scene)).toEqual(['p1', 'p2', 'p3', 'p4', 'p5']);
    expect(queue.state.incident).toBeNull();
    expect(scene.end()).toBe('finished');
    expect(queue.progress(null)).toMatchObject({ stored: 4, gone: 0, failed: 16, pending: 0 });
    expect(results(journal).at(-1)).toMatchObject({ id: 'p5', reason: 'robots', attempts: 1 });
  });

  it('stores no product with a missing further page', async () => {
    const more = `${SHOP}/more`;
    const site: Site = (path) =>
      path === '/more' ? notFound : path === '/p3' ? fine(path, { t: 'x' }, [more]) : fine(path);
    const { scene, queue, journal } = await world(6, site);
    await scene.run(3_800);
    expect(urls(scene)).toEqual(['p1', 'p2', 'p3', 'more']);
    await scene.follow({ sealed: true, robots: forbid('/') });
    await scene.run(60_000);
    expect(queue.state.incident).toBeNull();
    expect(scene.end()).toBe('finished');
    expect(outcomes(journal).at(-1)).toBe('p3 robots');
  });

  it('leaves failures unchanged', async () => {
    const { scene, queue, journal } = await world(4, but('/p3', odd()));
    await scene.run(2_500);
    await scene.follow({ sealed: true, robots: forbid('/p1', '/p2', '/p4') });
    await scene.run(60_000);
    expect(urls(scene)).toEqual(['p1', 'p2', 'p3', 'p3']);
    expect(queue.state.incident).toBeNull();
    expect(scene.end()).toBe('finished');
    expect(outcomes(journal)).toEqual(['p1 stored', 'p2 stored', 'p4 robots', 'p3 parse']);
  });

  it('makes two refusals in a row a ban, as without canary pages', async () => {
    const site: Site = (path) => (/p[34]$/.test(path) ? refused(403) : fine(path));
    const { scene, queue } = await world(6, site);
    await scene.run(1_500);
    await scene.follow({ robots: forbid('/p2') });
    await scene.run(60_000);
    expect(urls(scene)).toEqual(['p1', 'p2', 'p3', 'p4']);
    expect(queue.state.incident).toMatchObject({ verdict: 'banned' });
  });

  it('also applies to a product that waits for its next attempt', async () => {
    const { scene, journal } = await world(3, but('/p2', refused(403)));
    await scene.run(1_500);
    await scene.follow({ sealed: true, robots: forbid('/') });
    await scene.run(60_000);
    expect(urls(scene)).toEqual(['p1', 'p2']);
    expect(outcomes(journal)).toEqual(['p1 stored', 'p3 robots', 'p2 robots']);
  });

  it('leads directly to the next canary page, however many are forbidden', async () => {
    const canaries = ['c1', 'c2', 'c3', 'c4'].map(canary);
    const { scene, queue } = await world(
      5,
      but('/p3', refused(403)),
      { sealed: true, robots: forbid('/c') },
      { canaries },
    );
    await scene.run(60_000);
    expect(urls(scene)).toEqual(['p1', 'p2', 'p3', 'p2', 'p4', 'p5', 'p3', 'p5']);
    expect(queue.progress(null)).toMatchObject({ stored: 4, failed: 1 });
  });

  it('also counts when it forbids only a further page of theirs', async () => {
    const site: Site = (path) =>
      path === '/p4' ? notFound : path === '/more' ? fine(path) : fine(path, { t: 'x' }, [`${SHOP}/more`]);
    const { scene, queue, journal } = await world(4, site);
    await scene.run(6_500);
    expect(queue.state.items.count('held')).toBe(1);
    expect(queue.progress(null)).toMatchObject({ stored: 3 });
    await scene.follow({ sealed: true, robots: forbid('/p3') });
    await scene.run(60_000);
    expect(queue.state.incident).toBeNull();
    expect(outcomes(journal).at(-1)).toBe('p4 robots');
  });

  it('may allow them again', async () => {
    const site = but('/p2', refused(403));
    const { scene, queue } = await world(9, site, { robots: forbid('/c') }, { canaries: [canary('c1')] });
    await scene.run(3_500);
    expect(urls(scene)).toEqual(['p1', 'p2', 'p1', 'p3']);
    await scene.follow({ sealed: true, robots: robots({ version: 'allows' }) });
    await scene.run(60_000);
    expect(urls(scene).slice(-2)).toEqual(['p2', 'c1']);
    expect(scene.end()).toBe('finished');
    expect(queue.progress(null)).toMatchObject({ stored: 8, failed: 1 });
  });

  it('reports no canary as out of date: a differing one counts when no other page is allowed', async () => {
    const site = but('/p3', refused(403));
    const canaries = [{ id: 'c1', fields: { t: 'renamed' } }];
    const { scene, queue } = await world(6, site, {}, { canaries });
    await scene.run(1_500);
    await scene.follow({ robots: forbid('/p2') });
    await scene.run(60_000);
    expect(queue.state.incident).toMatchObject({ verdict: 'suspect' });
    expect(scene.problem()).toBeNull();
  });
});
