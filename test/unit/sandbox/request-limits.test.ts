import { describe, expect, it } from 'vitest';
import { VirtualClock } from '../../support/virtual-clock.ts';
import { RequestLimits } from '../../../sandbox/ec2/request-limits.ts';
import { Params } from '../../../sandbox/query-protocol.ts';

const params = (values: Record<string, string> = {}): Params => new Params(new Map(Object.entries(values)), 'ec2');
const FILTERED = { 'Filter.1.Name': 'tag:run', 'Filter.1.Value.1': 'r' };

/** Number of calls admitted at one moment. */
function burst(limits: RequestLimits, action: string, values: Record<string, string> = {}, scale = 1): number {
  for (let calls = 0; ; calls++) {
    try {
      limits.take(action, params(values), scale);
    } catch (error) {
      expect(error).toMatchObject({ code: 'RequestLimitExceeded', status: 503 });
      return calls;
    }
  }
}

describe('request limits', () => {
  it.each<[string, Record<string, string>, number, number]>([
    ['RunInstances', { MinCount: '1' }, 5, 2],
    ['TerminateInstances', { 'InstanceId.1': 'i-1' }, 100, 5],
    ['CreateTags', {}, 100, 10],
    ['StopInstances', { 'InstanceId.1': 'i-1' }, 50, 5],
    ['DescribeInstances', FILTERED, 100, 20],
    ['DescribeInstances', {}, 50, 10],
    ['DescribeImages', {}, 100, 20],
  ])('admit %s with %j %i times at once and %i times per second', async (action, values, atOnce, perSecond) => {
    const clock = new VirtualClock();
    const limits = new RequestLimits(clock);
    expect(burst(limits, action, values)).toBe(atOnce);
    await clock.advance(1_000);
    expect(burst(limits, action, values)).toBe(perSecond);
    await clock.advance(3_600_000);
    expect(burst(limits, action, values)).toBe(atOnce);
  });

  it('also count the instances of a call, and consume nothing for a refused call', async () => {
    const clock = new VirtualClock();
    const limits = new RequestLimits(clock);
    limits.take('RunInstances', params({ MinCount: '999' }), 1);
    expect(() => limits.take('RunInstances', params({ MinCount: '2' }), 1)).toThrow('limit');
    limits.take('RunInstances', params({ MinCount: '1' }), 1);
    expect(burst(limits, 'RunInstances', { MinCount: '1' })).toBe(0);
  });

  it('are scaled, but always admit at least one call', async () => {
    const clock = new VirtualClock();
    expect(burst(new RequestLimits(clock), 'RunInstances', { MinCount: '1' }, 2)).toBe(10);
    const tight = new RequestLimits(clock);
    expect(burst(tight, 'RunInstances', { MinCount: '1' }, 0.01)).toBe(1);
    await clock.advance(50_000);
    expect(burst(tight, 'RunInstances', { MinCount: '1' }, 0.01)).toBe(1);
  });
});
