import { describe, expect, it } from 'vitest';
import { finalReasons, liveReasons, waitingProducts } from '../../../orchestrator/core/decide/end/reasons.ts';
import type { InstanceRecord, LedgerMisses, RunRecord } from '../../../orchestrator/core/model/stores.ts';
import {
  describeMissingField,
  describePoorPage,
  type MissCount,
  type MissReason,
} from '../../../shared/domain/failure-kind.ts';
import { FAILURE_REASONS, type FailureReason } from '../../../shared/domain/outcome.ts';
import { adviceOf, nameOf, namesOf } from '../../../shared/domain/reason-row.ts';
import { NO_PROGRESS, type Progress } from '../../../shared/wire/callbacks.ts';
import { aRun, anInstance } from './builders.ts';

const lacks = (field: string, isScriptBuilt: boolean, filled: string[] = []): string =>
  `field-missing, HTTP 200: ${describePoorPage(describeMissingField(field), { isScriptBuilt, filled })}`;

const miss = (reason: MissReason, detail: string | null, counts: Partial<MissCount> = {}): MissCount => {
  return { reason, detail, products: 0, waiting: 0, url: 'http://shop/1', ...counts };
};
const instance = (progress: Partial<Progress>, change: Partial<InstanceRecord> = {}): InstanceRecord =>
  anInstance(0, { phase: 'crawling', progress: { ...NO_PROGRESS, ...progress }, ...change });
const withSite = (site: Partial<RunRecord['settings']['site']>): RunRecord => {
  const { settings, ...run } = aRun();
  return { ...run, settings: { ...settings, site: { ...settings.site, ...site } } };
};
const discovery = (): RunRecord => {
  const { settings, ...run } = aRun();
  return { ...run, settings: { ...settings, discover: {} as NonNullable<typeof settings.discover> } };
};

/** The rows of a run over as many products as these come to, `stored` more. */
function atEnd(
  groups: [MissReason, string | null, number][],
  { run = aRun(), stored = 0, instances = [] as InstanceRecord[] } = {},
) {
  const ledger = groups.map(([reason, detail, products], i): LedgerMisses => ({
    reason,
    detail,
    products,
    example: `p${i}`,
  }));
  const reasons: Partial<Record<FailureReason, number>> = {};
  let [gone, failed] = [0, 0];
  for (const [reason, , products] of groups)
    if (reason === 'gone') gone += products;
    else {
      failed += products;
      reasons[reason] = (reasons[reason] ?? 0) + products;
    }
  return finalReasons(run, instances, ledger, { stored, gone, failed, reasons });
}

