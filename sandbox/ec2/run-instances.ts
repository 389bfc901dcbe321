/** RunInstances: parses and validates the request as AWS does, then launches. */
import { AwsError } from '../aws-error.ts';
import type { Params } from '../query-protocol.ts';
import type { XmlNode } from '../xml.ts';
import type { Catalogue, Subnet } from './catalogue.ts';
import type { Ec2Context } from './context.ts';
import type { LaunchSpec, Instance } from './instance.ts';
import { imageState, renderReservation } from './render.ts';
import { readTagSpecifications } from './tag-specifications.ts';
import type { CapacityPool } from '../conditions.ts';

const MAX_USER_DATA_BYTES = 16_384;
const MAX_TOKEN_CHARS = 64;
/** Parameters that two requests with the same client token may differ in. */
const NOT_COMPARED = ['Action', 'Version', 'ClientToken', 'DryRun'];

export function runInstances(params: Params, context: Ec2Context): XmlNode {
  const count = readCount(params);
  const spec = readSpec(params, context.catalogue);
  refuseUnfinishedImage(spec.imageId, context);
  const tags = readTagSpecifications(params, ['instance', 'volume', 'network-interface', 'spot-instances-request']);
  const isDryRun = params.flag('DryRun') === true;
  if (!isDryRun && context.faults.takeForType(spec.instanceType))
    throw new AwsError(
      'InvalidParameterCombination',
      "The specified instance type is not eligible for Free Tier. For a list of Free Tier instance types, run 'describe-instance-types' with the filter 'free-tier-eligible=true'.",
    );
  refuseDryRun(params);

  const token = spec.clientToken;
  // A token applies per zone if the request names one, directly or through its subnet.
  const scope = namesZone(params) ? spec.zone : context.catalogue.region;
  const fingerprint = params.fingerprint(NOT_COMPARED);
  const earlier = token === null ? null : context.launches.find(token, scope, fingerprint);
  if (earlier) return renderReservation(earlier, context.tags);

  const max = takeCapacity(spec, count, context);
  const launched = context.fleet.launch(spec, { min: count.min, max }, tags);
  for (const instance of launched) instance.death = context.faults.takeForLaunch();
  if (token !== null) context.launches.record(token, scope, fingerprint, launched);
  return renderReservation(launched, context.tags);
}

/** Every mutating EC2 call stops here for a dry run. */
export function refuseDryRun(params: Params): void {
  if (params.flag('DryRun')) {
    throw new AwsError('DryRunOperation', 'Request would have succeeded, but DryRun flag is set.', 412);
  }
}

function readCount(params: Params): { min: number; max: number } {
  params.need('MinCount');
  params.need('MaxCount');
  const min = params.int('MinCount')!;
  const max = params.int('MaxCount')!;
  if (min < 1) invalid(`Value (${min}) for parameter minCount is invalid. It must be at least 1.`);
  if (max < min)
    invalid(`Value (${max}) for parameter maxCount is invalid. It must not be less than minCount (${min}).`);
  return { min, max };
}

function namesZone(params: Params): boolean {
  const subnet = params.text('SubnetId') ?? params.groups('NetworkInterface')[0]?.text('SubnetId');
  return subnet !== undefined || params.group('Placement').text('AvailabilityZone') !== undefined;
}

function readSpec(params: Params, catalogue: Catalogue): LaunchSpec {
  const image = findImage(params.need('ImageId'), catalogue);
  const typeName = params.text('InstanceType') ?? 't3.micro';
  const type = catalogue.instanceTypes.find(({ name }) => name === typeName);
  if (!type) invalid(`Invalid value '${typeName}' for InstanceType.`);
  if (type.architecture !== image.architecture) {
    invalid(
      `The architecture '${type.architecture}' of the specified instance type does not match the architecture '${image.architecture}' of the specified AMI.`,
    );
  }
  const { subnet, groupIds, publicAddress } = readNetwork(params, catalogue);
  const clientToken = params.text('ClientToken') ?? null;
  if (clientToken !== null && clientToken.length > MAX_TOKEN_CHARS) {
    invalid(`Invalid value for ClientToken: at most ${MAX_TOKEN_CHARS} ASCII characters.`);
  }
  return {
    imageId: image.id,
    instanceType: type.name,
    architecture: type.architecture,
    subnetId: subnet.id,
    vpcId: catalogue.vpcId,
    zone: subnet.zone,
    securityGroupIds: groupIds,
    instanceProfile: readProfile(params.group('IamInstanceProfile')),
    userData: readUserData(params.text('UserData')),
    shutdownBehavior: readShutdownBehavior(params.text('InstanceInitiatedShutdownBehavior')),
    publicAddress,
    metadata: {
      httpTokens: params.group('MetadataOptions').text('HttpTokens') === 'required' ? 'required' : 'optional',
      hopLimit: params.group('MetadataOptions').int('HttpPutResponseHopLimit') ?? 1,
    },
    keyName: params.text('KeyName') ?? null,
    clientToken: clientToken === '' ? null : clientToken,
    terminationProtection: params.flag('DisableApiTermination') ?? false,
  };
}

