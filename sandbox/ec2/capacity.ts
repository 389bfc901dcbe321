/** How many instances a launch can get: limited by the pool of its type and zone and by the vCPU quota. */
import { AwsError } from '../aws-error.ts';
import type { CapacityPool } from '../conditions.ts';
import type { Ec2Context } from './context.ts';
import type { Instance, LaunchSpec } from './instance.ts';

/** vCPUs of burstable types that are not in the catalogue. */
const USUAL_VCPUS = 2;

/**
 * At most `max`, at least `min`; takes them from the pool. If `min` is not available, throws
 * InsufficientInstanceCapacity or VcpuLimitExceeded and takes nothing.
 */
export function takeCapacity(
  spec: LaunchSpec,
  { min, max }: { min: number; max: number },
  context: Ec2Context,
): number {
  const pool = poolOf(spec, context);
  const inPool = Math.min(max, pool?.left ?? Infinity);
  if (inPool < min) {
    throw new AwsError(
      'InsufficientInstanceCapacity',
      `We currently do not have sufficient ${spec.instanceType} capacity in the Availability Zone you requested (${spec.zone}). Our system will be working on provisioning additional capacity.`,
      500,
    );
  }
  const allowed = Math.min(inPool, withinQuota(spec, context));
  if (allowed < min) {
    throw new AwsError(
      'VcpuLimitExceeded',
      `You have requested more vCPU capacity than your current vCPU limit of ${context.conditions.now.vcpuQuota} allows for the instance bucket that the specified instance type belongs to. Please visit http://aws.amazon.com/contact-us/ec2-request to request an adjustment to this limit.`,
    );
  }
  if (pool) pool.left -= allowed;
  return allowed;
}

function poolOf(spec: LaunchSpec, { conditions, clock }: Ec2Context): CapacityPool | undefined {
  const fits = (pattern: string, value: string): boolean => pattern === '*' || pattern === value;
  const pool = conditions.now.pools.find((p) => fits(p.type, spec.instanceType) && fits(p.zone, spec.zone));
  return pool && (pool.recoversAtMs === null || clock.now() < pool.recoversAtMs) ? pool : undefined;
}

function withinQuota(spec: LaunchSpec, context: Ec2Context): number {
  const { vcpuQuota } = context.conditions.now;
  if (vcpuQuota === null) return Infinity;
  const used = context.fleet
    .all()
    .filter((i) => countsAgainstQuota(i, context))
    .reduce((sum, i) => sum + vcpusOf(i.instanceType, context), 0);
  return Math.max(0, Math.floor((vcpuQuota - used) / vcpusOf(spec.instanceType, context)));
}

/** Ended instances free their quota late, as on AWS. */
function countsAgainstQuota(instance: Instance, { conditions, clock }: Ec2Context): boolean {
  if (instance.state === 'pending' || instance.state === 'running') return true;
  return instance.endedAtMs !== null && clock.now() < instance.endedAtMs + conditions.now.vcpuReleaseMs;
}

const vcpusOf = (type: string, { catalogue }: Ec2Context): number =>
  catalogue.instanceTypes.find(({ name }) => name === type)?.vcpus ?? USUAL_VCPUS;
