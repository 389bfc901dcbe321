import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { EventQueue } from '../../../orchestrator/simulation/event-queue.ts';

describe('EventQueue', () => {
  it('gives events out by time, and those of one time in the order in which they came', () => {
    fc.assert(
      fc.property(fc.array(fc.nat({ max: 20 })), (times) => {
        const queue = new EventQueue<[number, number]>();
        times.forEach((atMs, i) => queue.add(atMs, [atMs, i]));
        const taken = times.map(() => queue.take());
        expect(taken).toEqual(times.map((atMs, i) => [atMs, i]).sort(([a, i], [b, j]) => a! - b! || i! - j!));
        expect(queue.size).toBe(0);
      }),
    );
  });

  it('keeps the order when events come in between', () => {
    const queue = new EventQueue<string>();
    queue.add(5, 'five');
    queue.add(1, 'one');
    expect(queue.take()).toBe('one');
    queue.add(3, 'three');
    queue.add(5, 'five again');
    expect([queue.take(), queue.take(), queue.take()]).toEqual(['three', 'five', 'five again']);
  });

  it('says when the next one is, and refuses to take from nothing', () => {
    const queue = new EventQueue<string>();
    expect(queue.nextMs).toBe(Infinity);
    expect(() => queue.take()).toThrow('no event');
    queue.add(7, 'x');
    expect(queue.nextMs).toBe(7);
  });
});
