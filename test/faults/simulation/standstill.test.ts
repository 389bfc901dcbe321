/**
 * A main server that stands still (stopped, swapped out, starved) while its fleet works on: its instances are not at
 * fault.
 */
import { describe, expect, it } from 'vitest';
import { limitsFor } from '../../../shared/domain/limits.ts';
import { START_MS } from '../../../orchestrator/core/simulation/world.ts';
import type { InstanceRecord } from '../../../orchestrator/core/model/stores.ts';
import { HOUR } from '../../support/plan-input.ts';
import { MINUTE, kill, play, standstill } from './play.ts';

const NIGHT_MS = 4 * HOUR;
const INPUT = { products: 900, minInstances: 3 };
/** As much as the fleet can crawl in the night, so that every minute that seems lost looks late. */
const TIGHT = { products: 1_350 };
const MOMENTS = Array.from({ length: 10 }, (_, i) => i / 10 + 0.02);
const LATER = MOMENTS.filter((_, i) => i % 2 === 1);

describe('F57: a main server that stands still', () => {
  const losesNothing = async (share: number, moments: readonly number[], input: object): Promise<void> => {
    for (const moment of moments) {
      const result = await play({ input, faults: [standstill(moment * NIGHT_MS, share * NIGHT_MS)] });
      const { instances, products, state } = result;
      expect({ moment, state, ...instances }).toMatchObject({ moment, state: 'completed', replaced: 0 });
      expect({ moment, launched: instances.launched }).toEqual({ moment, launched: instances.planned });
      expect(products.failed).toBe(0);
    }
  };
  const title = 'for %f of the night, at ten moments, loses no instance and launches none';
  it.each([0.002, 0.1])(title, (share) => losesNothing(share, MOMENTS, INPUT));
  it.each([0.005, 0.01, 0.02, 0.03, 0.05])(title, { tags: ['nightly'], timeout: 600_000 }, (share) =>
    losesNothing(share, MOMENTS, INPUT),
  );

  it('does not take what was crawled meanwhile for delay: no extra instance', () => losesNothing(0.1, LATER, TIGHT));

  it.each([0.01, 0.03, 0.1])(
    'for %f of the night, while an instance dies: it is replaced within two limits after the standstill',
    async (share) => {
      const { lostMs } = limitsFor(NIGHT_MS);
      const [atMs, forMs] = [10 * MINUTE, share * NIGHT_MS];
      let lost: InstanceRecord | undefined;
      const result = await play({
        input: INPUT,
        faults: [standstill(atMs, forMs), kill(atMs + forMs / 2, 1, true)],
        watch: ({ db, run }) => {
          lost ??= [...db.run(run.id).instances.values()].find((r) => r.phase === 'lost');
        },
      });
      expect(result).toMatchObject({ state: 'completed', instances: { planned: 3, launched: 4, replaced: 1 } });
      expect(lost!.reason).toBe('heartbeat-lost');
      const afterMs = lost!.phaseAtMs - (START_MS + atMs + forMs);
      expect(afterMs).toBeGreaterThan(0);
      expect(afterMs).toBeLessThanOrEqual(2 * lostMs);
    },
  );

  it('again and again: an instance that dies is still replaced', async () => {
    const often = Array.from({ length: 20 }, (_, i) => standstill((10 + 5 * i) * MINUTE, 1.2 * MINUTE));
    const result = await play({ input: INPUT, faults: [...often, kill(11 * MINUTE, 1, true)] });
    expect(result).toMatchObject({ state: 'completed', instances: { planned: 3, replaced: 1 } });
  });

  it('says so once, and takes no hello that waited for one with a wrong clock', async () => {
    let alarms: readonly string[] = [];
    // The second instance boots meanwhile.
    const faults = [standstill(1.05 * MINUTE, 10 * MINUTE)];
    await play({ input: INPUT, faults, watch: ({ server }) => void ({ alarms } = server!) });
    expect(alarms).toEqual([expect.stringMatching(/this main server stood still for 60\d s/)]);
  });
});
