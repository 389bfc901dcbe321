/** The calls that list the account's environment: network, images, types. */
import { AwsError } from '../aws-error.ts';
import { ACCOUNT_ID } from '../ids.ts';
import type { Params } from '../query-protocol.ts';
import type { XmlNode } from '../xml.ts';
import type { Image, InstanceType, Subnet } from './catalogue.ts';
import type { Ec2Context } from './context.ts';
import { applyFilters } from './filters.ts';
import { paginate } from './paging.ts';
import { imageState, renderImage, renderInstanceType, renderSubnet, renderTags } from './render.ts';

/** The named items, in listing order; throws `notFound` for the first that does not exist. */
function pick<T>(all: readonly T[], wanted: readonly string[], nameOf: (item: T) => string, notFound: string): T[] {
  const names = new Set(all.map(nameOf));
  const unknown = wanted.find((name) => !names.has(name));
  if (unknown !== undefined) throw new AwsError(notFound, `'${unknown}' does not exist`);
  return wanted.length === 0 ? [...all] : all.filter((item) => wanted.includes(nameOf(item)));
}

export function describeSubnets(params: Params, { catalogue, tags, addresses }: Ec2Context): XmlNode {
  const chosen = pick(catalogue.subnets, params.texts('SubnetId'), (s) => s.id, 'InvalidSubnetID.NotFound');
  const matching = applyFilters<Subnet>(
    chosen,
    params,
    {
      'subnet-id': (s) => s.id,
      'vpc-id': () => catalogue.vpcId,
      'availability-zone': (s) => s.zone,
      availabilityZone: (s) => s.zone,
      'availability-zone-id': (s) => s.zoneId,
      'default-for-az': (s) => String(s.isDefault),
      defaultForAz: (s) => String(s.isDefault),
      'map-public-ip-on-launch': () => 'true',
      'cidr-block': (s) => s.cidr,
      'owner-id': () => ACCOUNT_ID,
      state: () => 'available',
    },
    (s) => tags.of(s.id),
  );
  return {
    subnetSet: { item: matching.map((s) => renderSubnet(s, catalogue, addresses.get(s.id)?.free ?? 0, tags)) },
  };
}

