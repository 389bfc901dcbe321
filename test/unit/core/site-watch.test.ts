import { describe, expect, it } from 'vitest';
import { NO_PROGRESS } from '../../../shared/wire/callbacks.ts';
import { SiteWatch } from '../../../orchestrator/core/observe/site-watch.ts';
import { ALLOW_ALL } from './builders.ts';

const HEARTBEAT_MS = 10_000;

/** A fleet whose counters the test changes; each `see` is one observation, one heartbeat later. */
function stage(size = 2, startedWith = { tried: 0, unavailable: 0, served: 0 }) {
  const watch = new SiteWatch();
  const counts = Array.from({ length: size }, () => ({ ...startedWith }));
  let robots = ALLOW_ALL;
  let nowMs = 0;
  const look = () => {
    nowMs += HEARTBEAT_MS;
    const all = counts.map((c, slot) => ({ slot, epoch: 1, progress: { ...NO_PROGRESS, ...c } }));
    return watch.look({ fleet: { all }, robots, limits: { heartbeatMs: HEARTBEAT_MS } }, nowMs);
  };
  look();
  return {
    counts,
    look,
    setAccess: (access: 'all' | 'none') => (robots = { ...ALLOW_ALL, access }),
    /** Each instance makes `good` answered and `bad` unanswered requests. */
    see: (good: number, bad: number) => {
      for (const c of counts) {
        c.tried += good + bad;
        c.unavailable += bad;
      }
      return look();
    },
  };
}

describe('SiteWatch', () => {
  it('treats the site as down only when more than half of the last fifty requests were unanswered', () => {
    const { see } = stage();
    expect(see(25, 12)).toMatchObject({ slowdown: 1, detail: null });
    expect(see(0, 1)).toMatchObject({ slowdown: 1, detail: null });
    const down = see(0, 26);
    expect(down.slowdown).toBe(2);
    expect(down.detail).toMatch(/\d+ of the last \d+ requests/);
  });

  it('does not treat a site as down when half of its pages fail, or after a few requests', () => {
    const half = stage();
    for (let i = 0; i < 200; i++) expect(half.see(1, 1).slowdown).toBe(1);
    expect(stage().see(0, 12)).toMatchObject({ slowdown: 1, detail: null, suspicion: expect.any(String) as string });
  });

  it('halves the pace in steps down to an eighth, and restores it in steps when pages arrive again', () => {
    const { see } = stage();
    const seen = [see(0, 30).slowdown];
    for (let i = 0; i < 10; i++) seen.push(see(0, 3).slowdown);
    for (let i = 0; i < 10; i++) seen.push(see(3, 0).slowdown);
    expect(seen.filter((s, i) => s !== seen[i - 1])).toEqual([2, 4, 8, 4, 2, 1]);
  });

  it('takes no step before the last one has had time to reach the instances', () => {
    const { see } = stage();
    expect([see(0, 30), see(0, 30), see(0, 30)].map((s) => s.slowdown)).toEqual([2, 2, 4]);
  });

  it('treats the site as down while robots.txt cannot be read, without a slowdown: there are no requests', () => {
    const { setAccess, look } = stage();
    setAccess('none');
    expect(look()).toMatchObject({ slowdown: 1, detail: expect.stringContaining('robots.txt') as string });
    setAccess('all');
    expect(look().detail).toBeNull();
  });

  it('suspects the site by the requests since the last right page, however many right pages came before', () => {
    const { counts, see } = stage();
    for (const c of counts) c.served = 40;
    expect(see(40, 0).suspicion).toBeNull();
    expect(see(0, 2)).toMatchObject({ slowdown: 1, suspicion: expect.stringContaining('4 of the last 4') as string });
    counts[0]!.served++;
    expect(see(1, 0).suspicion).toBeNull();
  });

  it('ignores counts from before this main server, and counts nothing twice when an instance restarts', () => {
    const { counts, look, see } = stage(2, { tried: 900, unavailable: 900, served: 0 });
    expect(look()).toMatchObject({ slowdown: 1, suspicion: null });
    counts[0] = { tried: 20, unavailable: 20, served: 0 };
    expect(look().suspicion).toBeNull();
    expect(see(0, 14).slowdown).toBe(2);
  });
});
