import { expect, it } from 'vitest';
import { SampleRecorder } from '../../../../orchestrator/features/serve/sample-recorder.ts';
import { FleetSnapshot } from '../../../../orchestrator/core/model/fleet-snapshot.ts';
import type { RunSample } from '../../../../orchestrator/core/model/sample.ts';
import type { World } from '../../../../orchestrator/core/model/world.ts';
import { aRun } from '../../core/builders.ts';

const run = aRun();
const worldAt = (nowMs: number): World => ({ nowMs, run, fleet: new FleetSnapshot([]) }) as unknown as World;
const stepMs = run.deadlineAtMs - run.startedAtMs;

it('writes one sample at a time, and while the database hangs keeps only the newest', async () => {
  const begun: number[] = [];
  const answers: (() => void)[] = [];
  const recorder = new SampleRecorder(
    ({ atMs }: RunSample) => {
      begun.push(atMs);
      return new Promise((resolve) => answers.push(resolve));
    },
    () => undefined,
  );
  for (let i = 1; i <= 50; i++) recorder.note(worldAt(i * stepMs));
  expect(begun).toEqual([stepMs]);
  const ended = recorder.end();
  answers[0]!();
  await Promise.resolve();
  await expect.poll(() => answers).toHaveLength(2);
  answers[1]!();
  await ended;
  expect(begun).toEqual([stepMs, 50 * stepMs]);
});

it('says what was not stored, and goes on', async () => {
  const faults: string[] = [];
  const recorder = new SampleRecorder(
    () => Promise.reject(new Error('the disk is full')),
    (text) => faults.push(text),
  );
  recorder.note(worldAt(stepMs));
  await recorder.end();
  expect(faults).toEqual(Array(2).fill('a sample for the charts was not stored: the disk is full'));
});
