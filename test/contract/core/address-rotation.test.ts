/**
 * Address rotation (`aws.recycle_every`): the real control loop on a real database, with a fake fleet and virtual time.
 */
import { describe, expect, it } from 'vitest';
import { buildReport } from '../../../orchestrator/core/act/results/finish.ts';
import { ProcessState } from '../../../orchestrator/core/model/process-state.ts';
import { timelineOf } from '../../../orchestrator/core/read/timeline.ts';
import type { RunShape } from './run-stage.ts';
import { expectAllStored, expectFetchedOnce } from './soundness.ts';
import { WholeRun } from './whole-run.ts';

const RENEWED: RunShape = {
  products: 60,
  instances: 3,
  chunkSize: 2,
  intervalMs: 1_500,
  deadlineMs: 180_000,
  recycleEveryMs: 9_000,
};

let whole: WholeRun;

const epochs = (): number[] => whole.machines().map((place) => Number(place.split('.')[1]));

describe('a run whose addresses are rotated', () => {
  it('gives every slot fresh addresses, fetches each product once, and reports it', async () => {
    whole = await WholeRun.open(RENEWED);
    await whole.play();
    await expectAllStored(whole);
    for (const slot of [0, 1, 2])
      expect(whole.machines().filter((place) => place.startsWith(`${slot}.`)).length).toBeGreaterThan(1);
    expectFetchedOnce(whole);
    expect(whole.server!.alarms).toEqual([]);
    const rows = whole.stores.of(whole.run.id);
    const report = await buildReport({ ...rows, clock: whole.clock, processState: new ProcessState() });
    const rotated = epochs().filter((epoch) => epoch > 1).length;
    expect(report.notes).toContain(`addresses rotated, as aws.recycle_every asks: ${rotated}`);
    expect(report.notes.join()).not.toContain('was given up');
    const events = await whole.stores.of(whole.run.id).run.events(1_000);
    const story = timelineOf(whole.run, events).map((line) => line.text);
    expect(story.join('\n')).toContain('make room for a fresh address (aws.recycle_every)');
  });

  it('completes a rotation that a dead main server has begun', async () => {
    whole = await WholeRun.open(RENEWED);
    await whole.start();
    await whole.until('a rotation', async () =>
      (await whole.instances()).some((i) => i.rotateAtMs !== null && i.phase === 'crawling'),
    );
    whole.server!.kill();
    await whole.play();
    await expectAllStored(whole);
    expectFetchedOnce(whole);
  });

  it('never has more machines than the plan, except those that are terminating', async () => {
    whole = await WholeRun.open(RENEWED);
    let most = 0;
    whole.cloud.compute.onCall = () => {
      most = Math.max(most, whole.cloud.compute.alive().length);
    };
    await whole.play();
    await expectAllStored(whole);
    expect(most).toBeLessThanOrEqual(3);
  });
});
