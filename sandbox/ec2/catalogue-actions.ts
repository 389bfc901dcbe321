/** The calls that list the account's environment: network, images, types. */
import { AwsError } from '../aws-error.ts';
import { ACCOUNT_ID } from '../ids.ts';
import type { Params } from '../query-protocol.ts';
import type { XmlNode } from '../xml.ts';
import type { Ec2Context } from './context.ts';
import { applyFilters, field, fieldFilters, paginate } from './filters.ts';
import { renderImage, renderInstanceType, renderSubnet, renderTags } from './render.ts';

/** The named items, in listing order; throws `notFound` for the first that does not exist. */
function pick<T>(all: readonly T[], wanted: readonly string[], nameOf: (item: T) => string, notFound: string): T[] {
  const names = new Set(all.map(nameOf));
  const unknown = wanted.find((name) => !names.has(name));
  if (unknown !== undefined) throw new AwsError(notFound, `'${unknown}' does not exist`);
  return wanted.length === 0 ? [...all] : all.filter((item) => wanted.includes(nameOf(item)));
}

const SUBNET_FILTERS = {
  ...fieldFilters('subnet-id', 'vpc-id', 'cidr-block', 'owner-id', 'state', 'map-public-ip-on-launch'),
  ...fieldFilters('availability-zone', 'availabilityZone', 'availability-zone-id', 'default-for-az', 'defaultForAz'),
};

export function describeSubnets(params: Params, { catalogue, tags, addresses }: Ec2Context): XmlNode {
  const chosen = pick(catalogue.subnets, params.texts('SubnetId'), (s) => s.id, 'InvalidSubnetID.NotFound');
  const rendered = chosen.map((s) => renderSubnet(s, catalogue, addresses.get(s.id)?.free ?? 0, tags));
  return { subnetSet: { item: applyFilters(rendered, params, SUBNET_FILTERS, (s) => tags.of(s.subnetId)) } };
}

const VPC_FILTERS = {
  ...fieldFilters('vpc-id', 'is-default', 'isDefault', 'owner-id', 'state'),
  cidr: field('cidrBlock'),
};

export function describeVpcs(params: Params, { catalogue, tags }: Ec2Context): XmlNode {
  const ids = pick([catalogue.vpcId], params.texts('VpcId'), (id) => id, 'InvalidVpcID.NotFound');
  const rendered = ids.map((vpcId) => ({
    vpcId,
    ownerId: ACCOUNT_ID,
    state: 'available',
    cidrBlock: catalogue.vpcCidr,
    dhcpOptionsId: 'default',
    instanceTenancy: 'default',
    isDefault: true,
    tagSet: renderTags(tags.of(vpcId)),
  }));
  return { vpcSet: { item: applyFilters(rendered, params, VPC_FILTERS, (vpc) => tags.of(vpc.vpcId)) } };
}

/** The attributes of the VPC, as in an account's default one. */
const VPC_ATTRIBUTES: Record<string, boolean> = {
  enableDnsSupport: true,
  enableDnsHostnames: true,
  enableNetworkAddressUsageMetrics: false,
};

export function describeVpcAttribute(params: Params, { catalogue }: Ec2Context): XmlNode {
  const vpcId = params.need('VpcId');
  if (vpcId !== catalogue.vpcId) throw new AwsError('InvalidVpcID.NotFound', `The vpc ID '${vpcId}' does not exist`);
  const attribute = params.need('Attribute');
  const value = VPC_ATTRIBUTES[attribute];
  if (value === undefined) throw unknownAttribute(attribute);
  return { vpcId, [attribute]: { value } };
}

export function unknownAttribute(name: string): AwsError {
  const message = `Value (${name}) for parameter attribute is invalid. Unknown attribute.`;
  return new AwsError('InvalidParameterValue', message);
}

