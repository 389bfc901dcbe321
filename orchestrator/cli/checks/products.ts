/** What products.query yields. */
import type { Check } from './check.ts';
import { refusalOfList } from '../make-plan.ts';
import { ok, warning } from './check.ts';
import { findingOf } from './run-checks.ts';

export const products: Check = {
  id: 'products',
  title: 'products',
  kinds: ['aws', 'dry'],
  alongside: true,
  needs: ['database'],
  limitMs: 20_000,
  isSlow: true,
  async run({ facts }) {
    const { ids, duplicates, list } = await facts.products();
    const refusal = refusalOfList(list);
    if (refusal !== null) return [findingOf(refusal)];
    if (ids.length === 0)
      return [warning('products.query yields no product: a run would have nothing to do', 'Check products.query')];
    const count = `${ids.length.toLocaleString('en')} ${ids.length === 1 ? 'product' : 'products'}`;
    if (duplicates === 0) return [ok(count)];
    return [
      warning(
        `${count}; ${duplicates} IDs are listed more than once and are crawled once`,
        'Add DISTINCT to products.query',
      ),
    ];
  },
};