describe('the table of reasons', () => {
  it('names for each reason and sign the count, the share, an example, and what to do by the facts', () => {
    const rows = atEnd(
      [
        ['http-status', 'http-status, HTTP 500: status 500', 27],
        ['parse', lacks('title', true), 147],
      ],
      { stored: 826 },
    );
    expect(rows).toEqual([
      {
        reason: 'parse',
        sign: 'field-missing title',
        products: 147,
        waiting: 0,
        share: 0.147,
        url: 'http://127.0.0.1:1/item/p1',
        evidence: '147 of 147 lack title and have under 100 characters of text, and scripts',
        todo: `set site.render: auto, then orchestrator retry ${aRun().id}`,
      },
      expect.objectContaining({ reason: 'http-status', sign: '500', products: 27, share: 0.027, evidence: null }),
    ]);
    expect(namesOf(rows)).toBe('147 parse field-missing title, 27 http-status 500');
  });

  it('counts what waits while the run works, over all instances, but not what a given-up one has lost', () => {
    const misses = [miss('parse', lacks('title', true), { products: 2, waiting: 5 })];
    const instances = [
      instance({ stored: 10, failed: 2, misses }),
      instance({ stored: 8, failed: 2, misses: [...misses, miss('timeout', 'no reply', { waiting: 1 })] }),
      instance({ failed: 2, misses }, { phase: 'lost' }),
    ];
    expect(waitingProducts(instances)).toBe(11);
    expect(liveReasons(aRun(), instances)).toMatchObject([
      { sign: 'field-missing title', products: 6, waiting: 10, share: 16 / 35 },
      { reason: 'timeout', products: 0, waiting: 1 },
    ]);
  });

  it('takes pages with and without text together, and goes by the greater part', () => {
    const mixed = (built: number, others: number) =>
      atEnd([
        ['parse', lacks('price', true), built],
        ['parse', lacks('price', false, ['title']), others],
      ])[0]!;
    expect(adviceOf(mixed(8, 2))).toMatch(/^10 of 10 lack price, 8 have under 100 .*: set site.render: auto/);
    expect(adviceOf(mixed(2, 8))).toMatch(
      /^10 of 10 lack price, 2 have .*extract --url \S+item\/p1 shows .* selector of price/,
    );
  });

  it('names the product where it is requested by POST, and no browser, which opens pages by GET', () => {
    const run = withSite({ request: { method: 'POST', body: '{"id":"{id}"}', contentType: 'application/json' } });
    const [built] = atEnd([['parse', lacks('price', true), 5]], { run });
    expect(built!.todo).toMatch(/^orchestrator extract --id p0 shows what the page has/);
    // A heartbeat names no product.
    const instances = [instance({ misses: [miss('parse', lacks('price', false), { products: 9 })] })];
    expect(liveReasons(run, instances)[0]!.todo).toMatch(/^orchestrator extract --id ID shows/);
  });

  it('names what a page has besides the missing field', () => {
    expect(atEnd([['parse', lacks('price', false, ['title', 'brand']), 5]])[0]!.evidence).toBe(
      '5 of 5 lack price and have title, brand',
    );
  });

  it.each(['auto', 'browser'] as const)('does not advise the browser where it is used already (%s)', (render) => {
    const [row] = atEnd([['parse', lacks('title', true), 5]], { run: withSite({ render }) });
    expect(row!.todo).not.toMatch(/site\.render|retry/);
    expect(row!.todo).toContain('--render browser');
  });

  it.each([
    [6, 0, /^site\.product_url makes addresses/],
    [95, 5, /^site\.product_url makes addresses/],
    [60, 40, /^open one in a browser: if the site has the product/],
  ])('has %i gone products beside %i stored', (gone, stored, todo) => {
    const [row] = atEnd([['gone', 'HTTP 404', gone]], { stored });
    expect(row).toMatchObject({ reason: 'gone', sign: '404', todo: expect.stringMatching(todo) as string });
    // The corrected address is another product_url, which retry refuses.
    expect(row!.todo).not.toContain('retry');
  });

  it('leaves out gone products that are the fewer, and the first few of a run at work', () => {
    expect(atEnd([['gone', 'HTTP 404', 10]], { stored: 90 })).toEqual([]);
    const live = (waiting: number) =>
      liveReasons(aRun(), [instance({ misses: [miss('gone', 'HTTP 404', { waiting })] })]);
    expect(live(4)).toEqual([]);
    expect(live(5).map(nameOf)).toEqual(['gone 404']);
  });

  describe('after the site has changed', () => {
    const left: [MissReason, string | null, number][] = [['site-changed', null, 60]];

    it('says what the products came to that were tried', () => {
      const misses = [miss('parse', lacks('title', true), { waiting: 9 }), miss('timeout', 'no reply', { waiting: 1 })];
      const [row] = atEnd(left, { instances: [instance({ misses, replies: { 200: 9, timeout: 1 } })] });
      expect(adviceOf(row!)).toMatch(/^9 of the 10 tried came to parse field-missing title: set site\.render: auto/);
    });

    it('says 404 even where a ban has made the instances forget it', () => {
      const [row] = atEnd(left, {
        instances: [instance({ replies: { 404: 30 } }), instance({ replies: { 404: 29, 200: 1 } })],
      });
      expect(adviceOf(row!)).toMatch(/^59 of the 59 tried came to gone 404: site\.product_url/);
      expect(row!.todo).not.toContain('retry');
    });

    it('names the mapping where nothing else is known', () => {
      expect(atEnd(left)[0]!.todo).toMatch(/correct the mapping/);
    });
  });

  it.each(FAILURE_REASONS)('sends no discovery to retry, which refuses it: %s', (reason) => {
    const of = (run: RunRecord): string => atEnd([[reason, null, 3]], { run })[0]!.todo;
    expect(of(aRun())).not.toBe('');
    expect(of(discovery())).not.toContain('retry');
  });

  it('adds to the listed groups what the ledger did not list, and keeps few rows', () => {
    const reasons = { timeout: 500, network: 3 };
    const ledger = Array.from({ length: 200 }, (_, i): LedgerMisses => {
      return { reason: 'timeout', detail: `rule-${i}, HTTP 200: x`, products: 2, example: `p${i}` };
    });
    const rows = finalReasons(aRun(), [], ledger, { stored: 0, gone: 0, failed: 503, reasons });
    expect(rows.reduce((sum, { products }) => sum + products, 0)).toBe(503);
    expect(rows.length).toBeLessThan(20);
    expect(rows[0]).toMatchObject({ reason: 'timeout', sign: null });
  });
});
