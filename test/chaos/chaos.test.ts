/**
 * Eight rounds of `npm run chaos`: each kills, freezes or cuts off another part of a run on real processes.
 *
 * @module-tag nightly
 */
import { describe, expect, it } from 'vitest';
import { useGround } from './ground.ts';
import { playRound } from './round.ts';
import { drawScenario } from './scenario.ts';

const SHOP_SEED = 41;
const SEEDS = [1, 2, 3, 4, 5, 6, 7, 8];

describe('chaos of a discovery', () => {
  const ground = useGround(SHOP_SEED, 100, true);

  it.each([1, 2, 3, 4, 5, 6])(
    'F41, F46: it finds every product, and verify holds, whatever happens: seed %i',
    async (seed) => {
      const scenario = { ...drawScenario(seed), products: 100 };
      const { faults, story, folder } = await playRound({ ...ground, shopSeed: SHOP_SEED, discovers: true }, scenario);
      expect(faults, `${story.join('\n')}\nlogs: ${folder}`).toEqual([]);
    },
  );
});

describe('chaos', () => {
  const ground = useGround(SHOP_SEED, 100);

  it.each(
    SEEDS.map((seed) => ({
      seed,
      what: drawScenario(seed)
        .steps.map(({ fault }) => fault.text)
        .join(', then '),
    })),
  )('F41, F46: the run ends, and verify holds, after: $what', async ({ seed }) => {
    const { faults, story, folder } = await playRound({ ...ground, shopSeed: SHOP_SEED }, drawScenario(seed));
    const again = `npm run chaos -- --seed ${seed} --rounds 1; logs: ${folder}`;
    expect(faults, `${story.join('\n')}\n${again}`).toEqual([]);
  });
});
