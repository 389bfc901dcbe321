/** The bucket as the second channel: lost callbacks cost time, not results. Whole runs by the real control loop. */
import { describe, expect, it } from 'vitest';
import { limitsFor } from '../../../shared/domain/limits.ts';
import { COMPLETION_PATH, HELLO_PATH } from '../../../shared/wire/callbacks.ts';
import { expectFetchedOnce } from './soundness.ts';
import { WholeRun } from './whole-run.ts';

const LIMITS = limitsFor(480_000);

let whole: WholeRun;

async function expectComplete(): Promise<void> {
  expect(whole.record()).toMatchObject({ phase: 'completed', exitCode: 0 });
  const verdict = await whole.verdict();
  expect(verdict.differences).toEqual([]);
  expect(whole.machines()).toEqual(['0.1', '1.1', '2.1']);
  expectFetchedOnce(whole);
  const instances = await whole.instances();
  expect(instances.map((i) => i.reason)).toEqual([null, null, null]);
  expect(instances.every((i) => i.manifestSha256 !== null)).toBe(true);
}

describe('F39: manifests are polled', () => {
  it('ends instances whose completion is permanently lost, within the time limit for silent ones', async () => {
    whole = await WholeRun.open({ products: 40, instances: 3, chunkSize: 2, intervalMs: 200 });
    whole.fleet.network = (path) => (path === COMPLETION_PATH ? { lose: 'request' } : null);
    await whole.start();
    let closedMs = 0;
    await whole.until('the manifests', () => {
      closedMs = whole.clock.now();
      return [...whole.cloud.objects.objects.keys()].filter((key) => key.endsWith('manifest.json')).length === 3;
    });
    await whole.untilEnd();
    expect(whole.clock.now() - closedMs).toBeLessThan(LIMITS.lostMs * 2);
    await expectComplete();
  });

  it('keeps instances at work that cannot reach the main server: their parts prove that they are alive', async () => {
    const deadlineMs = 14_400_000;
    const { lostMs } = limitsFor(deadlineMs);
    const shape = { products: 60, instances: 3, chunkSize: 2, intervalMs: 25_000, deadlineMs };
    whole = await WholeRun.open(shape);
    await whole.start();
    await whole.until('all products granted', async () => {
      const counts = await whole.stores.of(whole.run.id).work.counts();
      return counts.granted === counts.chunks;
    });
    const cutMs = whole.clock.now();
    whole.fleet.network = (path) => (path === HELLO_PATH ? null : { lose: 'request' });
    await whole.until('twice the silence of a lost instance', () => whole.clock.now() > cutMs + 2 * lostMs, deadlineMs);
    whole.fleet.network = () => null;
    await whole.untilEnd(deadlineMs);
    await expectComplete();
  });
});
