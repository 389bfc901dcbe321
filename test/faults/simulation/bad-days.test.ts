/**
 * Days on which something goes wrong, on the virtual clock: every run ends in bounded time with every product accounted
 * for.
 */
import { describe, expect, it } from 'vitest';
import { HOUR } from '../../support/plan-input.ts';
import { MINUTE, ROOMY, kill, play, slow } from './play.ts';

const AT = 40 * MINUTE;

describe('instances that die', () => {
  it(
    'F19: from the last heartbeat of a dying instance until others have all of its products it takes at most 3 min 15 s',
    { timeout: 600_000, tags: ['nightly'] },
    async () => {
      const latencies: (number | null)[] = [];
      for (let seed = 1; seed <= 12; seed++) {
        const faults = [3, 11, 19].map((tens) => kill(tens * 5 * MINUTE + seed * 1_234, 1, true));
        latencies.push(...(await play({ input: ROOMY, seed, faults })).reassignedAfterMs);
      }
      expect(latencies.length).toBeGreaterThanOrEqual(30);
      for (const ms of latencies) expect(ms).toBeLessThanOrEqual(195_000);
    },
  );

  it('every one of them at once: all are replaced', async () => {
    const result = await play({ input: ROOMY, faults: [kill(AT, Infinity)] });
    expect(result).toMatchObject({ state: 'completed', onTime: true });
  });
});

describe('slow instances', () => {
  it.each([3, 10])('three that are %i times slower, with no time left for that: no chunk bounces', async (factor) => {
    let chunks: readonly { generation: number }[] = [];
    const result = await play({
      input: { products: 2_000, deadlineMs: HOUR, maxInstances: 7 },
      faults: [slow(20 * MINUTE, 3, factor)],
      watch: ({ db, run }) => void (chunks = db.run(run.id).chunks),
    });
    expect(result).toMatchObject({ state: 'completed', exitCode: 15 });
    expect(Math.max(...chunks.map((chunk) => chunk.generation))).toBeLessThanOrEqual(5);
  });
});

describe('everything at once', () => {
  const endsByTheDeadline = async (seed: number): Promise<void> => {
    const chances = { loss: 0.15, ban: 0.1, slow: 0.1, bootFailure: 0.1 };
    const maxCost = 0.8;
    const result = await play({ input: { ...ROOMY, maxCost }, scenario: { chances }, seed });
    expect(result.state).not.toBe('failed');
    expect(result.endMs).toBeLessThan(4 * HOUR + MINUTE);
    expect(result.cost).toBeLessThanOrEqual(maxCost);
  };
  const title = 'ends by the deadline with every product accounted for, within its money (seed %i)';
  it.each([1])(title, { timeout: 600_000 }, endsByTheDeadline);
  it.each([2, 3])(title, { timeout: 600_000, tags: ['nightly'] }, endsByTheDeadline);
});
