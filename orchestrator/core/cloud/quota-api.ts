/**
 * How many vCPUs a run may use: the account's quota by the Service Quotas API, less what already runs in the region.
 * https://docs.aws.amazon.com/servicequotas/2019-06-24/apireference/API_GetServiceQuota.html
 */
import type { Instance } from '@aws-sdk/client-ec2';
import { AppError } from '../../../shared/domain/errors.ts';
import { describeInstanceType } from '../plan/instance-types.ts';
import { classifyAwsError } from './aws-errors.ts';
import { allPages, type AwsOptions, lazyEc2, lazyQuotas, until, withClient } from './sdk-clients.ts';
import { quotaCodeOf, STANDARD_QUOTA } from '../plan/quota-codes.ts';

const TIMEOUT_MS = 8_000;

export interface QuotaQuestion extends AwsOptions {
  /** `aws.vcpu_quota`; null when it is not set. */
  configured: number | null;
  /** `aws.instance_types`: they determine which quota counts. */
  instanceTypes: readonly string[];
  /** The time limit for all queries together. Default 8 s. */
  timeoutMs?: number;
}

export interface Quota {
  /** What a run may use now; null when unknown. */
  vcpus: number | null;
  /** The account's quota, including running instances; null when unknown. */
  quota: number | null;
  /** vCPUs under this quota that run in the region; null when not queried, or when the query failed. */
  inUse: number | null;
  /** The quota's code, such as L-1216C47A. */
  code: string;
  source: 'aws.vcpu_quota' | 'service-quotas' | 'unknown';
  /** Where the number comes from, or why there is none, for the plan; null when neither matters. */
  note: string | null;
}

/**
 * `aws.vcpu_quota`, where set, is what a run may use: no call is made. Otherwise AWS is queried, for at most
 * `timeoutMs`. Never throws: a failed query makes the number unknown, and the note says why.
 */
export async function quotaFor(question: QuotaQuestion): Promise<Quota> {
  const code = question.instanceTypes.map(quotaCodeOf).includes(STANDARD_QUOTA)
    ? STANDARD_QUOTA
    : quotaCodeOf(question.instanceTypes[0] ?? '');
  if (question.configured !== null) {
    const vcpus = question.configured;
    return { vcpus, quota: vcpus, inUse: null, code, source: 'aws.vcpu_quota', note: null };
  }
  const timeoutMs = question.timeoutMs ?? TIMEOUT_MS;
  const options: AwsOptions = { ...question, timeoutMs, maxAttempts: 2 };
  const signal = AbortSignal.timeout(timeoutMs);
  const late = `no answer within ${timeoutMs} ms`;
  const [quota, inUse] = await Promise.all([
    until(signal, late, askQuota(options, code)).catch(toReason),
    until(signal, late, askVcpusInUse(options, code)).catch(toReason),
  ]);
  if (quota instanceof AppError) {
    const note = `The vCPU quota ${code} is not known: ${quota.message}. Set aws.vcpu_quota so that the plan can use it.`;
    const known = inUse instanceof AppError ? null : inUse;
    return { vcpus: null, quota: null, inUse: known, code, source: 'unknown', note };
  }
  const found = { quota, code, source: 'service-quotas' } as const;
  if (inUse instanceof AppError) {
    const note = `The vCPU quota ${code} is ${quota}; the vCPUs in use are unknown (${inUse.message}) and not subtracted.`;
    return { ...found, vcpus: quota, inUse: null, note };
  }
  const vcpus = Math.max(0, quota - inUse);
  const note = `Of ${quota} vCPUs in the quota ${code}, ${inUse} run already in ${question.region}: ${vcpus} are left.`;
  return { ...found, vcpus, inUse, note: inUse === 0 ? null : note };
}

/** The reason why a quota is unknown, phrased for a sentence of the plan. */
function toReason(error: unknown): AppError {
  if (error instanceof AppError) return error;
  const { kind, message } = classifyAwsError(error);
  // HTML or XML where JSON was requested: the server does not implement the call.
  const isUnreadable = error instanceof SyntaxError;
  const why =
    isUnreadable || kind === 'capability-missing'
      ? 'this endpoint has no such call'
      : kind === 'denied' || kind === 'credentials'
        ? `not allowed (${message})`
        : kind === 'not-found'
          ? 'AWS does not know it here'
          : message;
  return new AppError('aws-failed', why, { cause: error });
}

function askQuota(options: AwsOptions, code: string): Promise<number> {
  return withClient(lazyQuotas(options), async (quotas) => {
    const reply = await quotas.getServiceQuota({ ServiceCode: 'ec2', QuotaCode: code });
    const value = reply.Quota?.Value;
    if (value === undefined || !Number.isFinite(value) || value < 0)
      throw new AppError('aws-failed', 'the answer has no value');
    return Math.floor(value);
  });
}

function askVcpusInUse(options: AwsOptions, code: string): Promise<number> {
  return withClient(lazyEc2(options), async (ec2) => {
    const Filters = [{ Name: 'instance-state-name', Values: ['pending', 'running'] }];
    const pages = ec2.paginateDescribeInstances({ Filters, MaxResults: 1_000 });
    const found = new Map<string, number>();
    for await (const { Reservations } of allPages(pages, 'DescribeInstances')) {
      if (!Reservations) throw new AppError('aws-failed', 'DescribeInstances answered without a list');
      for (const instance of Reservations.flatMap((r) => r.Instances ?? []))
        if (isCounted(instance, code)) found.set(instance.InstanceId!, vcpusOf(instance));
    }
    return [...found.values()].reduce((sum, n) => sum + n, 0);
  });
}

/** Spot instances have their own quotas. The state is checked again: some endpoints ignore filters. */
function isCounted({ InstanceId, InstanceType, State, InstanceLifecycle }: Instance, code: string): boolean {
  const isUp = State?.Name === 'pending' || State?.Name === 'running';
  return Boolean(InstanceId) && isUp && InstanceLifecycle !== 'spot' && quotaCodeOf(InstanceType ?? '') === code;
}

/** The vCPUs of an instance, from EC2 where it shows them, else from the name of the type. */
function vcpusOf({ CpuOptions, InstanceType }: Instance): number {
  const shown = (CpuOptions?.CoreCount ?? 0) * (CpuOptions?.ThreadsPerCore ?? 1);
  return shown > 0 ? shown : describeInstanceType(InstanceType ?? '').vcpus;
}
