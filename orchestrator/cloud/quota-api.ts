/**
 * How many vCPUs a run may use: the account's quota by the Service Quotas API, less what already runs in the region.
 * https://docs.aws.amazon.com/servicequotas/2019-06-24/apireference/API_GetServiceQuota.html
 */
import type { Instance } from '@aws-sdk/client-ec2';
import { AppError } from '../../shared/domain/errors.ts';
import { describeInstanceType } from '../plan/instance-types.ts';
import { classifyAwsError } from './aws-errors.ts';
import type { AwsOptions } from './sdk-clients.ts';
import { lazyEc2, lazyQuotas } from './sdk-clients.ts';
import { quotaCodeOf, STANDARD_QUOTA } from '../plan/quota-codes.ts';

const TIMEOUT_MS = 8_000;
/** 100,000 instances. */
const MAX_PAGES = 100;

export interface QuotaQuestion extends AwsOptions {
  /** `aws.vcpu_quota`; null when it is not set. */
  configured: number | null;
  /** `aws.instance_types`: they determine which quota counts. */
  instanceTypes: readonly string[];
  /** For all queries together. Default 8 s. */
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
  /** For the plan: where the number comes from, or why there is none; null when neither matters. */
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
  const [quota, inUse] = await withTimeLimit(timeoutMs, [
    () => askQuota(options, code),
    () => askVcpusInUse(options, code),
  ]);
  if (quota instanceof AppError)
    return {
      vcpus: null,
      quota: null,
      inUse: inUse instanceof AppError ? null : inUse,
      code,
      source: 'unknown',
      note: `The vCPU quota ${code} is not known: ${quota.message}. Set aws.vcpu_quota so that the plan can use it.`,
    };
  if (inUse instanceof AppError)
    return {
      vcpus: quota,
      quota,
      inUse: null,
      code,
      source: 'service-quotas',
      note: `The vCPU quota ${code} is ${quota}; the vCPUs in use are unknown (${inUse.message}) and not subtracted.`,
    };
  const note =
    inUse === 0
      ? null
      : `Of ${quota} vCPUs in the quota ${code}, ${inUse} run already in ${question.region}: ${Math.max(0, quota - inUse)} are left.`;
  return { vcpus: Math.max(0, quota - inUse), quota, inUse, code, source: 'service-quotas', note };
}

type Ask = () => Promise<number>;

/** Each answer, or why there is none. The credential chain ignores abort signals, so a timer ends the wait. */
async function withTimeLimit(timeoutMs: number, asks: [Ask, Ask]): Promise<[number | AppError, number | AppError]> {
  const signal = AbortSignal.timeout(timeoutMs);
  const late = new Promise<never>((_, reject) => {
    signal.addEventListener('abort', () => reject(new AppError('aws-failed', `no answer within ${timeoutMs} ms`)));
  });
  const one = (ask: Ask): Promise<number | AppError> => Promise.race([ask(), late]).catch(toReason);
  return Promise.all([one(asks[0]), one(asks[1])]);
}

/** Phrased for a sentence of the plan. */
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

async function askQuota(options: AwsOptions, code: string): Promise<number> {
  const lazy = lazyQuotas(options);
  try {
    const { sdk, client } = await lazy.get();
    const reply = await client.send(new sdk.GetServiceQuotaCommand({ ServiceCode: 'ec2', QuotaCode: code }));
    const value = reply.Quota?.Value;
    if (value === undefined || !Number.isFinite(value) || value < 0)
      throw new AppError('aws-failed', 'the answer has no value');
    return Math.floor(value);
  } finally {
    lazy.close();
  }
}

async function askVcpusInUse(options: AwsOptions, code: string): Promise<number> {
  const lazy = lazyEc2(options);
  try {
    const { sdk, client } = await lazy.get();
    const found = new Map<string, number>();
    let token: string | undefined;
    for (let page = 0; page < MAX_PAGES; page++) {
      const reply = await client.send(
        new sdk.DescribeInstancesCommand({
          Filters: [{ Name: 'instance-state-name', Values: ['pending', 'running'] }],
          MaxResults: 1_000,
          ...(token ? { NextToken: token } : {}),
        }),
      );
      if (!reply.Reservations) throw new AppError('aws-failed', 'DescribeInstances answered without a list');
      for (const instance of reply.Reservations.flatMap((r) => r.Instances ?? []))
        if (isCounted(instance, code)) found.set(instance.InstanceId!, vcpusOf(instance));
      token = reply.NextToken;
      if (!token) return [...found.values()].reduce((sum, n) => sum + n, 0);
    }
    throw new AppError('aws-failed', 'DescribeInstances did not reach its last page');
  } finally {
    lazy.close();
  }
}

/** Spot instances have their own quotas. The state is checked again: some endpoints ignore filters. */
function isCounted({ InstanceId, InstanceType, State, InstanceLifecycle }: Instance, code: string): boolean {
  const isUp = State?.Name === 'pending' || State?.Name === 'running';
  return Boolean(InstanceId) && isUp && InstanceLifecycle !== 'spot' && quotaCodeOf(InstanceType ?? '') === code;
}

/** From EC2 where it shows it, else from the name of the type. */
function vcpusOf({ CpuOptions, InstanceType }: Instance): number {
  const shown = (CpuOptions?.CoreCount ?? 0) * (CpuOptions?.ThreadsPerCore ?? 1);
  return shown > 0 ? shown : describeInstanceType(InstanceType ?? '').vcpus;
}
