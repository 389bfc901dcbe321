import { describe, expect, it } from 'vitest';
import { HostWishes } from '../../../orchestrator/core/callbacks/host-wishes.ts';
import type { HostWish } from '../../../orchestrator/core/model/stores.ts';
import { VirtualClock } from '../../support/virtual-clock.ts';
import { aHeartbeat, aWorld, START_MS } from './builders.ts';
import { aCore } from './fake-core.ts';

const wish = (host: string, changes: Partial<HostWish> = {}): HostWish => ({
  host,
  denied: true,
  paceMs: null,
  wishedAtMs: START_MS,
  ...changes,
});

/** A main server, and what is stored. */
function openScene(clock = new VirtualClock(START_MS)) {
  const stored: HostWish[] = [];
  const asked: number[] = [];
  const work = {
    hostWishes: (sinceMs: number) => {
      asked.push(sinceMs);
      return Promise.resolve(stored.filter(({ wishedAtMs }) => wishedAtMs >= sinceMs));
    },
  };
  const world = aWorld();
  const start = (): HostWishes => new HostWishes(aCore({ work: work as never, clock }));
  let wishes = start();
  return {
    clock,
    stored,
    asked,
    world,
    restart: () => (wishes = start()),
    /** What the reply to a heartbeat has, once the last look is old enough. */
    beat: async (heard?: string) => {
      await clock.advance(world.limits.heartbeatMs);
      const told = await wishes.newFor(aHeartbeat(heard === undefined ? {} : { wishes: heard }), world);
      return told && { version: told.version, hosts: told.wishes.map(({ host }) => host) };
    },
    beatAtOnce: () => wishes.newFor(aHeartbeat(), world),
  };
}

describe('what operators ask of hosts in mid-run', () => {
  it('is told with each reply until the instance has heard of it', async () => {
    const { stored, beat } = openScene();
    expect(await beat()).toBeNull();
    stored.push(wish('a.example'));
    const first = await beat();
    expect(first?.hosts).toEqual(['a.example']);
    // The reply was lost.
    expect(await beat()).toEqual(first);
    expect(await beat(first?.version)).toBeNull();
    // Another instance, and a new process of the same one.
    expect(await beat()).toEqual(first);
  });

  it('is told again when it changes, and nothing else with it', async () => {
    const { stored, beat } = openScene();
    stored.push(wish('a.example'), wish('b.example'));
    const first = await beat();
    stored[0] = wish('a.example', { denied: null, wishedAtMs: START_MS + 1 });
    const second = await beat(first?.version);
    expect(second?.hosts).toEqual(['a.example']);
    expect(await beat(second?.version)).toBeNull();
    expect((await beat())?.hosts).toEqual(['b.example', 'a.example']);
  });

  it('is told by a new main server too, of all the run', async () => {
    const { stored, beat, restart, world, asked } = openScene();
    stored.push(wish('a.example', { wishedAtMs: world.run.startedAtMs }));
    const first = await beat();
    restart();
    expect((await beat(first?.version))?.hosts).toEqual(['a.example']);
    expect(asked.at(-1)).toBeLessThan(world.run.startedAtMs);
  });

  it('is found though the clock of an operator is wrong by minutes', async () => {
    const { stored, beat, clock } = openScene();
    stored.push(wish('ahead.example', { wishedAtMs: clock.now() + 3_600_000 }));
    const first = await beat();
    stored.push(wish('behind.example', { wishedAtMs: clock.now() - 300_000 }));
    expect((await beat(first?.version))?.hosts).toEqual(['behind.example']);
  });

  it('is read at most ten times in the time between two heartbeats, however many instances there are', async () => {
    const { asked, beatAtOnce, beat } = openScene();
    await beat();
    await Promise.all(Array.from({ length: 50 }, beatAtOnce));
    expect(asked).toHaveLength(1);
  });

  it('comes in replies of a thousand', async () => {
    const { stored, beat } = openScene();
    for (let i = 0; i < 1_500; i++) stored.push(wish(`h${i}.example`));
    const first = await beat();
    expect(first?.hosts).toHaveLength(1_000);
    const second = await beat(first?.version);
    expect(second?.hosts).toHaveLength(500);
    expect(second?.hosts.at(-1)).toBe('h1499.example');
    expect(await beat(second?.version)).toBeNull();
  });

  it.each(['', 'x', 'x-5', '-1', 'NaN'])('believes no version that is not its own: %j', async (heard) => {
    const { stored, beat } = openScene();
    stored.push(wish('a.example'));
    expect((await beat(heard))?.hosts).toEqual(['a.example']);
  });
});