function findImage(id: string, catalogue: Catalogue): Catalogue['images'][number] {
  if (!/^ami-([0-9a-f]{8}|[0-9a-f]{17})$/.test(id)) {
    throw new AwsError('InvalidAMIID.Malformed', `Invalid id: "${id}" (expecting "ami-...")`);
  }
  const image = catalogue.images.find((candidate) => candidate.id === id);
  if (!image) throw new AwsError('InvalidAMIID.NotFound', `The image id '[${id}]' does not exist`);
  return image;
}

function refuseUnfinishedImage(id: string, { catalogue, clock }: Ec2Context): void {
  const image = catalogue.images.find((candidate) => candidate.id === id)!;
  if (imageState(image, clock.now()) === 'available') return;
  throw new AwsError('InvalidAMIID.Unavailable', `The image ID '${id}' is not available`);
}

/** Subnet and groups are either at the top level or in the first network interface, never in both. */
function readNetwork(
  params: Params,
  catalogue: Catalogue,
): { subnet: Subnet; groupIds: string[]; publicAddress: boolean } {
  const card = params.groups('NetworkInterface')[0];
  if (card && (params.text('SubnetId') !== undefined || params.texts('SecurityGroupId').length > 0)) {
    throw new AwsError(
      'InvalidParameterCombination',
      'Network interfaces and an instance-level subnet ID or security groups may not be specified on the same request',
    );
  }
  const subnet = findSubnet(
    card ? card.text('SubnetId') : params.text('SubnetId'),
    // Some clients send unset values as an empty text.
    params.group('Placement').text('AvailabilityZone') || undefined,
    catalogue,
  );
  const groupIds = card ? card.texts('SecurityGroupId') : params.texts('SecurityGroupId');
  for (const id of groupIds) {
    if (!/^sg-([0-9a-f]{8}|[0-9a-f]{17})$/.test(id)) {
      throw new AwsError('InvalidGroupId.Malformed', `Invalid id: "${id}" (expecting "sg-...")`);
    }
    if (id !== catalogue.securityGroupId) {
      throw new AwsError('InvalidGroup.NotFound', `The security group '${id}' does not exist`);
    }
  }
  return {
    subnet,
    groupIds: groupIds.length > 0 ? groupIds : [catalogue.securityGroupId],
    // The default VPC's subnets assign public addresses unless the launch declines.
    publicAddress: card?.flag('AssociatePublicIpAddress') ?? true,
  };
}

function findSubnet(id: string | undefined, zone: string | undefined, catalogue: Catalogue): Subnet {
  if (id !== undefined) {
    const subnet = catalogue.subnets.find((candidate) => candidate.id === id);
    if (!subnet) throw new AwsError('InvalidSubnetID.NotFound', `The subnet ID '${id}' does not exist`);
    if (zone !== undefined && subnet.zone !== zone) {
      invalid(`The availability zone '${zone}' does not match the zone '${subnet.zone}' of subnet '${id}'`);
    }
    return subnet;
  }
  const subnet = zone === undefined ? catalogue.subnets[0] : catalogue.subnets.find((s) => s.zone === zone);
  if (!subnet) invalid(`Invalid availability zone: [${zone}]`);
  return subnet;
}

function readProfile(profile: Params): string | null {
  const name = profile.text('Name');
  const arn = profile.text('Arn');
  if (name !== undefined && arn !== undefined) {
    throw new AwsError('InvalidParameterCombination', 'The parameter name may not be used in combination with arn');
  }
  return name ?? arn?.split('/').at(-1) ?? null;
}

function readUserData(userData: string | undefined): string {
  if (userData === undefined || userData === '') return '';
  if (!/^[A-Za-z0-9+/\s]*={0,2}\s*$/.test(userData)) {
    throw new AwsError('InvalidUserData.Malformed', 'Invalid BASE64 encoding of user data.');
  }
  const sizeBytes = Buffer.from(userData, 'base64').length;
  if (sizeBytes > MAX_USER_DATA_BYTES) {
    invalid(`User data is limited to ${MAX_USER_DATA_BYTES} bytes; this is ${sizeBytes}.`);
  }
  return userData;
}

function readShutdownBehavior(value: string | undefined): 'stop' | 'terminate' {
  if (value === undefined || value === 'stop' || value === 'terminate') return value ?? 'stop';
  invalid(`Invalid value '${value}' for InstanceInitiatedShutdownBehavior.`);
}

/** Tags for the resources that the launch creates, by resource type. */
function invalid(message: string): never {
  throw new AwsError('InvalidParameterValue', message);
}

/** vCPUs of burstable types that are not in the catalogue. */
const USUAL_VCPUS = 2;

/**
 * At most `max`, at least `min`; takes them from the pool. If `min` is not available, throws
 * InsufficientInstanceCapacity or VcpuLimitExceeded and takes nothing.
 */
function takeCapacity(spec: LaunchSpec, { min, max }: { min: number; max: number }, context: Ec2Context): number {
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