export function describeVpcs(params: Params, { catalogue, tags }: Ec2Context): XmlNode {
  const ids = pick([catalogue.vpcId], params.texts('VpcId'), (id) => id, 'InvalidVpcID.NotFound');
  const matching = applyFilters(
    ids,
    params,
    {
      'vpc-id': (id) => id,
      'is-default': () => 'true',
      isDefault: () => 'true',
      cidr: () => catalogue.vpcCidr,
      'owner-id': () => ACCOUNT_ID,
      state: () => 'available',
    },
    (id) => tags.of(id),
  );
  return {
    vpcSet: {
      item: matching.map((vpcId) => ({
        vpcId,
        ownerId: ACCOUNT_ID,
        state: 'available',
        cidrBlock: catalogue.vpcCidr,
        dhcpOptionsId: 'default',
        instanceTenancy: 'default',
        isDefault: true,
        tagSet: renderTags(tags.of(vpcId)),
      })),
    },
  };
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

export function describeSecurityGroups(params: Params, { catalogue, tags }: Ec2Context): XmlNode {
  const named = params.texts('GroupName').map((name) => (name === 'default' ? catalogue.securityGroupId : name));
  const ids = pick(
    [catalogue.securityGroupId],
    [...params.texts('GroupId'), ...named],
    (id) => id,
    'InvalidGroup.NotFound',
  );
  const matching = applyFilters(
    ids,
    params,
    {
      'group-id': (id) => id,
      'group-name': () => 'default',
      'vpc-id': () => catalogue.vpcId,
      description: () => 'default VPC security group',
      'owner-id': () => ACCOUNT_ID,
    },
    (id) => tags.of(id),
  );
  return {
    securityGroupInfo: {
      item: matching.map((groupId) => ({
        ownerId: ACCOUNT_ID,
        groupId,
        groupName: 'default',
        groupDescription: 'default VPC security group',
        vpcId: catalogue.vpcId,
        ipPermissions: {
          item: [
            {
              ipProtocol: '-1',
              groups: { item: [{ userId: ACCOUNT_ID, groupId }] },
              ipRanges: null,
              ipv6Ranges: null,
              prefixListIds: null,
            },
          ],
        },
        ipPermissionsEgress: {
          item: [
            {
              ipProtocol: '-1',
              groups: null,
              ipRanges: { item: [{ cidrIp: '0.0.0.0/0' }] },
              ipv6Ranges: null,
              prefixListIds: null,
            },
          ],
        },
        tagSet: renderTags(tags.of(groupId)),
      })),
    },
  };
}

export function describeImages(params: Params, { catalogue, tags, clock }: Ec2Context): XmlNode {
  const ids = params.texts('ImageId');
  const malformed = ids.find((id) => !/^ami-([0-9a-f]{8}|[0-9a-f]{17})$/.test(id));
  if (malformed !== undefined) throw new AwsError('InvalidAMIID.Malformed', `Invalid id: "${malformed}"`);
  const owners = params.texts('Owner');
  const chosen = pick(catalogue.images, ids, (i) => i.id, 'InvalidAMIID.NotFound').filter(
    (i) =>
      owners.length === 0 ||
      owners.includes(i.ownerId) ||
      owners.includes(i.ownerAlias ?? '') ||
      (owners.includes('self') && i.ownerId === ACCOUNT_ID),
  );
  const matching = applyFilters<Image>(
    chosen,
    params,
    {
      'image-id': (i) => i.id,
      name: (i) => i.name,
      description: (i) => i.description,
      architecture: (i) => i.architecture,
      state: (i) => imageState(i, clock.now()),
      'owner-alias': (i) => i.ownerAlias ?? undefined,
      'owner-id': (i) => i.ownerId,
      'virtualization-type': () => 'hvm',
      'root-device-type': () => 'ebs',
      'image-type': () => 'machine',
      'is-public': (i) => String(i.own === undefined),
      'ena-support': () => 'true',
      hypervisor: () => 'xen',
      'block-device-mapping.volume-type': () => 'gp3',
    },
    (i) => tags.of(i.id),
  );
  const page = paginate(matching, params, (i) => catalogue.images.indexOf(i), { min: 1, max: 1_000 });
  return { imagesSet: { item: page.items.map((i) => renderImage(i, tags, clock.now())) }, nextToken: page.nextToken };
}

export function describeInstanceTypes(params: Params, { catalogue }: Ec2Context): XmlNode {
  const wanted = params.texts('InstanceType');
  const unknown = wanted.filter((name) => !catalogue.instanceTypes.some((type) => type.name === name));
  if (unknown.length > 0) {
    throw new AwsError(
      'InvalidInstanceType',
      `The following supplied instance types do not exist: [${unknown.join(', ')}]`,
    );
  }
  const chosen = catalogue.instanceTypes.filter((type) => wanted.length === 0 || wanted.includes(type.name));
  const matching = applyFilters<InstanceType>(chosen, params, {
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

export function describeAvailabilityZones(params: Params, { catalogue }: Ec2Context): XmlNode {
  const chosen = pick(catalogue.subnets, params.texts('ZoneName'), (s) => s.zone, 'InvalidParameterValue');
  const matching = applyFilters<Subnet>(chosen, params, {
    'zone-name': (s) => s.zone,
    'zone-id': (s) => s.zoneId,
    'region-name': () => catalogue.region,
    'zone-type': () => 'availability-zone',
    'opt-in-status': () => 'opt-in-not-required',
    state: () => 'available',
  });
  return {
    availabilityZoneInfo: {
      item: matching.map((s) => ({
        optInStatus: 'opt-in-not-required',
        messageSet: null,
        zoneName: s.zone,
        zoneId: s.zoneId,
        zoneState: 'available',
        zoneType: 'availability-zone',
        regionName: catalogue.region,
        groupName: catalogue.region,
        networkBorderGroup: catalogue.region,
      })),
    },
  };
}
