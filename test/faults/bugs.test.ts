/**
 * Each named bug, switched on, must break one of the invariants listed for it.
 * @module-tag nightly
 */
import { describe, expect, it } from 'vitest';
import { BUGS } from './bugs.ts';
import { bugPlans } from './plan.ts';
import { play } from './play.ts';

describe('a bug switch', () => {
  it.each(Object.entries(BUGS))('%s breaks an invariant', async (name, bug) => {
    for (const plan of bugPlans(bug, 1)) {
      const { violations } = await play(plan, name);
      if (violations.length === 0) continue;
      expect(bug.breaks).toContain(violations[0]!.invariant);
      return;
    }
    expect.fail(`${name} was not noticed`);
  });
});
