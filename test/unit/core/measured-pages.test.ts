/** The alarm of a run whose products take more requests than planned. */
import { describe, expect, it } from 'vitest';
import { pagesNote } from '../../../orchestrator/core/decide/measured-pages.ts';
import { decide, unnoted } from '../../../orchestrator/core/decide/decide.ts';
import type { World } from '../../../orchestrator/core/model/world.ts';
import { NO_PROGRESS, type Progress } from '../../../shared/wire/callbacks.ts';
import { aPlan, aRun, aWorld, anInstance } from './builders.ts';

const PAGES = { mean: 20, max: 50 };

function world(progress: Partial<Progress>[], pages: { mean: number; max: number } | undefined = PAGES): World {
  const plan = { ...aPlan({ instances: progress.length }), ...(pages && { pages }) };
  const instances = progress.map((own, slot) =>
    anInstance(slot, { phase: 'crawling', progress: { ...NO_PROGRESS, ...own } }),
  );
  return aWorld({ run: aRun({ plan }), instances });
}

const noteOf = (w: World): string | null =>
  pagesNote(w).flatMap((action) => (action.kind === 'note' ? [action.note.detail] : []))[0] ?? null;

describe('pagesNote', () => {
  it('says after ten products what they take, and what to set', () => {
    expect(noteOf(world([{ stored: 9, requests: 9 * 36 }]))).toBeNull();
    expect(noteOf(world([{ stored: 10, requests: 360 }]))).toBe(
      'products take 36.0 requests on average, and the run was planned for 20 (site.pages_per_product): it may end ' +
        'later than planned. For the next run set site.pages_per_product: { mean: 36, max: 72 }',
    );
    expect(noteOf(world([{ stored: 10, requests: 360 }], { mean: 20, max: 200 }))).toContain('{ mean: 36, max: 200 }');
  });

  it('is raised once', () => {
    const w = world([{ stored: 10, requests: 360 }]);
    expect(pagesNote(w)).toMatchObject([{ kind: 'note', alarm: true, note: { key: 'site.pages_per_product' } }]);
    expect(unnoted({ notedKeys: new Set(['site.pages_per_product']) }, pagesNote(w))).toEqual([]);
    expect(decide(w)).toContainEqual(pagesNote(w)[0]);
  });

  it.each<[string, Partial<Progress>[]]>([
    ['the mean is not clearly beyond the planned one', [{ stored: 10, requests: 300 }]],
    ['it is so only with canary pages', [{ stored: 10, requests: 360, canaries: 100 }]],
    ['the browser repeated them', [{ stored: 10, requests: 400, rendered: 200 }]],
    ['products under way took them', Array.from({ length: 10 }, () => ({ stored: 1, pending: 3, requests: 36 }))],
    ['products have failed, whose requests are repeated', [{ stored: 10, failed: 5, requests: 800 }]],
    [
      'products wait for their second try',
      [
        {
          stored: 10,
          requests: 800,
          misses: [{ reason: 'timeout', detail: null, products: 0, waiting: 9, url: null }],
        },
      ],
    ],
  ])('stays silent when %s', (_what, progress) => {
    expect(noteOf(world(progress))).toBeNull();
  });

  it('stays silent in a run whose mapping finds no further pages', () => {
    const { run, ...rest } = world([{ stored: 100, requests: 300 }]);
    const { pages: _pages, ...plan } = run.plan;
    expect(noteOf({ ...rest, run: { ...run, plan } })).toBeNull();
  });
});
