import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { CHUNK_FACTS, INSTANCE_PHASE_FACTS, RUN_PHASE_FACTS } from '../../../shared/domain/phases.ts';
import { INSTANCE_PHASES, RUN_PHASES, canMoveInstance, canMoveRun } from '../../../shared/domain/states.ts';
import { statesPage } from '../../../docs/generate-states.ts';

describe('docs/states.md', () => {
  it('matches the code', () => {
    expect(readFileSync(new URL('../../../docs/states.md', import.meta.url), 'utf8')).toBe(statesPage());
  });

  it('gives every non-final state a time limit and its transition, and final states no limit (I11)', () => {
    const all = [
      ...RUN_PHASES.map((p) => ({ p, facts: RUN_PHASE_FACTS[p], moves: RUN_PHASES.some((to) => canMoveRun(p, to)) })),
      ...INSTANCE_PHASES.map((p) => ({
        p,
        facts: INSTANCE_PHASE_FACTS[p],
        moves: INSTANCE_PHASES.some((to) => canMoveInstance(p, to)),
      })),
      ...Object.entries(CHUNK_FACTS).map(([p, facts]) => ({ p, facts, moves: facts.moves.length > 0 })),
    ];
    for (const { p, facts, moves } of all) {
      expect(facts.last !== null, p).toBe(moves);
      expect(facts.ends !== '', p).toBe(moves);
    }
  });

  it('requires a person only for held rows', () => {
    expect(RUN_PHASES.filter((p) => RUN_PHASE_FACTS[p].last === 'person')).toEqual(['held']);
  });
});
