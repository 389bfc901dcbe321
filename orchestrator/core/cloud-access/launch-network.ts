/** How a run is reached: security groups, the scheme of a new load balancer, or the user's own balancer. */
import { AppError } from '../../../shared/domain/errors.ts';
import { type Compute, ROLE, type SubnetInfo, TAG } from '../cloud/compute.ts';
import { type BalancerScheme, type LoadBalancer, SHARED_PORTS } from '../cloud/load-balancer.ts';
import { metadataOptions, type OwnInterface, ownInterfaces } from '../cloud/own-vpc.ts';
import { BALANCER_ZONES, NO_BALANCER, type RunSettings } from '../model/run-settings.ts';
import type { Environment } from '../config/load-config.ts';

export interface LaunchNetwork {
  securityGroupIds: string[];
  /** The balancer of the run; null where the main server offers the products to the instances itself. */
  balancer: {
    /** ARN of the user's load balancer; null: the run makes one. */
    existing: string | null;
    scheme: BalancerScheme;
    securityGroupIds: string[];
  } | null;
  /** What was chosen and why, for the start-up lines. */
  notes: string[];
}

type Cloud = { compute: Pick<Compute, 'securityGroups'>; balancers?: Pick<LoadBalancer, 'find'> };

/** Queries the network interfaces of this machine; null in a dry run, whose fleet runs on it. */
export type OwnNetwork = (() => Promise<OwnInterface[]>) | null;

export const ownNetwork = (dryRun: boolean, environment: Environment): OwnNetwork =>
  dryRun ? null : () => ownInterfaces(metadataOptions(environment));

/** Throws when the user's load balancer cannot serve the subnets, or whether a new one can be internal is unknown. */
export async function launchNetwork(
  cloud: Cloud,
  aws: RunSettings['aws'],
  subnets: readonly SubnetInfo[],
  own: OwnNetwork,
): Promise<LaunchNetwork> {
  const { vpcId } = subnets[0]!;
  const notes: string[] = [];
  const instances = await instanceGroups(cloud.compute, aws, vpcId);
  if (instances.isDefault && own !== null)
    notes.push(
      `No security group in ${vpcId} has the tag ${ROLE.key}=instance, so instances are in its default group: see orchestrator setup.`,
    );
  if (aws.loadBalancer === NO_BALANCER) {
    await assertReach(aws, vpcId, own);
    notes.push('No load balancer is made: this machine offers the products to the instances itself.');
    return { securityGroupIds: instances.ids, balancer: null, notes };
  }
  const existing = aws.loadBalancer ?? null;
  if (existing !== null) {
    const arn = await checkExisting(cloud, existing, subnets);
    notes.push(
      `The load balancer ${existing} is used: a listener from port ${SHARED_PORTS.first} on and a target group are added for the run and removed after it.`,
    );
    const balancer = { existing: arn, scheme: 'internal' as const, securityGroupIds: [] };
    return { securityGroupIds: instances.ids, balancer, notes };
  }
  const balancers = await groupsOf(cloud.compute, { ...aws, securityGroups: [] }, 'balancer', vpcId);
  const { scheme, why } = await schemeFor(aws, vpcId, own);
  if (why !== null) notes.push(`The load balancer will be ${scheme}: ${why}.`);
  // Without a group of its own it gets that of the instances: a default group lets its members reach each other.
  const securityGroupIds = balancers.isDefault ? instances.ids : balancers.ids;
  return { securityGroupIds: instances.ids, balancer: { existing: null, scheme, securityGroupIds }, notes };
}

/** The groups of the instances, whatever load balancer serves them. */
export const instanceGroups = (
  compute: Cloud['compute'],
  aws: Pick<RunSettings['aws'], 'securityGroups' | 'owner'>,
  vpcId: string,
): Promise<{ ids: string[]; isDefault: boolean }> => groupsOf(compute, aws, 'instance', vpcId);

async function groupsOf(
  compute: Cloud['compute'],
  { securityGroups: configured, owner }: Pick<RunSettings['aws'], 'securityGroups' | 'owner'>,
  role: 'instance' | 'balancer',
  vpcId: string,
): Promise<{ ids: string[]; isDefault: boolean }> {
  if (configured.length > 0) return { ids: await compute.securityGroups(configured, vpcId), isDefault: false };
  try {
    const ofRole = await compute.securityGroups([`tag:${ROLE.key}=${role}`], vpcId);
    return { ids: ofRole.length > 1 ? await ownOf(compute, ofRole, owner, vpcId) : ofRole, isDefault: false };
  } catch (error) {
    if (!isMissing(error)) throw error;
    return { ids: await compute.securityGroups([], vpcId), isDefault: true };
  }
}

