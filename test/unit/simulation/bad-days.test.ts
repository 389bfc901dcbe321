/** Days on which something goes wrong, on the virtual clock: every run ends in bounded time with every product accounted for. */
import { describe, expect, it } from 'vitest';
import { HOUR } from '../plan/plan-input.ts';
import { MINUTE, ROOMY, play } from './play.ts';

const AT = 40 * MINUTE;

describe('instances that die', () => {
  it.each([
    ['EC2 says so', false],
    ['EC2 goes on showing them as running', true],
  ])('F20: five in one minute, and %s: others take their products, and the run is in time', async (_, silent) => {
    const faults = [0, 10, 25, 40, 55].map((s) => {
      return { kind: 'kill' as const, atMs: AT + s * 1_000, whom: { count: 1 }, silent };
    });
    const result = await play({ input: ROOMY, scenario: { faults } });
    expect(result).toMatchObject({ state: 'completed', exitCode: 0, onTime: true });
    expect(result.instances.replaced).toBeGreaterThanOrEqual(1);
    expect(result.reassignedAfterMs).toHaveLength(5);
  });

  it(
    'F19: from the last heartbeat of a dying instance until others have all of its products it takes at most 3 min 15 s',
    { timeout: 180_000, tags: ['nightly'] },
    async () => {
      const latencies: (number | null)[] = [];
      for (let seed = 1; seed <= 12; seed++) {
        const faults = [3, 11, 19].map((tens) => {
          const atMs = tens * 5 * MINUTE + seed * 1_234;
          return { kind: 'kill' as const, atMs, whom: { count: 1 }, silent: true };
        });
        latencies.push(...(await play({ input: ROOMY, seed, scenario: { faults } })).reassignedAfterMs);
      }
      expect(latencies.length).toBeGreaterThanOrEqual(30);
      for (const ms of latencies) expect(ms).toBeLessThanOrEqual(195_000);
    },
  );

  it('every one of them at once: all are replaced', async () => {
    const faults = [{ kind: 'kill' as const, atMs: AT, whom: 'all' as const, silent: false }];
    const result = await play({ input: ROOMY, scenario: { faults } });
    expect(result).toMatchObject({ state: 'completed', onTime: true });
  });

  it('F22: one that froze for ten minutes is fenced when it wakes, and nothing is counted twice', async () => {
    const faults = [{ kind: 'freeze' as const, atMs: AT, whom: { count: 2 }, forMs: 10 * MINUTE }];
    const result = await play({ input: ROOMY, scenario: { faults } });
    expect(result).toMatchObject({ state: 'completed', onTime: true });
    expect(result.timeline.map((t) => t.text)).toContainEqual(expect.stringMatching(/fell silent/));
  });
});

describe('launches that fail', () => {
  it('F5: no capacity anywhere for ten minutes: it waits, launches then, and is in time', async () => {
    const faults = [{ kind: 'dry' as const, atMs: 0, forMs: 10 * MINUTE }];
    const result = await play({ scenario: { faults } });
    expect(result).toMatchObject({ state: 'completed', exitCode: 0, onTime: true });
    const refusals = result.timeline.filter((t) => t.text.includes('EC2 refuses'));
    expect(refusals.length).toBeGreaterThan(0);
    // Left alone in between, not asked for each slot again and again.
    expect(refusals.length).toBeLessThan(100);
  }, 180_000);

  it('F5: no capacity in one zone: the other one takes them all', async () => {
    const faults = [{ kind: 'dry' as const, atMs: 0, forMs: 4 * HOUR, subnets: ['subnet-a'] }];
    expect(await play({ scenario: { faults } })).toMatchObject({ exitCode: 0, onTime: true });
  });

  it(
    'F5: no capacity at all ends as such, and costs nothing for instances',
    { timeout: 180_000, tags: ['nightly'] },
    async () => {
      const faults = [{ kind: 'dry' as const, atMs: 0, forMs: 5 * HOUR }];
      const result = await play({ input: { products: 2_000, deadlineMs: HOUR }, scenario: { faults } });
      expect(result).toMatchObject({ state: 'failed', exitCode: 19 });
      expect(result.instances.launched).toBe(0);
    },
  );

  it('F6: a quota for half of the fleet: those that run crawl what they can, and the rest is told', async () => {
    const result = await play({ scenario: { outside: { vcpuQuota: 4 } } });
    expect(result.instances.launched).toBe(2);
    expect(result.exitCode).toBe(15);
    expect(result.products.stored).toBeGreaterThan(2_400);
    expect(result.endMs).toBeLessThan(4 * HOUR + MINUTE);
  }, 180_000);

  it('F7: EC2 throttles every launch for a minute', async () => {
    const faults = [{ kind: 'throttle' as const, atMs: 0, forMs: MINUTE }];
    const result = await play({ scenario: { faults } });
    expect(result).toMatchObject({ exitCode: 0, onTime: true });
    expect(result.instances.replaced).toBe(0);
  });

  it('F10: two of five boots say nothing: those are replaced', async () => {
    const result = await play({ input: ROOMY, scenario: { chances: { bootFailure: 0.4 } } });
    expect(result).toMatchObject({ exitCode: 0, onTime: true });
    expect(result.instances.replaced).toBeGreaterThan(0);
  }, 180_000);
});

