/**
 * Account-level launch failures: forbidden instance types, expired keys, revoked rights, machines that die at launch.
 * Whole runs by the real control loop, with an EC2 in memory. Limits are those of a run of eight minutes.
 */
import { describe, expect, it } from 'vitest';
import { AppError } from '../../../shared/domain/errors.ts';
import { limitsFor } from '../../../shared/domain/limits.ts';
import type { LaunchFailure, LaunchRequest } from '../../../orchestrator/core/cloud/compute.ts';
import { timelineOf } from '../../../orchestrator/core/read/timeline.ts';
import type { RunShape } from './run-stage.ts';
import { WholeRun } from './whole-run.ts';

const SMALL: RunShape = { products: 40, instances: 3, chunkSize: 2, intervalMs: 200 };
const LIMITS = limitsFor(480_000);
/** How long the run waits for keys and rights: an eighth of a run under 16 minutes. */
const PATIENCE_MS = 60_000;

let whole: WholeRun;

const refused = (cause: Extract<LaunchFailure, { kind: 'refused' }>['cause'], message: string): LaunchFailure => ({
  kind: 'refused',
  cause,
  message,
});
describe('a type that the account may not launch', () => {
  const FREE = 'InvalidParameterCombination: The specified instance type is not eligible for Free Tier';
  const freePlan = ({ instanceType }: LaunchRequest): LaunchFailure | null =>
    instanceType.endsWith('.nano') ? refused('type', FREE) : null;

  it('ends the run at once with the code for capacity when no other is allowed, and names what to allow', async () => {
    whole = await WholeRun.open(SMALL);
    whole.cloud.compute.refusalOf = freePlan;
    await whole.play(30_000);
    const { phase, exitCode, reason } = whole.record();
    expect({ phase, exitCode }).toEqual({ phase: 'failed', exitCode: 19 });
    expect(reason).toContain('t4g.nano');
    expect(reason).toContain('aws.instance_types');
    expect(reason).toContain('t3.micro');
  });
});

describe('a parameter that is wrong for one pool', () => {
  it('leaves the other pools to the run', async () => {
    whole = await WholeRun.open(SMALL);
    whole.cloud.compute.refusalOf = ({ subnetId }) =>
      subnetId.endsWith('a') ? refused('invalid', 'InvalidSubnetID.NotFound') : null;
    await whole.play();
    expect(whole.record()).toMatchObject({ phase: 'completed', exitCode: 0 });
  });

  it('ends the run with the code for configuration when it is wrong in all of them', async () => {
    whole = await WholeRun.open(SMALL);
    whole.cloud.compute.refusalOf = () => refused('invalid', 'InvalidAMIID.NotFound');
    await whole.play(30_000);
    const { phase, exitCode, reason } = whole.record();
    expect({ phase, exitCode }).toEqual({ phase: 'failed', exitCode: 4 });
    expect(reason).toContain('InvalidAMIID.NotFound');
  });
});

