import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { VirtualClock } from '../../support/virtual-clock.ts';
import { healthCheckIntervalMs, type HealthCheckSettings, matchesStatus } from '../../../sandbox/elb/health-check.ts';
import { TargetGroup, type TargetInstance } from '../../../sandbox/elb/target-group.ts';

const CHECK: HealthCheckSettings = {
  path: '/',
  port: 'traffic-port',
  intervalS: 10,
  timeoutS: 5,
  healthyThreshold: 2,
  unhealthyThreshold: 2,
  matcher: '200',
};

let clock: VirtualClock;
let group: TargetGroup;
let sick: Set<string>;
let instances: Map<string, TargetInstance>;

beforeEach(() => {
  clock = new VirtualClock();
  sick = new Set();
  instances = new Map(
    ['a', 'b'].map((id) => [id, { id, state: 'running', address: `address-${id}`, zone: 'z1', vpcId: 'v' }]),
  );
  group = new TargetGroup(
    { arn: 'arn', name: 'g', port: 80, vpcId: 'v', healthCheck: CHECK },
    {
      clock,
      findInstance: (id) => instances.get(id) ?? null,
      healthCheck: async ({ address }) =>
        sick.has(address) ? { code: 'Target.Timeout', text: 'Request timed out' } : null,
    },
  );
  group.use = { loadBalancerArn: 'lb', address: 'balancer', zones: new Set(['z1']) };
});
afterEach(() => group.close());

const states = (): string[] => group.targets().map((target) => `${target.id} ${group.healthOf(target).state}`);
const turn = (): string => group.next()?.target.id ?? 'none';

describe('a target group', () => {
  it('needs one good check for a new target, and balances round robin', async () => {
    group.register('a', 80);
    group.register('b', 80);
    expect([states(), turn()]).toEqual([['a initial', 'b initial'], 'none']);
    await clock.advance(0);
    expect(states()).toEqual(['a healthy', 'b healthy']);
    expect([turn(), turn(), turn(), turn()].sort()).toEqual(['a', 'a', 'b', 'b']);
  });

  it('marks a target unhealthy and healthy again at the thresholds of bad and good checks', async () => {
    group.register('a', 80);
    group.register('b', 80);
    await clock.advance(0);
    sick.add('address-a');
    await clock.advance(1_000);
    expect(states()).toEqual(['a healthy', 'b healthy']);
    await clock.advance(1_000);
    expect(states()).toEqual(['a unhealthy', 'b healthy']);
    expect([turn(), turn()]).toEqual(['b', 'b']);
    sick.clear();
    await clock.advance(1_000);
    expect(states()).toEqual(['a unhealthy', 'b healthy']);
    await clock.advance(1_000);
    expect(states()).toEqual(['a healthy', 'b healthy']);
  });

  it('uses all targets when all are unhealthy', async () => {
    sick = new Set(['address-a', 'address-b']);
    group.register('a', 80);
    group.register('b', 80);
    await clock.advance(3_000);
    expect(states()).toEqual(['a unhealthy', 'b unhealthy']);
    expect(new Set([turn(), turn()])).toEqual(new Set(['a', 'b']));
  });

  it.each([
    ['its zone is not enabled', () => (instances.get('a')!.zone = 'z2'), 'Target.NotInUse'],
    ['it is stopped', () => (instances.get('a')!.state = 'stopped'), 'Target.InvalidState'],
    ['no listener forwards to the group', () => (group.use = null), 'Target.NotInUse'],
  ])('does not use a target when %s', async (_why, change, reason) => {
    group.register('a', 80);
    await clock.advance(0);
    change();
    expect(group.healthOf(group.targets()[0]!)).toMatchObject({ state: 'unused', reason });
    expect(turn()).toBe('none');
  });

  it('drains for the delay, aborts the remaining requests, and removes the target', async () => {
    group.attributes.set('deregistration_delay.timeout_seconds', '5');
    group.register('a', 80);
    await clock.advance(0);
    let broken = 0;
    group.next()!.target.inFlight.add(() => (broken += 1));
    group.deregister('a', null);
    expect([states(), turn()]).toEqual([['a draining'], 'none']);
    await clock.advance(4_999);
    expect(broken).toBe(0);
    await clock.advance(1);
    expect([states(), broken]).toEqual([[], 1]);
  });

  it('accepts a draining target again, and restarts its checks', async () => {
    group.register('a', 80);
    await clock.advance(0);
    group.deregister('a', 80);
    group.register('a', 80);
    expect(states()).toEqual(['a initial']);
    await clock.advance(400_000);
    expect(states()).toEqual(['a healthy']);
  });

  it('removes instances that EC2 has forgotten', async () => {
    group.register('a', 80);
    instances.delete('a');
    await clock.advance(1_000);
    expect(states()).toEqual([]);
  });
});

it.each([
  ['200', 200, true],
  ['200', 204, false],
  ['200-299', 204, true],
  ['200,302', 302, true],
  ['200,302', 301, false],
])('the matcher %s on status %i gives %s', (matcher, status, expected) => {
  expect(matchesStatus(matcher, status)).toBe(expected);
});

it('checks ten times as often as configured, but at most four times a second', () => {
  expect(healthCheckIntervalMs(CHECK)).toBe(1_000);
  expect(healthCheckIntervalMs({ ...CHECK, intervalS: 1 })).toBe(250);
});
