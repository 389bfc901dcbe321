/** RunInstances: parses and validates the request as AWS does, then launches. */
import { AwsError } from '../aws-error.ts';
import type { Params } from '../query-protocol.ts';
import type { XmlNode } from '../xml.ts';
import type { Image, Subnet } from './catalogue.ts';
import { type Ec2Context, refuseDryRun } from './context.ts';
import type { Instance, LaunchSpec } from './instance.ts';
import { imageState, renderReservation } from './render.ts';
import { demandTags } from '../tag-policy.ts';
import { readTagSpecifications } from './tag-actions.ts';
import { NOT_COMPARED } from './token-ledger.ts';

const MAX_USER_DATA_BYTES = 16_384;
const MAX_TOKEN_CHARS = 64;

export function runInstances(params: Params, context: Ec2Context): XmlNode {
  const count = readCount(params);
  const spec = readSpec(params, context);
  const tags = readTagSpecifications(params, ['instance', 'volume', 'network-interface', 'spot-instances-request']);
  if (params.flag('DryRun') !== true && context.faults.takeForType(spec.instanceType))
    throw new AwsError(
      'InvalidParameterCombination',
      "The specified instance type is not eligible for Free Tier. For a list of Free Tier instance types, run 'describe-instance-types' with the filter 'free-tier-eligible=true'.",
    );
  demandTags(context.conditions.now.tagPolicy, {
    service: 'ec2',
    action: 'RunInstances',
    region: context.catalogue.region,
    created: ['instance', 'volume', 'network-interface'].map((type) => [type, tags.get(type)]),
  });
  refuseDryRun(params);

  const token = spec.clientToken;
  // A token applies per zone if the request names one, directly or through its subnet.
  const scope = namesZone(params) ? spec.zone : context.catalogue.region;
  const fingerprint = params.fingerprint(NOT_COMPARED);
  const earlier = token === null ? null : context.launches.find(token, scope, fingerprint);
  if (earlier?.some(({ state }) => state === 'terminated' || state === 'shutting-down'))
    throw new AwsError(
      'IdempotentInstanceTerminated',
      'The instance launched by an earlier request with this client token has been terminated.',
    );
  if (earlier) return renderReservation(earlier, context.tags);

  const max = takeCapacity(spec, count, context);
  const launched = context.fleet.launch(spec, { min: count.min, max }, tags);
  for (const instance of launched) instance.death = context.faults.takeForLaunch();
  if (token !== null) context.launches.record(token, scope, fingerprint, launched);
  return renderReservation(launched, context.tags);
}

function invalid(message: string): never {
  throw new AwsError('InvalidParameterValue', message);
}

function readCount(params: Params): { min: number; max: number } {
  const min = params.needInt('MinCount');
  const max = params.needInt('MaxCount');
  if (min < 1) invalid(`Value (${min}) for parameter minCount is invalid. It must be at least 1.`);
  if (max < min)
    invalid(`Value (${max}) for parameter maxCount is invalid. It must not be less than minCount (${min}).`);
  return { min, max };
}

function namesZone(params: Params): boolean {
  const subnet = params.text('SubnetId') ?? params.groups('NetworkInterface')[0]?.text('SubnetId');
  return subnet !== undefined || params.group('Placement').text('AvailabilityZone') !== undefined;
}

function readSpec(params: Params, context: Ec2Context): LaunchSpec {
  const { catalogue } = context;
  const image = findImage(params.need('ImageId'), context);
  const typeName = params.text('InstanceType') ?? 't3.micro';
  const type = catalogue.instanceTypes.find(({ name }) => name === typeName);
  if (!type) invalid(`Invalid value '${typeName}' for InstanceType.`);
  if (type.architecture !== image.architecture)
    invalid(
      `The architecture '${type.architecture}' of the specified instance type does not match the architecture '${image.architecture}' of the specified AMI.`,
    );
  const network = readNetwork(params, context);
  const clientToken = params.text('ClientToken') ?? '';
  if (clientToken.length > MAX_TOKEN_CHARS)
    invalid(`Invalid value for ClientToken: at most ${MAX_TOKEN_CHARS} ASCII characters.`);
  const shutdownBehavior = params.text('InstanceInitiatedShutdownBehavior') ?? 'stop';
  if (shutdownBehavior !== 'stop' && shutdownBehavior !== 'terminate')
    invalid(`Invalid value '${shutdownBehavior}' for InstanceInitiatedShutdownBehavior.`);
  const metadata = params.group('MetadataOptions');
  return {
    ...network,
    imageId: image.id,
    instanceType: type.name,
    architecture: type.architecture,
    vpcId: catalogue.vpcId,
    instanceProfile: readProfile(params.group('IamInstanceProfile')),
    userData: readUserData(params.text('UserData')),
    shutdownBehavior,
    metadata: {
      httpTokens: metadata.text('HttpTokens') === 'required' ? 'required' : 'optional',
      hopLimit: metadata.int('HttpPutResponseHopLimit') ?? 1,
    },
    keyName: params.text('KeyName') ?? null,
    clientToken: clientToken || null,
    terminationProtection: params.flag('DisableApiTermination') ?? false,
  };
}

function findImage(id: string, { catalogue, clock }: Ec2Context): Image {
  if (!/^ami-([0-9a-f]{8}|[0-9a-f]{17})$/.test(id))
    throw new AwsError('InvalidAMIID.Malformed', `Invalid id: "${id}" (expecting "ami-...")`);
  const image = catalogue.images.find((candidate) => candidate.id === id);
  if (!image) throw new AwsError('InvalidAMIID.NotFound', `The image id '[${id}]' does not exist`);
  if (imageState(image, clock.now()) !== 'available')
    throw new AwsError('InvalidAMIID.Unavailable', `The image ID '${id}' is not available`);
  return image;
}