describe('bans', () => {
  it('F28: one address: it rests, others have its products, and the run is in time', async () => {
    const faults = [{ kind: 'ban' as const, atMs: AT, whom: { count: 1 } }];
    const result = await play({ input: ROOMY, scenario: { faults } });
    expect(result).toMatchObject({ state: 'completed', exitCode: 0, onTime: true });
    expect(result.instances).toMatchObject({ banned: 1, replaced: 0 });
  });

  it('F28: one address with on_ban replace: another instance takes its place', async () => {
    const faults = [{ kind: 'ban' as const, atMs: AT, whom: { count: 1 } }];
    const result = await play({ input: ROOMY, scenario: { faults, rules: { onBan: 'replace' } } });
    expect(result).toMatchObject({ state: 'completed', exitCode: 0 });
    expect(result.instances.replaced).toBe(1);
  });

  it('F28: all addresses: the run ends banned, with what it has', async () => {
    const faults = [{ kind: 'ban' as const, atMs: AT, whom: 'all' as const }];
    const result = await play({ input: ROOMY, scenario: { faults } });
    expect(result).toMatchObject({ state: 'banned', exitCode: 18 });
    expect(result.products.stored).toBeGreaterThan(1_000);
    expect(result.products.failed).toBeGreaterThan(0);
    expect(result.endMs).toBeLessThan(AT + 10 * MINUTE);
  });
});

describe('slow instances', () => {
  it('one at a tenth of the pace: others crawl what it cannot', async () => {
    const faults = [{ kind: 'slow' as const, atMs: AT, whom: { count: 1 }, factor: 10 }];
    const result = await play({ input: ROOMY, scenario: { faults } });
    expect(result).toMatchObject({ exitCode: 0, onTime: true });
    expect(result.timeline.map((t) => t.text)).toContainEqual(expect.stringMatching(/given back/));
  });

  it.each([3, 10])('three that are %i times slower, with no time left for that: no chunk bounces', async (factor) => {
    const faults = [{ kind: 'slow' as const, atMs: 20 * MINUTE, whom: { count: 3 }, factor }];
    const input = { products: 2_000, deadlineMs: HOUR, maxInstances: 7 };
    let chunks: readonly { generation: number }[] = [];
    const result = await play({
      input,
      scenario: { faults },
      watch: ({ db, run }) => void (chunks = db.run(run.id).chunks),
    });
    expect(result).toMatchObject({ state: 'completed', exitCode: 15 });
    expect(Math.max(...chunks.map((chunk) => chunk.generation))).toBeLessThanOrEqual(5);
  });
});

describe('the main server', () => {
  it.each([
    ['while it launches', 1_000, 3 * MINUTE],
    ['in the middle of the crawl', AT, 20 * MINUTE],
    ['near the end', 215 * MINUTE, 10 * MINUTE],
  ])('F41: is gone %s, and the next one takes the run up', async (_, atMs, forMs) => {
    const faults = [{ kind: 'main-server-down' as const, atMs, forMs }];
    const result = await play({ input: { minInstances: 6 }, scenario: { faults } });
    expect(result).toMatchObject({ state: 'completed', exitCode: 0, onTime: true });
    expect(result.instances.replaced).toBe(0);
  });

  it('F42: never comes back: every instance powers itself off, and a late one publishes what there is', async () => {
    const faults = [{ kind: 'main-server-down' as const, atMs: AT, forMs: 6 * HOUR }];
    const result = await play({ input: ROOMY, scenario: { faults } });
    expect(result).toMatchObject({ state: 'completed', exitCode: 15, onTime: false });
    expect(result.products.stored).toBeGreaterThan(1_000);
    expect(result.instanceMs).toBeLessThan(10 * (4 * HOUR + 11 * MINUTE));
  });
});

describe('everything at once', () => {
  const endsByTheDeadline = async (seed: number): Promise<void> => {
    const chances = { loss: 0.15, ban: 0.1, slow: 0.1, bootFailure: 0.1 };
    const maxCost = 0.8;
    const result = await play({ input: { ...ROOMY, maxCost }, scenario: { chances }, seed });
    expect(result.state).not.toBe('failed');
    expect(result.endMs).toBeLessThan(4 * HOUR + MINUTE);
    expect(result.cost).toBeLessThanOrEqual(maxCost);
  };
  const title = 'ends by the deadline with every product accounted for, within its money (seed %i)';
  it.each([1])(title, { timeout: 180_000 }, endsByTheDeadline);
  it.each([2, 3])(title, { timeout: 180_000, tags: ['nightly'] }, endsByTheDeadline);
});
