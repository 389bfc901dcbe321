/** A run whose bucket is gone permanently: it ends, and the next one can begin. */
import { expect, it } from 'vitest';
import { powerOffAtMs } from '../../../orchestrator/core/model/run-deadlines.ts';
import { WholeRun } from './whole-run.ts';

let whole: WholeRun;

it('F36: a run resumed after its bucket is gone ends with what the database has, and reports what is missing', async () => {
  whole = await WholeRun.open({ products: 60, instances: 2, chunkSize: 3, deadlineMs: 60_000 });
  await whole.start();
  await whole.until('some rows', async () => (await whole.outcomes()).stored > 5);
  whole.server!.kill();
  whole.cloud.objects.onCall = () => {
    throw new Error('NoSuchBucket');
  };
  const record = whole.record();
  await whole.until('every machine to be off', () => whole.clock.now() > powerOffAtMs(record), 1_200_000);
  const takenUpMs = whole.clock.now();
  await whole.play();
  const ended = whole.record();
  expect(ended).toMatchObject({ phase: 'completed', finishedAtMs: expect.any(Number) as number });
  expect(whole.clock.now() - takenUpMs).toBeLessThan(120_000);
  const { stored, gone, failed, open } = await whole.outcomes();
  expect({ open, all: stored + gone + failed, some: stored > 5 && failed > 0 }).toEqual({
    open: 0,
    all: 60,
    some: true,
  });
  const alarms = whole.server!.alarms.filter((a) => a.includes('cannot be searched for'));
  expect(alarms.length).toBeGreaterThan(0);
  expect(new Set(alarms).size).toBe(alarms.length);
});
