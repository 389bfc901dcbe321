import { describe, expect, it } from 'vitest';
import { BUDGET_BYTES, PageBudget } from '../../../crawl-api/fetch/page-budget.ts';
import { VirtualClock } from '../../support/virtual-clock.ts';

const PART = BUDGET_BYTES / 4;

/** Pages that take bytes, and what they were told. */
function createPages() {
  const clock = new VirtualClock();
  const budget = new PageBudget(clock);
  const resumed: string[] = [];
  const pages = new Map<string, object>();
  const pageOf = (name: string): object => pages.get(name) ?? pages.set(name, { name }).get(name)!;
  return {
    clock,
    resumed,
    take: (name: string, bytes = PART) => budget.take(pageOf(name), bytes, () => resumed.push(name)),
    leave: (name: string) => budget.leave(pageOf(name)),
    waitedMs: (name: string) => budget.waitedMs(pageOf(name)),
  };
}

describe('the budget of pages under way', () => {
  it('lets all go on while they fit, and beyond it only the page that began first', () => {
    const pages = createPages();
    expect(['a', 'b', 'c', 'd'].map((name) => pages.take(name))).toEqual([true, true, true, true]);
    expect([pages.take('b'), pages.take('a'), pages.take('a', 10 * BUDGET_BYTES)]).toEqual([false, true, true]);
    expect(pages.resumed).toEqual([]);
  });

  it('lets waiting pages go on when there is room again: those that fit, or the first one', () => {
    const pages = createPages();
    pages.take('a', 2 * BUDGET_BYTES);
    pages.take('b', 2 * BUDGET_BYTES);
    pages.take('c');
    pages.leave('a');
    expect(pages.resumed).toEqual(['b']);
    pages.leave('b');
    expect(pages.resumed).toEqual(['b', 'c']);
    pages.leave('b');
    pages.leave('never begun');
    expect(pages.take('c')).toBe(true);
  });

  it('knows how long a page has waited', async () => {
    const pages = createPages();
    pages.take('a', 2 * BUDGET_BYTES);
    pages.take('b');
    await pages.clock.advance(700);
    expect([pages.waitedMs('a'), pages.waitedMs('b'), pages.waitedMs('c')]).toEqual([0, 700, 0]);
    pages.leave('a');
    await pages.clock.advance(700);
    expect(pages.waitedMs('b')).toBe(700);
    pages.leave('b');
    expect(pages.waitedMs('b')).toBe(0);
  });
});
