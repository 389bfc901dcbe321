import { describe, expect, it } from 'vitest';
import { NO_URL } from '../../../shared/domain/own-url.ts';
import { createScene, fine, gaps, notFound, outcomes, results, type Scene, type Site } from './crawl-scene.ts';
import { createQueue, orders } from './fakes.ts';

const A = 'http://a.example';
const B = 'http://b.example';
const HOSTS = [
  { url: `${A}/{url}`, weight: 3 },
  { url: `${B}/{url}`, weight: 1 },
];
const at = (scene: Scene, origin: string) => scene.starts.filter(({ url }) => url.startsWith(origin));

async function crawlUrls(ids: string[], site: Site = (path) => fine(path), options = {}) {
  const world = createQueue({ productUrl: HOSTS });
  await world.queue.offer({ chunk: '1-1', share: 100, products: ids.map((id, i) => ({ n: i + 1, id })) });
  await world.queue.follow(orders({ grants: ['1-1'], sealed: true }));
  const scene = await createScene(world, site, { productUrl: HOSTS, ...options });
  await scene.run(120_000);
  return { ...scene, ...world };
}

describe('products with URLs of their own', () => {
  it('are requested at them, at the pace of each host', async () => {
    const ids = [`${A}/tea/red-pot?x=1`, `${B}/mug`, `${A}/tea/blue-pot`, `${B}/cup`, `${A}/tray`];
    const scene = await crawlUrls(ids);
    expect(scene.end()).toBe('finished');
    expect(scene.starts.map(({ url }) => url).toSorted()).toEqual(ids.toSorted());
    for (const origin of [A, B]) expect(Math.min(...gaps(at(scene, origin)))).toBeGreaterThanOrEqual(1_010);
    expect(results(scene.journal)[0]).toMatchObject({ outcome: 'stored', url: ids[0] });
  });

  it('fail without a request, and without suspicion, where there is none that may be requested', async () => {
    const scene = await crawlUrls([NO_URL, 'http://c.example/x', `${A}:81/x`, `${A}/good`]);
    expect(scene.starts.map(({ url }) => url)).toEqual([`${A}/good`]);
    expect(outcomes(scene.journal).toSorted()).toEqual(
      [`${A}/good stored`, `${A}:81/x redirect`, `${NO_URL} redirect`, 'http://c.example/x redirect'].toSorted(),
    );
    expect(results(scene.journal)).toContainEqual(
      expect.objectContaining({ id: NO_URL, detail: 'not requested: it has no URL' }),
    );
    expect(scene.queue.state.incident).toBeNull();
  });

  it('are proved by a canary page of the same host', async () => {
    const canaries = [`${A}/canary`, `${B}/canary`].map((id) => ({ id, fields: { t: 'x' } }));
    const site: Site = (path) => (path.endsWith('/canary') ? fine(path) : notFound);
    const scene = await crawlUrls([`${B}/gone`], site, { canaries });
    expect(scene.starts.map(({ url }) => url)).toEqual([`${B}/gone`, `${B}/canary`]);
    expect(scene.queue.state.counts).toEqual({ stored: 0, gone: 1, failed: 0 });
  });
});
