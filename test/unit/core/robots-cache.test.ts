import { describe, expect, it } from 'vitest';
import { RobotsCache } from '../../../orchestrator/core/observe/robots-cache.ts';
import { unreadableRobots } from '../../../orchestrator/core/model/robots-pace.ts';
import { combinePolicies } from '../../../shared/domain/robots.ts';
import type { RobotsPolicy } from '../../../shared/domain/robots-matcher.ts';
import { VirtualClock } from '../../support/virtual-clock.ts';
import { ALLOW_ALL } from './builders.ts';

const at = (host: string, change: Partial<RobotsPolicy> = {}): RobotsPolicy => ({
  ...ALLOW_ALL,
  version: host,
  source: `http://${host}/robots.txt`,
  ...change,
});

describe('robots.txt of a site that asks for a pause', () => {
  it('is not read again before, and its policy for the fleet is an ordinary one', async () => {
    const [busy, other] = [
      { ...at('a', { access: 'none' }), retryAfterMs: 300_000, skewMs: 90_000 },
      { ...at('b'), skewMs: 90_000 },
    ];
    const readsAtMs: number[] = [];
    const clock = new VirtualClock(0);
    const cache = new RobotsCache({
      reader: {
        async read() {
          readsAtMs.push(clock.now());
          return readsAtMs.length === 1 ? combinePolicies([busy, other]) : at('a');
        },
      },
      clock,
      alarm: async () => undefined,
      deadlineMs: 14_400_000,
      heartbeatMs: 15_000,
    });
    const stop = new AbortController();
    const running = cache.run(stop.signal);
    await clock.advance(1);
    // Instances refuse orders with fields that they do not know.
    expect(JSON.stringify(cache.policy)).not.toMatch(/retryAfterMs|skewMs/);
    await clock.advance(299_000);
    expect(readsAtMs).toEqual([0]);
    await clock.advance(2_000);
    expect(readsAtMs).toEqual([0, 300_000]);
    stop.abort();
    await clock.advance(3_600_000);
    await running;
  });
});

describe('robots.txt of several domains', () => {
  it('is read again soon while that of one domain cannot be read, with an alarm for that domain', async () => {
    const reads = [
      combinePolicies([at('a'), at('b', { access: 'none' })]),
      combinePolicies([at('a', { crawlDelayMs: 20_000 }), at('b')]),
    ];
    const alarms: string[] = [];
    const clock = new VirtualClock(0);
    const cache = new RobotsCache({
      reader: { read: () => Promise.resolve(reads.length > 1 ? reads.shift()! : reads[0]!) },
      clock,
      alarm: async (detail) => void alarms.push(detail),
      deadlineMs: 14_400_000,
      heartbeatMs: 15_000,
    });
    const stop = new AbortController();
    const running = cache.run(stop.signal);
    await clock.advance(1);
    expect(alarms).toEqual([
      'nothing may be crawled until robots.txt can be read: http://b/robots.txt; that domain waits',
    ]);
    expect(cache.policy!.access).toBe('rules');
    expect(unreadableRobots(cache.policy)).toBe('robots.txt cannot be read: http://b/robots.txt');
    await clock.advance(60_000);
    expect(alarms.slice(1)).toEqual(['robots.txt can be read again: http://b/robots.txt; that domain goes on']);
    expect(unreadableRobots(cache.policy)).toBeNull();
    stop.abort();
    await clock.advance(3_600_000);
    await running;
  });
});
