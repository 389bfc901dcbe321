import { expect, it } from 'vitest';
import { createTokenBucket } from '../../../orchestrator/control/token-bucket.ts';
import { VirtualClock } from '../../../shared/adapters/virtual-clock.ts';

it('lets a burst through at once and then keeps the rate', async () => {
  const clock = new VirtualClock();
  const take = createTokenBucket(clock, 5, 2);
  const times: number[] = [];
  const calls = Array.from({ length: 9 }, () => take().then(() => times.push(clock.monotonic())));
  await clock.advance(10_000);
  await Promise.all(calls);
  expect(times).toEqual([0, 0, 0, 0, 0, 500, 1_000, 1_500, 2_000]);
});

it('fills up again while nobody calls', async () => {
  const clock = new VirtualClock();
  const take = createTokenBucket(clock, 2, 1);
  await Promise.all([take(), take()]);
  await clock.advance(2_000);
  const times: number[] = [];
  const calls = [take(), take(), take()].map((call) => call.then(() => times.push(clock.monotonic())));
  await clock.advance(5_000);
  await Promise.all(calls);
  expect(times).toEqual([2_000, 2_000, 3_000]);
});
