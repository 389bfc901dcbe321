/**
 * Whole runs that AWS refuses a call which they need: before the first product is handed out, in mid-run, for a while.
 */
import { describe, expect, it } from 'vitest';
import { buildReport } from '../../../orchestrator/core/act/results/finish.ts';
import { AppError } from '../../../shared/domain/errors.ts';
import type { RunShape } from './run-stage.ts';
import { WholeRun } from './whole-run.ts';

/** Eight minutes: patience with a missing right is a minute. */
const SHAPE: RunShape = { products: 120, instances: 2, chunkSize: 3, deadlineMs: 480_000, intervalMs: 1_000 };
const PATIENCE_MS = 60_000;

const CALLS = {
  DescribeInstances: ['compute', 'list'],
  DescribeTargetHealth: ['balancers', 'health'],
  RegisterTargets: ['balancers', 'register'],
} as const;
type Call = keyof typeof CALLS;
const calls = Object.keys(CALLS) as Call[];

let whole: WholeRun;

/** From now on AWS refuses the call, while `isRefused`. */
function refuse(call: Call, isRefused: () => boolean = () => true): void {
  const [port, method] = CALLS[call];
  whole.cloud[port].onCall = ({ name }: { name: string }) => {
    if (name === method && isRefused())
      throw new AppError('aws-denied', `${call} at AWS failed: UnauthorizedOperation: not authorized`);
  };
}

const alarms = (text: string): string[] => whole.server!.alarms.filter((a) => a.includes(text));

async function underWay(): Promise<void> {
  whole = await WholeRun.open(SHAPE);
  await whole.start();
  await whole.until('some rows', async () => (await whole.outcomes()).stored >= 5);
}

describe('a right that is missing before the first product is handed out', () => {
  it.each(calls)('%s: is named within a minute, and ends the run with 4 in minutes', async (call) => {
    whole = await WholeRun.open(SHAPE);
    refuse(call);
    await whole.start();
    await whole.until('the alarm', () => alarms(call).length > 0, PATIENCE_MS);
    await whole.untilEnd(2 * PATIENCE_MS);
    const { phase, exitCode, reason, request } = whole.record();
    expect({ phase, exitCode, request }).toEqual({ phase: 'failed', exitCode: 4, request: 'refused-right' });
    expect(reason).toContain(`${call} at AWS failed`);
    expect(whole.launches()).toBe(2);
    expect(alarms(`the run needs in`)).toHaveLength(1);
    expect(whole.cloud.balancers.names()).toEqual([]);
    expect(whole.cloud.compute.alive()).toEqual([]);
  });
});

describe("an instances' role that may not store results", () => {
  async function openRefused(shape: RunShape, isRefused: (n: number) => boolean): Promise<void> {
    whole = await WholeRun.open(shape);
    let n = 0;
    whole.cloud.objects.onCall = (operation, key) => {
      if (operation === 'put' && key.endsWith('.gz') && isRefused(++n))
        throw Object.assign(new Error('AccessDenied: not authorized to perform s3:PutObject'), {
          name: 'AccessDenied',
        });
    };
  }

  it.each([
    ['of two instances', SHAPE],
    ['of the only one', { ...SHAPE, products: 60, instances: 1 }],
  ])('%s ends the run with 4 in minutes, and its reason names the right', async (_, shape) => {
    await openRefused({ ...shape, products: 3 * shape.products }, () => true);
    await whole.play();
    expect(whole.elapsedMs()).toBeLessThan(3 * PATIENCE_MS);
    const { phase, exitCode, reason, request } = whole.record();
    expect({ phase, exitCode, request }).toEqual({ phase: 'failed', exitCode: 4, request: 'refused-upload' });
    expect(reason).toMatch(/^the instances' role may not store results/);
    expect(alarms('Give the role in aws.instance_profile the policy')).toHaveLength(1);
  });

  it('goes on when only some calls are refused', async () => {
    await openRefused(SHAPE, (n) => n % 3 === 0);
    await whole.play();
    expect(whole.record()).toMatchObject({ phase: 'completed', exitCode: 0 });
  });
});

describe('F59: a right that is lost in mid-run', () => {
  it.each(calls)(
    '%s: the crawl goes on to its end, every instance is terminated, and the run ends with 4',
    async (call) => {
      await underWay();
      refuse(call);
      if (call === 'RegisterTargets') whole.cloud.compute.kill(whole.fleet.instances[0]!.id);
      await whole.untilEnd();
      const { phase, exitCode, reason, deadlineAtMs } = whole.record();
      expect({ phase, exitCode }).toEqual({ phase: 'completed', exitCode: 4 });
      expect(whole.clock.now()).toBeLessThan(deadlineAtMs);
      expect(reason).toContain(call);
      expect((await whole.outcomes()).reasons).not.toHaveProperty('lost-instance');
      expect(whole.cloud.compute.alive()).toEqual([]);
      expect(alarms(call).length).toBeGreaterThan(0);
      expect(whole.server!.alarms.join('\n')).not.toContain('still shows');
    },
  );

  it('lists the instances of which EC2 refuses to show whether they have ended', async () => {
    await underWay();
    refuse('DescribeInstances');
    await whole.untilEnd();
    const { leftBehind } = await buildReport(whole.server!.core);
    expect(leftBehind).toHaveLength(2);
    expect(leftBehind![0]).toMatch(
      /^the instance i-\w+ in \S+, \$\d+ a month: EC2 refuses to show whether it has ended/,
    );
    expect(whole.cloud.compute.calls.filter((c) => c.name === 'terminate').length).toBeGreaterThanOrEqual(2);
  });

  it.each(calls)('%s: is no end with 4 when it comes back', async (call) => {
    await underWay();
    const untilMs = whole.clock.now() + 20_000;
    refuse(call, () => whole.clock.now() < untilMs);
    await whole.untilEnd();
    expect(whole.record()).toMatchObject({ phase: 'completed', exitCode: 0, reason: null });
  });
});
