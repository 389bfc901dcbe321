import { describe, expect, it } from 'vitest';
import { INSTANCE_PHASES, RUN_PHASES, canMoveInstance, canMoveRun, isRunEnd } from '../../../shared/domain/states.ts';

/** Every phase that can be reached from `start`. */
function reachable<T>(start: T, all: readonly T[], canMove: (from: T, to: T) => boolean): Set<T> {
  const seen = new Set([start]);
  for (const from of seen) for (const to of all) if (canMove(from, to)) seen.add(to);
  return seen;
}

describe('states', () => {
  it('leads from every run phase to an end', () => {
    for (const phase of RUN_PHASES)
      expect([...reachable(phase, RUN_PHASES, canMoveRun)].some(isRunEnd), phase).toBe(true);
  });

  it('leads from every instance phase to terminated, which is final', () => {
    for (const phase of INSTANCE_PHASES)
      expect(reachable(phase, INSTANCE_PHASES, canMoveInstance).has('terminated'), phase).toBe(true);
    expect(reachable('terminated', INSTANCE_PHASES, canMoveInstance).size).toBe(1);
  });

  it('never ends a launched run without releasing', () => {
    for (const phase of ['launching', 'crawling'] as const) {
      for (const end of RUN_PHASES.filter(isRunEnd)) expect(canMoveRun(phase, end), `${phase} to ${end}`).toBe(false);
    }
  });
});