const ROUTE_TABLE_ID = 'rtb-0c0a0f1ee70000001';
const WAYS_OUT = {
  'internet-gateway': { gatewayId: 'igw-0c0a0f1ee70000001' },
  'nat-gateway': { natGatewayId: 'nat-0c0a0f1ee70000001' },
  none: null,
} as const;

const ROUTE_TABLE_FILTERS = {
  ...fieldFilters('route-table-id', 'vpc-id', 'owner-id'),
  'association.main': () => 'true',
  'association.subnet-id': () => undefined,
};

/**
 * One main table for the whole VPC, with the default route set in the conditions. Subnets have no associations, so they
 * use the main table: filters by subnet find nothing, as on AWS.
 */
export function describeRouteTables(params: Params, { catalogue, conditions, tags }: Ec2Context): XmlNode {
  const unknown = params.texts('RouteTableId').find((id) => id !== ROUTE_TABLE_ID);
  if (unknown !== undefined)
    throw new AwsError('InvalidRouteTableID.NotFound', `The routeTable ID '${unknown}' does not exist`);
  const local = { destinationCidrBlock: catalogue.vpcCidr, gatewayId: 'local' };
  const wayOut = WAYS_OUT[conditions.now.defaultRoute];
  const toInternet = { destinationCidrBlock: '0.0.0.0/0', ...wayOut, state: 'active', origin: 'CreateRoute' };
  const table = {
    routeTableId: ROUTE_TABLE_ID,
    vpcId: catalogue.vpcId,
    ownerId: ACCOUNT_ID,
    routeSet: {
      item: [{ ...local, state: 'active', origin: 'CreateRouteTable' }, ...(wayOut ? [toInternet] : [])],
    },
    associationSet: {
      item: {
        routeTableAssociationId: 'rtbassoc-0c0a0f1ee70000001',
        routeTableId: ROUTE_TABLE_ID,
        main: true,
        associationState: { state: 'associated' },
      },
    },
    propagatingVgwSet: null,
    tagSet: renderTags(tags.of(ROUTE_TABLE_ID)),
  };
  return { routeTableSet: { item: applyFilters([table], params, ROUTE_TABLE_FILTERS, () => tags.of(ROUTE_TABLE_ID)) } };
}

/** Groups usable in the VPC: ELBv2 queries them with the permissions of the creator of a load balancer. */
export function getSecurityGroupsForVpc(params: Params, { catalogue }: Ec2Context): XmlNode {
  const [primaryVpcId] = pick([catalogue.vpcId], [params.need('VpcId')], (id) => id, 'InvalidVpcID.NotFound');
  const { securityGroupId: groupId } = catalogue;
  const item = [
    { groupId, groupName: 'default', description: 'default VPC security group', ownerId: ACCOUNT_ID, primaryVpcId },
  ];
  return { securityGroupForVpcSet: { item } };
}

const GROUP_FILTERS = {
  ...fieldFilters('group-id', 'group-name', 'vpc-id', 'owner-id'),
  description: field('groupDescription'),
};

export function describeSecurityGroups(params: Params, { catalogue, tags }: Ec2Context): XmlNode {
  const { securityGroupId, vpcId } = catalogue;
  const named = params.texts('GroupName').map((name) => (name === 'default' ? securityGroupId : name));
  const wanted = [...params.texts('GroupId'), ...named];
  const ids = pick([securityGroupId], wanted, (id) => id, 'InvalidGroup.NotFound');
  const anything = { ipProtocol: '-1', groups: null, ipRanges: null, ipv6Ranges: null, prefixListIds: null };
  const rendered = ids.map((groupId) => ({
    ownerId: ACCOUNT_ID,
    groupId,
    groupName: 'default',
    groupDescription: 'default VPC security group',
    vpcId,
    ipPermissions: { item: { ...anything, groups: { item: { userId: ACCOUNT_ID, groupId } } } },
    ipPermissionsEgress: { item: { ...anything, ipRanges: { item: { cidrIp: '0.0.0.0/0' } } } },
    tagSet: renderTags(tags.of(groupId)),
  }));
  return { securityGroupInfo: { item: applyFilters(rendered, params, GROUP_FILTERS, (g) => tags.of(g.groupId)) } };
}

