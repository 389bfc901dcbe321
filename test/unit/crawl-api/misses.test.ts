/** What an instance counts of its products without a row. */
import { describe, expect, it } from 'vitest';
import type { PageResult } from '../../../crawl-api/fetch/page-result.ts';
import type { MissCount } from '../../../shared/domain/failure-kind.ts';
import { FAILURE_REASONS } from '../../../shared/domain/outcome.ts';
import { MAX_MISS_KINDS, progressSchema } from '../../../shared/wire/callbacks.ts';
import { broken, createScene, fine, notFound, odd, refused, results } from './crawl-scene.ts';
import { createGranted, failed } from './fakes.ts';

const BUILT = odd('<body><div id="root"></div><script src="/app.js"></script></body>');
const PARTIAL: PageResult = {
  ...(odd('<h1>Lamp</h1>') as Extract<PageResult, { kind: 'page' }>),
  extraction: {
    rows: null,
    missing: 'price',
    links: [],
    partial: { row: { title: 'Lamp', price: null, brand: 'A' }, missing: ['price'] },
  },
};

const short = (misses: readonly MissCount[] = []) =>
  misses.map(({ reason, detail, products, waiting }) => ({ reason, detail, products, waiting }));

describe('the misses of a heartbeat', () => {
  it('are those that wait for their second try while it works, and those that failed when it is done', async () => {
    const world = await createGranted(6, { sealed: true });
    const scene = await createScene(world, (path, tries) => {
      if (path.endsWith('p2')) return refused(500);
      if (path.endsWith('p3')) return BUILT;
      if (path.endsWith('p4')) return PARTIAL;
      if (path.endsWith('p5')) return tries === 1 ? broken('network') : fine();
      return path.endsWith('p6') ? notFound : fine();
    });
    const built =
      'field-missing, HTTP 200: the required field t has no value; under 100 characters of text, and scripts';
    const partial = 'field-missing, HTTP 200: the required field price has no value; with values: title, brand';
    await scene.run(5_500);
    const during = world.queue.progress(null);
    expect(during).toMatchObject({ stored: 1, failed: 0 });
    const waiting = { products: 0, waiting: 1 };
    expect(short(during.misses)).toEqual(
      expect.arrayContaining([
        { reason: 'http-status', detail: 'http-status, HTTP 500: ', ...waiting },
        { reason: 'parse', detail: built, ...waiting },
        { reason: 'parse', detail: partial, ...waiting },
        { reason: 'network', detail: 'network', ...waiting },
      ]),
    );
    await scene.run(80_000);
    const after = world.queue.progress(null);
    expect(after).toMatchObject({ stored: 2, gone: 1, failed: 3 });
    const ended = { products: 1, waiting: 0 };
    expect(short(after.misses)).toEqual(
      expect.arrayContaining([
        { reason: 'gone', detail: 'HTTP 404', ...ended },
        { reason: 'http-status', detail: 'http-status, HTTP 500: ', ...ended },
        { reason: 'parse', detail: built, ...ended },
        { reason: 'parse', detail: partial, ...ended },
      ]),
    );
    expect(after.misses).toHaveLength(4);
    expect(results(world.journal)).toContainEqual(
      expect.objectContaining({ outcome: 'failed', url: after.misses![0]!.url }),
    );
    // The same after a restart, and as the main server reads it.
    expect(world.journal.replay().misses.list()).toEqual(after.misses);
    expect(progressSchema.parse(after)).toEqual(after);
  });

  it('are left out where every product has its row, as earlier versions send it', async () => {
    const world = await createGranted(1, { sealed: true });
    const scene = await createScene(world, () => fine());
    await scene.run(2_000);
    expect(world.queue.progress(null)).not.toHaveProperty('misses');
  });

  it('stay few and short, whatever the site answers: further kinds count by their reason', async () => {
    const world = await createGranted(400);
    const { queue } = world;
    for (let n = 1; n <= 400; n++) {
      const reason = FAILURE_REASONS[n % FAILURE_REASONS.length]!;
      const evidence = { rule: `rule-${n}`, url: '', status: 400 + (n % 100), headers: {}, body: '' };
      const result = { ...failed(n), url: `http://shop/${'x'.repeat(300)}`, reason, detail: 'd'.repeat(500), evidence };
      queue.recordResult(queue.state.items.get(n)!, result, { isFinal: true });
    }
    const progress = queue.progress(null);
    expect(progressSchema.parse(progress)).toEqual(progress);
    expect(progress.misses!.length).toBeLessThanOrEqual(MAX_MISS_KINDS + FAILURE_REASONS.length);
    expect(progress.misses!.reduce((sum, { products }) => sum + products, 0)).toBe(400);
    expect(JSON.stringify(progress.misses).length).toBeLessThan(6_000);
  });
});
