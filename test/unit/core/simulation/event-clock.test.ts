import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { EventClock } from '../../../../orchestrator/core/simulation/event-clock.ts';

async function playAll(clock: EventClock): Promise<void> {
  while (await clock.step());
}

describe('EventClock', () => {
  it('makes events happen by time, those of one time in the order in which they were added', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.nat({ max: 20 })), async (times) => {
        const clock = new EventClock(0);
        const happened: [number, number][] = [];
        times.forEach((atMs, i) => clock.at(atMs, () => void happened.push([clock.now(), i])));
        await playAll(clock);
        expect(happened).toEqual(times.map((atMs, i) => [atMs, i]).sort(([a, i], [b, j]) => a! - b! || i! - j!));
      }),
    );
  });

  it('keeps the order when events add others, and none happens in the past', async () => {
    const clock = new EventClock(1_000);
    const happened: string[] = [];
    const note = (text: string) => () => void happened.push(`${text} ${clock.monotonic()}`);
    clock.at(1_005, note('five'));
    clock.at(1_001, () => {
      note('one')();
      clock.at(500, note('late'));
      clock.at(1_003, note('three'));
    });
    await playAll(clock);
    expect(happened).toEqual(['one 1', 'late 1', 'three 3', 'five 5']);
  });

  it('wakes sleepers in time, and one whose signal aborts at once', async () => {
    const clock = new EventClock(0);
    const happened: string[] = [];
    const stop = new AbortController();
    void clock.sleep(30).then(() => happened.push(`slept ${clock.now()}`));
    void clock.sleep(90, stop.signal).then(() => happened.push(`woken ${clock.now()}`));
    clock.at(40, () => stop.abort());
    await playAll(clock);
    expect(happened).toEqual(['slept 30', 'woken 40']);
    expect(clock.now()).toBe(40);
  });

  it('takes no event before everything is done that the last one has begun', async () => {
    const clock = new EventClock(0);
    const happened: string[] = [];
    const work = async (): Promise<void> => {
      for (let i = 0; i < 50; i++) await Promise.resolve();
      clock.at(10, () => void happened.push('first'));
    };
    void work();
    clock.at(20, () => void happened.push('second'));
    await playAll(clock);
    expect(happened).toEqual(['first', 'second']);
  });

  it('leaves out events that were cancelled', async () => {
    const clock = new EventClock(0);
    const happened: number[] = [];
    clock.at(5, () => void happened.push(5)).cancelled = true;
    clock.at(6, () => void happened.push(6));
    await playAll(clock);
    expect(happened).toEqual([6]);
    expect(clock.events).toBe(1);
  });

  it('stands still while a call waits for more than promises, and lets what follows from it run', async () => {
    const clock = new EventClock(0);
    const happened: string[] = [];
    const slow = (): Promise<void> => new Promise((resolve) => void setImmediate(resolve));
    clock.at(5, () => {
      void clock
        .hold(slow())
        .then(() => clock.hold(slow()))
        .then(() => happened.push(`answered ${clock.now()}`));
    });
    clock.at(6, () => void happened.push('six'));
    await playAll(clock);
    expect(happened).toEqual(['answered 5', 'six']);
  });
});