const IMAGE_FILTERS = {
  ...fieldFilters('image-id', 'name', 'description', 'architecture', 'virtualization-type', 'root-device-type'),
  ...fieldFilters('image-type', 'is-public', 'ena-support', 'hypervisor'),
  state: field('imageState'),
  'owner-alias': field('imageOwnerAlias'),
  'owner-id': field('imageOwnerId'),
  'block-device-mapping.volume-type': () => 'gp3',
};

export function describeImages(params: Params, { catalogue, tags, clock }: Ec2Context): XmlNode {
  const ids = params.texts('ImageId');
  const malformed = ids.find((id) => !/^ami-([0-9a-f]{8}|[0-9a-f]{17})$/.test(id));
  if (malformed !== undefined) throw new AwsError('InvalidAMIID.Malformed', `Invalid id: "${malformed}"`);
  const owners = params.texts('Owner').map((owner) => (owner === 'self' ? ACCOUNT_ID : owner));
  const rendered = pick(catalogue.images, ids, (i) => i.id, 'InvalidAMIID.NotFound')
    .filter((i) => owners.length === 0 || owners.includes(i.ownerId) || owners.includes(i.ownerAlias ?? ''))
    .map((i) => renderImage(i, tags, clock.now()));
  const matching = applyFilters(rendered, params, IMAGE_FILTERS, (i) => tags.of(i.imageId));
  const order = new Map(catalogue.images.map(({ id }, index) => [id, index]));
  const page = paginate(matching, params, (i) => order.get(i.imageId)!, { min: 1, max: 1_000 });
  return { imagesSet: { item: page.items }, nextToken: page.nextToken };
}

export function describeInstanceTypes(params: Params, { catalogue }: Ec2Context): XmlNode {
  const wanted = params.texts('InstanceType');
  const unknown = wanted.filter((name) => !catalogue.instanceTypes.some((type) => type.name === name));
  if (unknown.length > 0)
    throw new AwsError(
      'InvalidInstanceType',
      `The following supplied instance types do not exist: [${unknown.join(', ')}]`,
    );
  const chosen = catalogue.instanceTypes.filter((type) => wanted.length === 0 || wanted.includes(type.name));
  const matching = applyFilters(chosen, params, {
    'instance-type': (t) => t.name,
    'processor-info.supported-architecture': (t) => t.architecture,
    'vcpu-info.default-vcpus': (t) => String(t.vcpus),
    'memory-info.size-in-mib': (t) => String(t.memoryMib),
    'current-generation': () => 'true',
    'bare-metal': () => 'false',
    'burstable-performance-supported': () => 'true',
    'supported-usage-class': () => ['on-demand', 'spot'],
    hypervisor: () => 'nitro',
  });
  const page = paginate(matching, params, (t) => catalogue.instanceTypes.indexOf(t), { min: 5, max: 100 });
  return { instanceTypeSet: { item: page.items.map(renderInstanceType) }, nextToken: page.nextToken };
}

const ZONE_FILTERS = {
  ...fieldFilters('zone-name', 'zone-id', 'region-name', 'zone-type', 'opt-in-status'),
  state: () => 'available',
};

export function describeAvailabilityZones(params: Params, { catalogue }: Ec2Context): XmlNode {
  const { region } = catalogue;
  const chosen = pick(catalogue.subnets, params.texts('ZoneName'), (s) => s.zone, 'InvalidParameterValue');
  const rendered = chosen.map((s) => ({
    optInStatus: 'opt-in-not-required',
    messageSet: null,
    zoneName: s.zone,
    zoneId: s.zoneId,
    zoneState: 'available',
    zoneType: 'availability-zone',
    regionName: region,
    groupName: region,
    networkBorderGroup: region,
  }));
  return { availabilityZoneInfo: { item: applyFilters(rendered, params, ZONE_FILTERS) } };
}
