/** A run without its load balancer: it launches no instance, and leaves no balancer behind. */
import { describe, expect, it } from 'vitest';
import { AppError } from '../../../shared/domain/errors.ts';
import { VirtualClock } from '../../support/virtual-clock.ts';
import { NO_PROGRESS } from '../../../shared/wire/callbacks.ts';
import { decide } from '../../../orchestrator/core/decide/decide.ts';
import { sweepBalancer } from '../../../orchestrator/core/act/launches/make-balancer.ts';
import type { World } from '../../../orchestrator/core/model/world.ts';
import { aClaim, anInstance, aRun, aWorld, kindsOf, START_MS, type WorldChange } from './builders.ts';
import { aCore } from './fake-core.ts';

const REGION = 'ap-northeast-1';

const without = (change: WorldChange = {}): World =>
  aWorld({
    run: aRun({ phase: 'launching', balancers: {} }),
    instances: [0, 1, 2].map((slot) => aClaim(slot)),
    ...change,
  });

describe('before the balancer exists', () => {
  it('no instance is launched: it would cost money without products to crawl', () => {
    expect(kindsOf(decide(without()))).toEqual(['ensure-balancer']);
    const made = without({ run: aRun({ phase: 'launching' }) });
    expect(kindsOf(decide(made))).toEqual(['launch 0.1', 'launch 1.1', 'launch 2.1']);
  });

  it('an unanswered launch is retried, and a lost balancer does not block replacements', () => {
    const asked = aClaim(0, { attempts: 1, launchedAtMs: START_MS, answer: { kind: 'unknown', message: 'reset' } });
    expect(kindsOf(decide(without({ instances: [asked, aClaim(1)] })))).toContain('launch 0.1');
    const up = without({ instances: [anInstance(0), aClaim(1)] });
    expect(kindsOf(decide(up))).toContain('launch 1.1');
  });

  it('a draining run does not create it', () => {
    const world = without({ run: aRun({ balancers: {}, request: 'stop' }), instances: [anInstance(0)] });
    expect(kindsOf(decide(world))).not.toContain('ensure-balancer');
  });
});

describe('a balancer that ELBv2 refuses', () => {
  const refused = (change: WorldChange = {}): World => without({ balancerRefused: true, ...change });

  it('lets busy instances continue, and is retried', () => {
    const progress = { ...NO_PROGRESS, assigned: 9, pending: 4 };
    const busy = anInstance(0, { phase: 'crawling', progress, lastHeartbeatAtMs: START_MS + 60_000 });
    const actions = kindsOf(decide(refused({ instances: [busy, aClaim(1)] })));
    expect(actions).toContain('ensure-balancer');
    expect(actions).not.toContain('halt');
    expect(actions).not.toContain('launch 1.1');
  });

  it('does not end the run once it exists', () => {
    expect(kindsOf(decide(refused({ run: aRun({ phase: 'launching' }) })))).not.toContain('halt');
  });
});

describe('the remains of a balancer that no row names', () => {
  const ending = (change: WorldChange = {}): World =>
    aWorld({ run: aRun({ phase: 'releasing', balancers: {}, reason: 'lost-instance' }), instances: [], ...change });

  it('are removed by name at the end, once', () => {
    expect(kindsOf(decide(ending({ balancerMayRemain: true })))).toContain('sweep-balancer');
    expect(kindsOf(decide(ending({ balancerMayRemain: false })))).not.toContain('sweep-balancer');
    const known = ending({ balancerMayRemain: true, run: aRun({ phase: 'failed' }) });
    expect(kindsOf(decide(known))).toEqual(['remove-balancer']);
  });

  const sweep = async (failure: Error | null, forMs = 0) => {
    const clock = new VirtualClock(START_MS);
    const swept: string[] = [];
    const removeByName = (name: string): Promise<void> => {
      swept.push(name);
      return failure === null ? Promise.resolve() : Promise.reject(failure);
    };
    const core = aCore({ clock, regions: [{ name: REGION, balancers: { removeByName } }] as never });
    const first = await sweepBalancer(core, ending(), REGION).catch(() => 'again');
    await clock.advance(forMs);
    const last = await sweepBalancer(core, ending(), REGION).catch(() => 'again');
    return { first, last, left: core.processState.region(REGION).balancerMayRemain, alarms: core.alarms, swept };
  };

  it('are searched under the name of the run', async () => {
    expect(await sweep(null)).toMatchObject({
      left: false,
      alarms: [],
      swept: ['cf-20260101-000000-test', expect.any(String)],
    });
  });

  it('do not block a run that is not allowed to remove them: an alarm names them', async () => {
    const denied = await sweep(new AppError('aws-denied', 'DeleteTargetGroup at AWS failed: AccessDenied'));
    expect(denied).toMatchObject({ first: undefined, left: false });
    expect(denied.alarms[0]).toContain('cf-20260101-000000-test');
    expect(denied.alarms[0]).toContain('orchestrator gc');
  });

  it('are removed with retries for a limited time while ELBv2 does not answer', async () => {
    const passing = new AppError('aws-throttled', 'Throttling');
    expect(await sweep(passing, 1_000)).toMatchObject({ first: 'again', last: 'again', left: true, alarms: [] });
    expect(await sweep(passing, 3_600_000)).toMatchObject({ first: 'again', last: undefined, left: false });
  });
});
