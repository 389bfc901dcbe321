/** Whole runs whose load balancer cannot be made: what they cost, what is left, what the user sees. */
import { describe, expect, it } from 'vitest';
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
