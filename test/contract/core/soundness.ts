/** What every run in memory must show at its end. */
import { expect } from 'vitest';
import { usualResult, type WholeRun } from './whole-run.ts';

/** I1, I2, I3 and I7: every product accounted for once, no machine twice, and nothing left running. */
export async function expectSound(whole: WholeRun): Promise<void> {
  const verdict = await whole.verdict();
  expect(verdict.differences).toEqual([]);
  expect(verdict.products.open).toBe(0);
  expect(whole.cloud.compute.alive()).toEqual([]);
  expect(whole.cloud.balancers.names()).toEqual([]);
  expect(new Set(whole.machines()).size).toBe(whole.machines().length);
}

/** It is sound and has completed: each product has its usual result, and each stored one its row, once. */
export async function expectAllStored(whole: WholeRun): Promise<void> {
  expect(whole.record()).toMatchObject({ phase: 'completed', exitCode: 0 });
  expect(whole.record().balancers).toEqual({});
  await expectSound(whole);
  const planned = whole.run.plan.products;
  const usual = Array.from({ length: planned }, (_, i) => usualResult({ n: i + 1, id: `p${i + 1}` }));
  const ids = (outcome: string): string[] => usual.filter((r) => r.outcome === outcome).map((r) => r.id);
  const [stored, gone, failed] = [ids('stored'), ids('gone').length, ids('failed').length];
  expect((await whole.verdict()).products).toEqual({ planned, stored: stored.length, gone, failed, open: 0 });
  expect(whole.rows().map((r) => [r.product_id, r.title, r.run_id])).toEqual(
    stored.sort().map((id) => [id, `Title ${id}`, whole.run.id]),
  );
}

/** No product was requested from the site twice. */
export function expectFetchedOnce(whole: WholeRun): void {
  expect([...whole.fetches.values()].filter((n) => n !== 1)).toEqual([]);
}
