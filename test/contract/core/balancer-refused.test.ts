/** Whole runs whose load balancer cannot be made: what they cost, what is left, what the user sees. */
import { describe, expect, it } from 'vitest';
import { OWNER } from '../../../orchestrator/core/simulation/world.ts';
import { TAG } from '../../../orchestrator/core/cloud/compute.ts';
import { PartsLeft } from '../../../orchestrator/core/cloud/load-balancer.ts';
import { buildReport } from '../../../orchestrator/core/act/results/finish.ts';
import { AppError } from '../../../shared/domain/errors.ts';
import type { RunShape } from './run-stage.ts';
import { WholeRun } from './whole-run.ts';

const SMALL: RunShape = { products: 30, instances: 3, chunkSize: 2, intervalMs: 200 };
const WORDS =
  'CreateListener at AWS failed: AccessDenied: not authorized to perform elasticloadbalancing:CreateListener';

let whole: WholeRun;

/** The load balancer is made, and the call still fails, until `over`. */
function breakEnsure(error: AppError, over: () => boolean = () => false): void {
  const { balancers } = whole.cloud;
  const ensure = balancers.ensure.bind(balancers);
  balancers.ensure = async (request) => {
    const made = await ensure(request);
    if (over()) return made;
    throw error;
  };
}

describe('a load balancer that ELBv2 refuses', () => {
  it.each([
    ['aws-invalid', 'at once', 0],
    // Rights and keys may be restored: the run waits for an eighth of its time.
    ['aws-denied', 'after its patience', 60_000],
  ] as const)(
    'ends the run (%s) %s: nothing is launched, nothing is left, and one alarm reports it',
    async (code, _, patienceMs) => {
      whole = await WholeRun.open(SMALL);
      breakEnsure(new AppError(code, WORDS));
      await whole.play(patienceMs + 30_000);
      expect(whole.elapsedMs()).toBeGreaterThanOrEqual(patienceMs);
      expect(whole.launches()).toBe(0);
      expect(whole.cloud.balancers.names()).toEqual([]);
      const record = whole.record();
      expect(record).toMatchObject({ phase: 'failed', exitCode: 4 });
      expect(record.balancers).toEqual({});
      expect(record.reason).toContain('load balancer');
      expect((await whole.verdict()).products).toMatchObject({ open: 0 });
      expect(whole.server!.alarms.filter((a) => a.includes(WORDS))).toHaveLength(1);
    },
  );

  it('is made when the right is restored, and the run continues', async () => {
    whole = await WholeRun.open(SMALL);
    const fromMs = whole.clock.now() + 20_000;
    breakEnsure(new AppError('aws-denied', WORDS), () => whole.clock.now() >= fromMs);
    await whole.play();
    expect(whole.record()).toMatchObject({ phase: 'completed', exitCode: 0 });
  });

  it('is removed at the end, with retries while ELBv2 refuses', async () => {
    whole = await WholeRun.open(SMALL);
    breakEnsure(new AppError('aws-denied', WORDS));
    let tries = 0;
    whole.cloud.balancers.onCall = ({ name }) => {
      if (name === 'removeByName' && ++tries < 6) throw new AppError('aws-throttled', 'Throttling');
    };
    await whole.play();
    expect(tries).toBe(6);
    expect(whole.cloud.balancers.names()).toEqual([]);
  });

  it('is removed by the next main server when the first one died while making it', async () => {
    whole = await WholeRun.open(SMALL);
    const first = await whole.start((name) => name === 'runs.setBalancer' && 'before');
    await whole.untilDead();
    expect(first.isDead).toBe(true);
    expect(whole.cloud.balancers.names()).toHaveLength(1);
    await whole.stores.runs.setRequest(whole.run.id, 'cancel');
    await whole.play();
    expect(whole.cloud.balancers.names()).toEqual([]);
  });
});

describe('a load balancer that cannot be made for a while', () => {
  it('blocks launches, raises one alarm with the message of ELBv2, and the run continues when it can', async () => {
    whole = await WholeRun.open(SMALL);
    let over = false;
    breakEnsure(new AppError('aws-throttled', 'CreateLoadBalancer at AWS failed: Throttling'), () => over);
    await whole.start();
    const untilMs = whole.clock.now() + 60_000;
    await whole.until('a minute', () => whole.clock.now() >= untilMs);
    expect(whole.launches()).toBe(0);
    expect(whole.server!.alarms.filter((a) => a.includes('Throttling'))).toHaveLength(1);
    over = true;
    await whole.untilEnd();
    expect(whole.record()).toMatchObject({ phase: 'completed', exitCode: 0 });
    expect(whole.cloud.balancers.names()).toEqual([]);
  });

  it('raises no alarm when it exists a second later', async () => {
    whole = await WholeRun.open(SMALL);
    let tries = 0;
    breakEnsure(new AppError('aws-failed', 'socket hang up'), () => ++tries > 1);
    await whole.play();
    expect(whole.server!.alarms).toEqual([]);
    // It was removed by the run's row: nothing is left to search for.
    expect(whole.cloud.balancers.calls.filter((c) => c.name === 'removeByName')).toEqual([]);
    expect(whole.record()).toMatchObject({ phase: 'completed', exitCode: 0 });
  });
});

