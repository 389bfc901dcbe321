import { expect, it } from 'vitest';
import { broken, createScene, fine, notFound, refused } from './crawl-scene.ts';
import { createGranted } from './fakes.ts';

it('counts requests, unanswered ones and served pages, including held and canary pages, and reports Retry-After while it lasts', async () => {
  const world = await createGranted(6, { sealed: true });
  const scene = await createScene(world, (path, tries) => {
    if (path.endsWith('p1')) return fine();
    if (path.endsWith('p2')) return notFound;
    if (path.endsWith('p3')) return refused(500);
    if (path.endsWith('p4')) return broken('network');
    if (path.endsWith('p5')) return broken('timeout');
    return tries === 1 ? refused(503, 60_000) : fine();
  });
  await scene.run(6_500);
  expect(world.queue.progress(null)).toMatchObject({ tried: 6, unavailable: 4, served: 2 });
  expect(world.queue.progress(null).restMs).toBeGreaterThan(50_000);
  await scene.run(80_000);
  expect(world.queue.progress(null)).toMatchObject({ tried: 10, unavailable: 7, served: 3, restMs: 0 });
});
