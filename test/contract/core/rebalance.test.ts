/** Work that moves between healthy instances, and instances beyond the plan: F17, F19, F20, stragglers, cool-downs. */
import { describe, expect, it } from 'vitest';
import { HEARTBEAT_PATH } from '../../../shared/wire/callbacks.ts';
import type { RunShape } from './run-stage.ts';
import { expectAllStored, expectFetchedOnce } from './soundness.ts';
import { WholeRun } from './whole-run.ts';

/** Twenty products each: 20 s at the pace. */
const FLEET: RunShape = { products: 60, instances: 3, chunkSize: 2, intervalMs: 1_000 };
/** Time per page of a straggler: a tenth of the pace. */
const SLOW_PAGE_MS = 10_000;

let whole: WholeRun;

async function eventsOf(kind: string): Promise<string[]> {
  const events = await whole.stores.of(whole.run.id).run.events(1_000);
  return events.filter((e) => e.kind === kind).map((e) => e.detail ?? '');
}

/** The instance of this slot takes ten times as long for each page. */
function slowDown(slot: number): void {
  whole.fleet.onBoot = (instance) => {
    if (instance.slot === slot) instance.pageMs = SLOW_PAGE_MS;
  };
}

describe('a straggler at a tenth of the pace', () => {
  it('returns what it has not begun, and the other instances finish long before it would', async () => {
    whole = await WholeRun.open(FLEET);
    slowDown(1);
    await whole.play();
    await expectAllStored(whole);
    expectFetchedOnce(whole);
    // Alone it would take 200 s for its share; all together 29 s.
    expect(whole.elapsedMs()).toBeLessThan(60_000);
    expect(whole.fleet.of(1).fetched).toBeLessThan(8);
    expect((await eventsOf('chunk')).join('\n')).toMatch(/slot 1 has given back \d+ products/);
    expect(whole.machines()).toEqual(['0.1', '1.1', '2.1']);
  });

  it('keeps the other instances from ending while they could take over work', async () => {
    whole = await WholeRun.open({ ...FLEET, products: 30 });
    slowDown(1);
    await whole.play();
    await expectAllStored(whole);
    expectFetchedOnce(whole);
    expect(whole.machines()).toHaveLength(3);
  });
});

describe('a main server killed in the middle of a transfer', () => {
  const calls = ['work.transferChunks', 'runs.addEvent', 'work.grant', 'fleet.heartbeat', 'offers.send'];
  it.each(calls.flatMap((call) => [['before', call] as const, ['after', call] as const]))(
    '%s %s is followed by one that completes it, with no product fetched twice',
    async (when, call) => {
      whole = await WholeRun.open(FLEET);
      slowDown(1);
      let given = false;
      let killed = false;
      await whole.start((name) => {
        given ||= name === 'work.transferChunks';
        if (!given || killed || name !== call) return false;
        killed = true;
        return when;
      });
      await whole.untilDead();
      expect(killed).toBe(true);
      await whole.pass(2_000);
      await whole.play();
      await expectAllStored(whole);
      expectFetchedOnce(whole);
      expect(whole.fleet.of(1).fetched).toBeLessThan(10);
    },
  );
});

describe('an instance killed in the middle of a transfer', () => {
  it('continues without the products it returned', async () => {
    whole = await WholeRun.open(FLEET);
    slowDown(1);
    let crashed = false;
    whole.fleet.onAnswer = (path, { slot }) => {
      if (crashed || path !== HEARTBEAT_PATH || slot !== 1 || whole.elapsedMs() < 15_000) return;
      crashed = true;
      whole.fleet.of(1).crash(2_000);
    };
    await whole.play();
    expect(crashed).toBe(true);
    await expectAllStored(whole);
    expect(Math.max(...whole.fetches.values())).toBeLessThanOrEqual(2);
  });
});

describe('an address that is back from its cool-down', () => {
  it('takes over work from the instances that received its share', async () => {
    const site = { ban: { statuses: [], redirects: [], patterns: [], coolDownMs: 12_000 } };
    // Enough of them that the address helps in spite of its slower beginning after the ban.
    whole = await WholeRun.open({ ...FLEET, products: 360, site });
    let banned = false;
    whole.mood = ({ slot }) => {
      if (slot !== 2 || banned || whole.elapsedMs() < 8_000) return 'fine';
      banned = true;
      return 'ban';
    };
    await whole.start();
    await whole.until('the end of the cool-down', () => whole.elapsedMs() > 30_000);
    const before = whole.fleet.of(2).fetched;
    await whole.untilEnd();
    await expectAllStored(whole);
    expectFetchedOnce(whole);
    expect(banned).toBe(true);
    expect(whole.fleet.of(2).fetched).toBeGreaterThan(before + 10);
    // 120 s at the pace, 12 s of a third of the fleet and its slower beginning; without the takeover it would be 180 s.
    expect(whole.elapsedMs()).toBeLessThan(165_000);
  });
});

describe('F19 and F20: instances that are lost', () => {
  it('have their products crawled by other instances, and the run is on time', async () => {
    whole = await WholeRun.open({ ...FLEET, instances: 4, products: 80 });
    await whole.start();
    await whole.until('half of it', () => whole.fleet.instances.some((i) => i.fetched >= 10));
    for (const slot of [1, 2]) whole.fleet.of(slot).end();
    await whole.untilEnd();
    // What the lost instances had not uploaded is fetched again.
    await expectAllStored(whole);
  });
});

describe('instances beyond the plan', () => {
  /** 120 products at 1 s each, deadline 100 s: two instances need 60 s, and one of them takes ten times as long. */
  const TIGHT: RunShape = { products: 120, instances: 2, chunkSize: 2, intervalMs: 1_000, deadlineMs: 100_000 };

  it('are launched when the planned ones will not finish in time', async () => {
    whole = await WholeRun.open(TIGHT);
    slowDown(1);
    await whole.play();
    await expectAllStored(whole);
    expectFetchedOnce(whole);
    expect(whole.machines().length).toBeGreaterThan(2);
    expect((await eventsOf('decision')).join('\n')).toMatch(/launched in addition to the plan of 2/);
    expect(whole.elapsedMs()).toBeLessThan(100_000);
  });
});