describe('a load balancer beyond the quota of the account', () => {
  const FULL =
    'CreateLoadBalancer at AWS failed: TooManyLoadBalancers: The maximum number of load balancers has been reached';
  const LONG: RunShape = { ...SMALL, deadlineMs: 3_600_000 };

  async function openFull(shape: RunShape, forMs = Infinity): Promise<void> {
    whole = await WholeRun.open(shape);
    const untilMs = whole.clock.now() + forMs;
    whole.cloud.balancers.onCall = ({ name }) => {
      if (name === 'ensure' && whole.clock.now() < untilMs) throw new AppError('capacity', FULL);
    };
  }

  it.each([
    ['five minutes', LONG, 300_000],
    ['a quarter of its time', SMALL, 120_000],
  ] as const)(
    "is asked for again for %s: nothing is launched, then the run ends with 19 and with AWS's words",
    async (_, shape, ms) => {
      await openFull(shape);
      await whole.play();
      expect(whole.elapsedMs()).toBeGreaterThanOrEqual(ms);
      expect(whole.elapsedMs()).toBeLessThan(ms + 30_000);
      expect(whole.launches()).toBe(0);
      const { phase, exitCode, reason } = whole.record();
      expect({ phase, exitCode }).toEqual({ phase: 'failed', exitCode: 19 });
      expect(reason).toContain('TooManyLoadBalancers');
      expect(whole.server!.alarms.filter((a) => a.includes('is asked for again'))).toHaveLength(1);
      expect((await buildReport(whole.server!.core)).leftBehind).toBeUndefined();
    },
  );

  it('is made when another one goes in time', async () => {
    await openFull(LONG, 240_000);
    await whole.play();
    expect(whole.record()).toMatchObject({ phase: 'completed', exitCode: 0 });
  });
});

describe('a load balancer that AWS refuses to delete', () => {
  const DENIED = 'DeleteLoadBalancer at AWS failed: AccessDenied: not authorized';

  async function playRefused(refused: (n: number) => boolean = () => true): Promise<void> {
    whole = await WholeRun.open(SMALL);
    let n = 0;
    whole.cloud.balancers.onCall = ({ name }) => {
      if (name === 'remove' && refused(++n)) throw new PartsLeft('aws-denied', DENIED, ['load balancer']);
    };
    await whole.play();
  }

  it('is left behind when nothing else is to do: an alarm, exit 4, its price a month, and its rows are there', async () => {
    await playRefused();
    const { deadlineAtMs, exitCode, phase, reason, balancers } = whole.record();
    expect(whole.clock.now()).toBeLessThan(deadlineAtMs);
    expect(whole.rows()).toHaveLength((await whole.outcomes()).stored);
    expect({ phase, exitCode }).toEqual({ phase: 'completed', exitCode: 4 });
    expect(reason).toMatch(/^left behind: the load balancer cf-\S+ \(\$\d+ a month\)$/);
    // The row would make the next run of its window finish this one.
    expect(balancers).toEqual({});
    const alarms = whole.server!.alarms.filter((a) => a.includes(DENIED));
    expect(alarms).toHaveLength(1);
    expect(alarms[0]).toMatch(/\$\d+ a month.*orchestrator gc/);
    const { leftBehind } = await buildReport(whole.server!.core);
    expect(leftBehind).toEqual([
      expect.stringMatching(/^the load balancer cf-.* in ap-northeast-1, \$\d+ a month: .*AccessDenied/),
    ]);
    const { tags } = (await whole.cloud.balancers.list(OWNER))[0]!;
    expect(tags[TAG.run]).toBe(whole.run.id);
  });

  it('is no alarm for the end when the right comes back before the instances are gone', async () => {
    await playRefused((n) => n === 1);
    expect(whole.record()).toMatchObject({ phase: 'completed', exitCode: 0, reason: null });
    expect(whole.cloud.balancers.names()).toEqual([]);
    expect((await buildReport(whole.server!.core)).leftBehind).toBeUndefined();
  });

  it('costs nothing where only its target group stays, and the run still ends with 4', async () => {
    whole = await WholeRun.open(SMALL);
    whole.cloud.balancers.onCall = ({ name }) => {
      if (name === 'remove') throw new PartsLeft('aws-denied', 'DeleteTargetGroup: AccessDenied', ['target group']);
    };
    await whole.play();
    expect(whole.record()).toMatchObject({
      exitCode: 4,
      reason: expect.stringMatching(/the target group cf-\S+ \(no cost\)/),
    });
  });
});
