/**
 * A probe of the shop of ancestor A, by the real main server in the modelled world: each series is a run of its own.
 */
import { describe, expect, it } from 'vitest';
import { probe } from '../../../../orchestrator/features/probe/probe.ts';
import type { ProbeLimits, Series } from '../../../../orchestrator/features/probe/series.ts';
import type { SeriesWatch } from '../../../../orchestrator/features/probe/series-watch.ts';
import { type BanPolicy, Bans } from '../../../support/shop/bans.ts';
import { WholeRun } from '../../core/whole-run.ts';

const MINUTE = 60_000;

/** 5 s: banned after 60 requests, for 30 minutes; 10 s: never. */
const SHOP_OF_A: BanPolicy = {
  when: { request: 60, underMs: 8_000 },
  forMs: 30 * MINUTE,
  answer: { type: 'status', status: 403 },
};
const { forMs: _, ...FOREVER } = SHOP_OF_A;
const LIMITS: ProbeLimits = {
  intervalsMs: [30_000, 20_000, 10_000, 5_000, 2_000],
  requests: 200,
  budget: 1_000,
  retryEveryMs: 3 * MINUTE,
  maxBanMs: 120 * MINUTE,
};

/** The shop, and the runs of the probe so far. */
function stage(
  policy: BanPolicy,
  change: Partial<ProbeLimits> = {},
  onWorld: (whole: WholeRun) => void = () => undefined,
) {
  const runs: { series: Series; times: number[] }[] = [];
  let interrupted = false;
  async function play(series: Series, watch: SeriesWatch): Promise<void> {
    const { intervalMs, requests: products, maxRequests } = series;
    const { retryEveryMs: coolDownMs } = { ...LIMITS, ...change };
    const ban = { statuses: [], redirects: [], patterns: [], coolDownMs };
    const shape = { products, instances: 1, chunkSize: 10, deadlineMs: 480 * MINUTE, intervalMs };
    const whole = await WholeRun.open({ ...shape, site: { onBan: 'cool-down', ban, maxRequests } });
    const times: number[] = [];
    runs.push({ series, times });
    const { length: number } = runs;
    whole.cloud.compute.addressOf = () => `198.51.100.${number}`;
    const bans = new Bans(() => whole.clock.now());
    bans.setPolicies([policy]);
    whole.onRequest = () => void times.push(whole.clock.now());
    whole.mood = ({ address }) => (bans.take(address) === null ? 'fine' : 'ban');
    await whole.start();
    let stopped = false;
    const isOver = async (): Promise<boolean> => {
      const world = whole.seen();
      if (world !== null && watch.note(world) && !stopped) {
        stopped = true;
        await whole.stores.runs.setRequest(whole.run.id, 'stop');
        whole.server!.loop.wake();
      }
      onWorld(whole);
      return whole.server!.ended !== null;
    };
    await whole.until('the end of the series', isOver, 480 * MINUTE);
  }
  const findings = probe(
    { ...LIMITS, ...change },
    { play, onResult: () => undefined, isInterrupted: () => interrupted },
  );
  return {
    runs,
    findings,
    interrupt: () => {
      interrupted = true;
    },
  };
}

describe('a probe', () => {
  it("finds the limits of ancestor A's shop: 5 s bans after 60 requests for 30 minutes, 10 s never", async () => {
    const { runs, findings } = stage(SHOP_OF_A);
    const { series, end, interval, coolDown, requests } = await findings;
    expect(end).toBe('banned');
    expect(series.map((s) => [s.intervalMs, s.ban === null])).toEqual([
      [30_000, true],
      [20_000, true],
      [10_000, true],
      [5_000, false],
      [5_000, false],
    ]);
    const [first, second] = series.flatMap(({ ban }) => ban ?? []);
    for (const ban of [first!, second!]) {
      expect(ban.afterRequests).toBeGreaterThanOrEqual(54);
      expect(ban.afterRequests).toBeLessThanOrEqual(66);
    }
    expect(interval).toMatchObject({ ms: 10_000, requests: 200, isBounded: true });
    expect(first!.minMs).toBeGreaterThanOrEqual(27 * MINUTE);
    expect(first!.minMs).toBeLessThanOrEqual(30 * MINUTE);
    expect(coolDown!.ms).toBeGreaterThanOrEqual(30 * MINUTE);
    expect(coolDown!.ms).toBeLessThanOrEqual(33 * MINUTE);
    // The second address proves the ban, and is left alone.
    expect(second!.maxMs).toBeNull();
    expect(new Set(series.map((s) => s.address)).size).toBe(5);
    expect(requests).toBeLessThanOrEqual(LIMITS.budget);
    expect(runs.every(({ times }) => times.length <= 200)).toBe(true);
  });

  it('asks a banned address only now and then, and stops waiting at its limit', async () => {
    const { runs, findings } = stage(FOREVER, { intervalsMs: [5_000], maxBanMs: 20 * MINUTE });
    const { coolDown, series } = await findings;
    expect(coolDown).toBeNull();
    expect(series[0]!.ban!.minMs).toBeGreaterThanOrEqual(15 * MINUTE);
    const refused = runs[0]!.times.slice(60);
    expect(refused.length).toBeLessThanOrEqual(8);
    const gaps = refused.slice(1).map((at, i) => at - refused[i]!);
    expect(Math.min(...gaps)).toBeGreaterThanOrEqual(LIMITS.retryEveryMs);
  });

  it('sends no second series when the budget has no room for it', async () => {
    const { runs, findings } = stage(SHOP_OF_A, { budget: 399 });
    expect(await findings).toMatchObject({ end: 'budget', requests: 200, interval: { ms: 30_000, isBounded: false } });
    expect(runs).toHaveLength(1);
  });

  it('reports what is known when the user ends it', async () => {
    const { findings, interrupt } = stage(SHOP_OF_A, {}, (whole) => {
      if (whole.run.settings.site.intervalMs === 20_000) interrupt();
    });
    const { end, series } = await findings;
    expect(end).toBe('interrupted');
    expect(series).toHaveLength(2);
  });

  it('proves nothing by a series whose instance is lost', async () => {
    let killed = false;
    const { findings } = stage(SHOP_OF_A, {}, (whole) => {
      const instance = whole.fleet.instances[0];
      if (killed || instance === undefined || instance.fetched < 20) return;
      killed = true;
      whole.cloud.compute.kill(instance.id);
    });
    const { end, interval, series } = await findings;
    expect(end).toBe('cut-short');
    expect(interval).toBeNull();
    expect(series[0]).toMatchObject({ ban: null, isComplete: false });
  });
});
