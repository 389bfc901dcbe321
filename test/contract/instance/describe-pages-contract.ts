/** What every instance must do with several pages at a time: the program of an instance, and the modelled one. */
import { describe, expect, it } from 'vitest';
import { domainOf } from '../../../shared/domain/domains.ts';
import { InstanceStage, type MakeInstance } from './stage.ts';

const SHOPS = ['a', 'b', 'c'].map((host) => ({ url: `http://${host}.example/{id}`, weight: 1 }));
const PRODUCTS = 12;
/** Several intervals. */
const PAGE_MS = 5_000;

const domainOfProduct = (n: number): number => domainOf(SHOPS, `p${n}`);

export function describePagesContract(name: string, make: MakeInstance): void {
  /** An instance that crawls PRODUCTS products of three domains, until all have an outcome. */
  async function crawling(pagesAtOnce: number): Promise<InstanceStage> {
    const places = pagesAtOnce === 1 ? {} : { pagesAtOnce };
    const stage = await InstanceStage.open(make, { site: { productUrl: SHOPS, robots: 'ignore', ...places } });
    stage.pageMs = PAGE_MS;
    await stage.give('1-1', [1, PRODUCTS], { sealed: true });
    stage.orders = { ...stage.orders, sealed: true };
    return stage;
  }

  const isDone = (stage: InstanceStage) => (): boolean => stage.last.phase === 'done';

  /** The requests that were under way when this one began, itself included. */
  const besides = ({ requests }: InstanceStage, at: number): { n: number; atMs: number }[] =>
    requests.slice(0, at + 1).filter(({ atMs }) => atMs > requests[at]!.atMs - PAGE_MS);

  const mostAtOnce = (stage: InstanceStage): number =>
    Math.max(...stage.requests.map((_, at) => besides(stage, at).length));

  describe(`${name}: pages under way`, () => {
    it.each([
      [1, 1],
      [2, 2],
      [8, 3],
    ])('are, with %i at once of three domains, at most %i', async (pagesAtOnce, most) => {
      const stage = await crawling(pagesAtOnce);
      await stage.until('the end', isDone(stage));
      expect([mostAtOnce(stage), stage.last.progress.stored]).toEqual([most, PRODUCTS]);
      for (const [at, { n, atMs }] of stage.requests.entries()) {
        const next = stage.requests.slice(at + 1).find((later) => domainOfProduct(later.n) === domainOfProduct(n));
        if (next !== undefined) expect(next.atMs - atMs).toBeGreaterThanOrEqual(PAGE_MS);
      }
    });

    it('are each tried alone when the process died meanwhile, one after the other', async () => {
      const stage = await crawling(8);
      await stage.until('three pages', () => stage.requests.length === 3);
      stage.instance.crash(10);
      await stage.until('the end', isDone(stage));
      const [first, again] = [stage.asked.slice(0, 3), stage.asked.slice(3, 6)];
      expect(new Set(again)).toEqual(new Set(first));
      for (const at of [3, 4, 5]) expect(besides(stage, at).slice(at === 3 ? -1 : 0)).toHaveLength(1);
      expect(besides(stage, 6)[0]!.atMs).toBe(stage.requests[6]!.atMs);
      expect([stage.last.progress.stored, stage.requests.length]).toEqual([PRODUCTS, PRODUCTS + 3]);
    });

    it.each([1, 5, 9])(
      'are asked for at most twice beside product %i, which kills the process and fails',
      async (deadly) => {
        const stage = await crawling(8);
        const timesAsked = (n: number): number => stage.asked.filter((other) => other === n).length;
        for (let deaths = 0; stage.last.phase !== 'done'; deaths++) {
          await stage.until('the page', () => stage.last.phase === 'done' || timesAsked(deadly) > deaths);
          if (timesAsked(deadly) > deaths) stage.instance.crash(10);
        }
        expect(stage.last.progress).toMatchObject({ stored: PRODUCTS - 1, failed: 1 });
        expect(stage.results().find(({ n }) => n === deadly)).toMatchObject({ reason: 'poison' });
        for (let n = 1; n <= PRODUCTS; n++) expect(timesAsked(n)).toBeLessThanOrEqual(n === deadly ? 3 : 2);
      },
    );
  });
}