/** Subnet and groups are either at the top level or in the first network interface, never in both. */
function readNetwork(
  params: Params,
  { catalogue }: Ec2Context,
): Pick<LaunchSpec, 'subnetId' | 'zone' | 'securityGroupIds' | 'publicAddress'> {
  const card = params.groups('NetworkInterface')[0];
  if (card && (params.text('SubnetId') !== undefined || params.texts('SecurityGroupId').length > 0))
    throw new AwsError(
      'InvalidParameterCombination',
      'Network interfaces and an instance-level subnet ID or security groups may not be specified on the same request',
    );
  // Some clients send unset values as an empty text.
  const zone = params.group('Placement').text('AvailabilityZone') || undefined;
  const subnet = findSubnet((card ?? params).text('SubnetId'), zone, catalogue.subnets);
  const groupIds = (card ?? params).texts('SecurityGroupId');
  for (const id of groupIds) {
    if (!/^sg-([0-9a-f]{8}|[0-9a-f]{17})$/.test(id))
      throw new AwsError('InvalidGroupId.Malformed', `Invalid id: "${id}" (expecting "sg-...")`);
    if (id !== catalogue.securityGroupId)
      throw new AwsError('InvalidGroup.NotFound', `The security group '${id}' does not exist`);
  }
  return {
    subnetId: subnet.id,
    zone: subnet.zone,
    securityGroupIds: groupIds.length > 0 ? groupIds : [catalogue.securityGroupId],
    // The default VPC's subnets assign public addresses unless the launch declines.
    publicAddress: card?.flag('AssociatePublicIpAddress') ?? true,
  };
}

function findSubnet(id: string | undefined, zone: string | undefined, subnets: readonly Subnet[]): Subnet {
  if (id === undefined) {
    const subnet = zone === undefined ? subnets[0] : subnets.find((s) => s.zone === zone);
    return subnet ?? invalid(`Invalid availability zone: [${zone}]`);
  }
  const subnet = subnets.find((candidate) => candidate.id === id);
  if (!subnet) throw new AwsError('InvalidSubnetID.NotFound', `The subnet ID '${id}' does not exist`);
  if (zone !== undefined && subnet.zone !== zone)
    invalid(`The availability zone '${zone}' does not match the zone '${subnet.zone}' of subnet '${id}'`);
  return subnet;
}

function readProfile(profile: Params): string | null {
  const name = profile.text('Name');
  const arn = profile.text('Arn');
  if (name !== undefined && arn !== undefined)
    throw new AwsError('InvalidParameterCombination', 'The parameter name may not be used in combination with arn');
  return name ?? arn?.split('/').at(-1) ?? null;
}

function readUserData(userData = ''): string {
  if (!/^[A-Za-z0-9+/\s]*={0,2}\s*$/.test(userData))
    throw new AwsError('InvalidUserData.Malformed', 'Invalid BASE64 encoding of user data.');
  const sizeBytes = Buffer.from(userData, 'base64').length;
  if (sizeBytes > MAX_USER_DATA_BYTES)
    invalid(`User data is limited to ${MAX_USER_DATA_BYTES} bytes; this is ${sizeBytes}.`);
  return userData;
}

/** vCPUs of burstable types that are not in the catalogue. */
const USUAL_VCPUS = 2;

/**
 * How many instances there is room for, at most `max` and at least `min`; takes them from the pool. If `min` is not
 * available, throws InsufficientInstanceCapacity or VcpuLimitExceeded and takes nothing.
 */
function takeCapacity(spec: LaunchSpec, { min, max }: { min: number; max: number }, context: Ec2Context): number {
  const { pools, vcpuQuota } = context.conditions.now;
  const fits = (pattern: string, value: string): boolean => pattern === '*' || pattern === value;
  const entry = pools.find((p) => fits(p.type, spec.instanceType) && fits(p.zone, spec.zone));
  const pool = context.clock.now() < (entry?.recoversAtMs ?? Infinity) ? entry : undefined;
  const inPool = Math.min(max, pool?.left ?? Infinity);
  if (inPool < min)
    throw new AwsError(
      'InsufficientInstanceCapacity',
      `We currently do not have sufficient ${spec.instanceType} capacity in the Availability Zone you requested (${spec.zone}). Our system will be working on provisioning additional capacity.`,
      500,
    );
  const allowed = vcpuQuota === null ? inPool : Math.min(inPool, withinQuota(spec, vcpuQuota, context));
  if (allowed < min) {
    throw new AwsError(
      'VcpuLimitExceeded',
      `You have requested more vCPU capacity than your current vCPU limit of ${vcpuQuota} allows for the instance bucket that the specified instance type belongs to. Please visit http://aws.amazon.com/contact-us/ec2-request to request an adjustment to this limit.`,
    );
  }
  if (pool) pool.left -= allowed;
  return allowed;
}

function withinQuota(spec: LaunchSpec, vcpuQuota: number, { catalogue, clock, conditions, fleet }: Ec2Context): number {
  const vcpusOf = (type: string): number =>
    catalogue.instanceTypes.find(({ name }) => name === type)?.vcpus ?? USUAL_VCPUS;
  // Ended instances free their quota late, as on AWS.
  const isCounted = ({ endedAtMs }: Instance): boolean =>
    endedAtMs === null || clock.now() < endedAtMs + conditions.now.vcpuReleaseMs;
  const counted = fleet.all().filter(isCounted);
  const used = counted.reduce((sum, i) => sum + vcpusOf(i.instanceType), 0);
  return Math.max(0, Math.floor((vcpuQuota - used) / vcpusOf(spec.instanceType)));
}
