import { expect, it } from 'vitest';
import { TokenBucket } from '../../../orchestrator/core/model/token-bucket.ts';
import { VirtualClock } from '../../support/virtual-clock.ts';

it('allows a burst at once and then keeps the rate', async () => {
  const clock = new VirtualClock();
  const turn = new TokenBucket(clock, 5, 2);
  const times: number[] = [];
  const calls = Array.from({ length: 9 }, () => turn.take().then(() => times.push(clock.monotonic())));
  await clock.advance(10_000);
  await Promise.all(calls);
  expect(times).toEqual([0, 0, 0, 0, 0, 500, 1_000, 1_500, 2_000]);
});

it('refills while there are no calls', async () => {
  const clock = new VirtualClock();
  const turn = new TokenBucket(clock, 2, 1);
  await Promise.all([turn.take(), turn.take()]);
  await clock.advance(2_000);
  const times: number[] = [];
  const calls = [turn.take(), turn.take(), turn.take()].map((call) => call.then(() => times.push(clock.monotonic())));
  await clock.advance(5_000);
  await Promise.all(calls);
  expect(times).toEqual([2_000, 2_000, 3_000]);
});

it('F7: slows down while AWS throttles, without a burst, and regains its rate in steps', async () => {
  const clock = new VirtualClock();
  const turn = new TokenBucket(clock, 5, 2);
  const takenAt: number[] = [];
  const takeAll = async (count: number): Promise<void> => {
    const from = takenAt.length;
    for (let i = 0; i < count; i++) void turn.take().then(() => takenAt.push(clock.monotonic()));
    while (takenAt.length < from + count) {
      await new Promise((resolve) => setImmediate(resolve));
      await clock.advance(50);
    }
  };
  turn.throttled();
  turn.throttled();
  await takeAll(3);
  expect(takenAt[0]).toBeGreaterThanOrEqual(2_000);
  expect(takenAt[2]! - takenAt[0]!).toBeGreaterThanOrEqual(4_000);
  for (let i = 0; i < 20; i++) turn.answered();
  await clock.advance(60_000);
  const from = takenAt.length;
  await takeAll(6);
  expect(takenAt[from + 4]! - takenAt[from]!).toBeLessThanOrEqual(50);
  expect(takenAt[from + 5]! - takenAt[from]!).toBeLessThanOrEqual(550);
});