/** Those of this owner where the VPC has groups of several setups; all of them where none names this owner. */
async function ownOf(
  compute: Cloud['compute'],
  ids: readonly string[],
  owner: string | undefined,
  vpcId: string,
): Promise<string[]> {
  const ofOwner = await compute
    .securityGroups([`tag:${TAG.owner}=${owner ?? ''}`], vpcId)
    .catch((error: unknown): string[] => {
      if (isMissing(error)) return [];
      throw error;
    });
  const own = ids.filter((id) => ofOwner.includes(id));
  return own.length > 0 ? own : [...ids];
}

/** No group has the tag. */
const isMissing = (error: unknown): boolean => error instanceof AppError && error.code === 'aws-invalid';

async function checkExisting(cloud: Cloud, existing: string, subnets: readonly SubnetInfo[]): Promise<string> {
  const found = (await cloud.balancers?.find(existing)) ?? null;
  const refuse = (message: string, hint: string): AppError =>
    new AppError('aws-invalid', `aws.load_balancer: ${message}`, { hint });
  const hint = 'Give the name or the ARN of an application load balancer in the VPC of the subnets, or leave it out.';
  if (found === null) throw refuse(`ELBv2 does not know ${existing}`, hint);
  if (found.type !== 'application') throw refuse(`${existing} is a ${found.type} load balancer`, hint);
  const { vpcId } = subnets[0]!;
  if (found.vpcId !== vpcId) throw refuse(`${existing} is in ${found.vpcId}, the subnets are in ${vpcId}`, hint);
  const missing = [...new Set(subnets.map((s) => s.zone))].filter((zone) => !found.zones.includes(zone));
  if (missing.length > 0)
    throw refuse(
      `${existing} is not enabled in ${missing.join(', ')}, where it would send nothing to instances`,
      'Enable a subnet of each zone on it, or name in aws.subnets only subnets of its zones.',
    );
  return found.loadBalancerArn;
}

async function assertReach(aws: RunSettings['aws'], vpcId: string, own: OwnNetwork): Promise<void> {
  if (own === null || aws.balancerScheme === 'internal' || (await own()).some((each) => each.vpcId === vpcId)) return;
  throw new AppError(
    'config-invalid',
    `aws.load_balancer is none, and this machine is not in ${vpcId}: it could not reach the instances`,
    {
      hint: 'Leave aws.load_balancer out; or, where this machine reaches the VPC by a VPN, set aws.balancer_scheme: internal.',
    },
  );
}

/** Internal if this machine is in the VPC of the fleet: then offers need not leave it. */
async function schemeFor(
  aws: RunSettings['aws'],
  vpcId: string,
  own: OwnNetwork,
): Promise<{ scheme: BalancerScheme; why: string | null }> {
  const wanted = aws.balancerScheme ?? 'auto';
  if (wanted !== 'auto') return { scheme: wanted, why: 'aws.balancer_scheme says so' };
  if (own === null) return { scheme: 'internal', why: null };
  const vpcs = [...new Set((await own()).map((each) => each.vpcId))];
  if (vpcs.includes(vpcId)) return { scheme: 'internal', why: `this machine is in ${vpcId}, too` };
  const why =
    vpcs.length === 0
      ? 'this machine is no EC2 instance; where it reaches the VPC by a VPN, set aws.balancer_scheme: internal'
      : `this machine is in ${vpcs.join(', ')}, the fleet in ${vpcId}; where the two are joined, set aws.balancer_scheme: internal`;
  return { scheme: 'internet-facing', why };
}

/** Queries EC2. A load balancer must be in every zone that has instances, so the zones are limited for both. */
export async function fleetSubnets(compute: Pick<Compute, 'subnets'>, named: readonly string[]): Promise<SubnetInfo[]> {
  const subnets = await compute.subnets(named);
  if (named.length > 0) return subnets;
  const zones = [...new Set(subnets.map((s) => s.zone))].sort().slice(0, BALANCER_ZONES);
  return subnets.filter((s) => zones.includes(s.zone));
}