describe('keys and rights that go away', () => {
  const EXPIRED = 'RequestExpired: Request has expired';

  it.each([
    ['credentials', EXPIRED],
    ['denied', 'InvalidParameterValue: Invalid IAM Instance Profile name'],
  ] as const)('for half a minute (%s) are waited for with few calls, and the run continues', async (cause, message) => {
    whole = await WholeRun.open(SMALL);
    const untilMs = whole.clock.now() + PATIENCE_MS / 2;
    whole.cloud.compute.refusalOf = () => (whole.clock.now() < untilMs ? refused(cause, message) : null);
    await whole.play();
    expect(whole.record()).toMatchObject({ phase: 'completed', exitCode: 0 });
    // At most once in two heartbeats.
    expect(whole.launches()).toBeLessThanOrEqual(10 + PATIENCE_MS / 2 / LIMITS.heartbeatMs);
    expect(whole.server!.alarms.filter((a) => a.includes(message))).toHaveLength(1);
  });

  it('permanently end the run after its patience, with the code for configuration and the remedy', async () => {
    whole = await WholeRun.open(SMALL);
    whole.cloud.compute.refusalOf = () => refused('credentials', EXPIRED);
    await whole.play(PATIENCE_MS + 30_000);
    expect(whole.elapsedMs()).toBeGreaterThanOrEqual(PATIENCE_MS);
    const { phase, exitCode, reason } = whole.record();
    expect({ phase, exitCode }).toEqual({ phase: 'failed', exitCode: 4 });
    expect(reason).toContain(EXPIRED);
    expect(reason).toContain('renew the keys');
  });

  it('everywhere, including the bucket, end the run as soon', async () => {
    whole = await WholeRun.open(SMALL);
    await whole.start();
    const expired = (): never => {
      throw new AppError('aws-denied', EXPIRED);
    };
    whole.cloud.compute.refusalOf = () => refused('credentials', EXPIRED);
    whole.cloud.compute.onCall = ({ name }) => {
      if (name !== 'launch') expired();
    };
    whole.cloud.objects.presignGet = async () => expired();
    whole.cloud.objects.putIfAbsent = async () => expired();
    await whole.untilEnd(PATIENCE_MS + 60_000);
    expect(whole.record()).toMatchObject({ phase: 'failed', exitCode: 4 });
  });

  it('are tried again by a main server that resumes the run', async () => {
    whole = await WholeRun.open(SMALL);
    whole.cloud.compute.refusalOf = () => refused('denied', 'UnauthorizedOperation');
    const first = await whole.start();
    await whole.until('refusals', () => whole.launches() >= 4);
    first.kill();
    whole.cloud.compute.refusalOf = () => null;
    await whole.play();
    expect(whole.record()).toMatchObject({ phase: 'completed', exitCode: 0 });
  });
});

describe('machines that die at launch', () => {
  const KMS = {
    code: 'Client.InvalidKMSKey.InvalidState',
    message: 'Client.InvalidKMSKey.InvalidState: The KMS key provided is in an incorrect state',
  };

  it('end the run after some rounds with pauses, with the reason of EC2 and its remedy', async () => {
    whole = await WholeRun.open(SMALL);
    whole.cloud.compute.deathAtLaunch = KMS;
    await whole.play(60_000);
    const { phase, exitCode, reason, report } = whole.record();
    expect({ phase, exitCode }).toEqual({ phase: 'failed', exitCode: 19 });
    expect(reason).toContain('Client.InvalidKMSKey.InvalidState');
    expect(reason).toContain('KMS key');
    expect(whole.launches()).toBe(3 + 1 + 1);
    expect(whole.elapsedMs()).toBeGreaterThan(3 * LIMITS.dryPoolMs);
    expect(report).toBeNull();
    const instances = await whole.instances();
    expect(instances.filter((i) => i.instanceId !== null).map((i) => i.stateReason)).toEqual([KMS, KMS, KMS, KMS, KMS]);
    const story = timelineOf(whole.run, await whole.stores.of(whole.run.id).run.events(1_000));
    expect(story.map((l) => l.text).join('\n')).toContain('Client.InvalidKMSKey.InvalidState');
  });

  it('delay the launches until one comes up, and the fleet is completed', async () => {
    whole = await WholeRun.open({ ...SMALL, products: 120, intervalMs: 1_000 });
    whole.cloud.compute.deathAtLaunch = {
      code: 'Server.InternalError',
      message: 'Server.InternalError: Internal error on launch',
    };
    await whole.start();
    await whole.until('three deaths', () => whole.launches() === 3);
    await whole.until('the deaths to be seen', async () =>
      (await whole.instances()).some((i) => i.stateReason !== null),
    );
    whole.cloud.compute.deathAtLaunch = null;
    await whole.untilEnd();
    expect(whole.record()).toMatchObject({ phase: 'completed', exitCode: 0 });
    expect(whole.cloud.compute.all().filter((i) => i.stateReason === undefined)).toHaveLength(3);
  });
});
