/** Renders EC2 resources as EC2's XML. */
import { ACCOUNT_ID } from '../ids.ts';
import type { XmlNode } from '../xml.ts';
import type { Catalogue, Image, InstanceType, Subnet } from './catalogue.ts';
import { type Instance, type InstanceState, STATE_CODES } from './instance.ts';
import type { TagStore } from './tag-store.ts';

type Tags = Pick<TagStore, 'of'>;

export const ROOT_DEVICE = '/dev/xvda';

export const isoTime = (ms: number): string => new Date(ms).toISOString();

export function renderTags(tags: ReadonlyMap<string, string>): XmlNode | undefined {
  return tags.size === 0 ? undefined : { item: [...tags].map(([key, value]) => ({ key, value })) };
}

export function renderState(state: InstanceState): XmlNode {
  return { code: STATE_CODES[state], name: state };
}

/** A public address is shown only while the machine has one: neither before it runs nor while it is stopped. */
export function publicAddressOf(instance: Instance): string | undefined {
  return instance.publicAddress && instance.state === 'running' ? instance.outsideAddress : undefined;
}

/** The private address, kept until the instance is terminated. */
export function privateAddressOf(instance: Instance): string | undefined {
  return instance.state === 'terminated' ? undefined : instance.address;
}

export function profileArnOf(instance: Instance): string | undefined {
  const name = instance.instanceProfile;
  return name === null ? undefined : `arn:aws:iam::${ACCOUNT_ID}:instance-profile/${name}`;
}

function renderInstance(instance: Instance, tags: Tags): XmlNode {
  const { subnetId, vpcId, interfaceId, reasonCode } = instance;
  const publicAddress = publicAddressOf(instance);
  const privateAddress = privateAddressOf(instance);
  const groups = { item: instance.securityGroupIds.map((groupId) => ({ groupId, groupName: 'default' })) };
  const attached = { status: 'attached', attachTime: isoTime(instance.launchedAtMs), deleteOnTermination: true };
  const volume = { deviceName: ROOT_DEVICE, ebs: { volumeId: instance.volumeId, ...attached } };
  const networkInterface = {
    networkInterfaceId: interfaceId,
    subnetId,
    vpcId,
    ownerId: ACCOUNT_ID,
    status: 'in-use',
    interfaceType: 'interface',
    sourceDestCheck: true,
    privateIpAddress: privateAddress,
    attachment: {
      attachmentId: interfaceId.replace('eni-', 'eni-attach-'),
      deviceIndex: 0,
      networkCardIndex: 0,
      ...attached,
    },
    groupSet: groups,
    association: publicAddress ? { publicIp: publicAddress, ipOwnerId: 'amazon' } : undefined,
    privateIpAddressesSet: { item: { privateIpAddress: privateAddress, primary: true } },
  };
  return {
    instanceId: instance.id,
    imageId: instance.imageId,
    instanceState: renderState(instance.state),
    privateDnsName: privateAddress ? `ip-${privateAddress.replaceAll('.', '-')}.internal` : null,
    dnsName: publicAddress ?? null,
    reason: instance.reason,
    keyName: instance.keyName ?? undefined,
    amiLaunchIndex: 0,
    instanceType: instance.instanceType,
    launchTime: isoTime(instance.launchedAtMs),
    placement: { availabilityZone: instance.zone, groupName: null, tenancy: 'default' },
    monitoring: { state: 'disabled' },
    subnetId: privateAddress ? subnetId : undefined,
    vpcId: privateAddress ? vpcId : undefined,
    privateIpAddress: privateAddress,
    ipAddress: publicAddress,
    sourceDestCheck: true,
    groupSet: groups,
    stateReason:
      reasonCode === ''
        ? undefined
        : { code: reasonCode, message: instance.reasonMessage ?? `${reasonCode}: ${instance.reason}` },
    architecture: instance.architecture,
    rootDeviceType: 'ebs',
    rootDeviceName: ROOT_DEVICE,
    blockDeviceMapping: { item: privateAddress ? volume : [] },
    virtualizationType: 'hvm',
    clientToken: instance.clientToken,
    tagSet: renderTags(tags.of(instance.id)),
    hypervisor: 'xen',
    networkInterfaceSet: { item: privateAddress ? networkInterface : [] },
    iamInstanceProfile:
      instance.instanceProfile === null ? undefined : { arn: profileArnOf(instance), id: 'AIPA00000000000000000' },
    ebsOptimized: false,
    metadataOptions: {
      state: 'applied',
      httpTokens: instance.metadata.httpTokens,
      httpPutResponseHopLimit: instance.metadata.hopLimit,
      httpEndpoint: 'enabled',
      httpProtocolIpv6: 'disabled',
      instanceMetadataTags: 'disabled',
    },
    currentInstanceBootMode: 'uefi',
  };
}

/** Instances of one launch, as RunInstances and DescribeInstances show them. */
export function renderReservation(instances: readonly Instance[], tags: Tags): XmlNode {
  return {
    reservationId: instances[0]?.reservationId,
    ownerId: ACCOUNT_ID,
    groupSet: null,
    instancesSet: { item: instances.map((instance) => renderInstance(instance, tags)) },
  };
}

/** The root volume of an instance that is not terminated. */
export function renderVolume({ id, volumeId, zone, launchedAtMs }: Instance, tags: Tags): XmlNode {
  return {
    volumeId,
    size: 8,
    snapshotId: null,
    availabilityZone: zone,
    status: 'in-use',
    createTime: isoTime(launchedAtMs),
    attachmentSet: {
      item: {
        volumeId,
        instanceId: id,
        device: ROOT_DEVICE,
        status: 'attached',
        attachTime: isoTime(launchedAtMs),
        deleteOnTermination: true,
      },
    },
    tagSet: renderTags(tags.of(volumeId)),
    volumeType: 'gp3',
    iops: 3_000,
    throughput: 125,
    encrypted: false,
    multiAttachEnabled: false,
  };
}

export function renderSubnet(subnet: Subnet, catalogue: Catalogue, free: number, tags: TagStore) {
  return {
    subnetId: subnet.id,
    subnetArn: subnet.arn,
    state: 'available',
    ownerId: ACCOUNT_ID,
    vpcId: catalogue.vpcId,
    cidrBlock: subnet.cidr,
    ipv6CidrBlockAssociationSet: null,
    availableIpAddressCount: free,
    availabilityZone: subnet.zone,
    availabilityZoneId: subnet.zoneId,
    defaultForAz: subnet.isDefault,
    mapPublicIpOnLaunch: true,
    assignIpv6AddressOnCreation: false,
    tagSet: renderTags(tags.of(subnet.id)),
  };
}

export const imageState = (image: Image, nowMs: number): 'pending' | 'available' =>
  image.own !== undefined && nowMs < image.own.availableAtMs ? 'pending' : 'available';

export function renderImage(image: Image, tags: TagStore, nowMs: number) {
  return {
    imageId: image.id,
    imageLocation: `${image.ownerAlias ?? image.ownerId}/${image.name}`,
    imageState: imageState(image, nowMs),
    imageOwnerId: image.ownerId,
    creationDate: image.createdAt,
    isPublic: image.own === undefined,
    architecture: image.architecture,
    imageType: 'machine',
    imageOwnerAlias: image.ownerAlias ?? undefined,
    name: image.name,
    description: image.description,
    rootDeviceType: 'ebs',
    rootDeviceName: ROOT_DEVICE,
    blockDeviceMapping: {
      item: {
        deviceName: ROOT_DEVICE,
        ebs: {
          snapshotId: image.own?.snapshotId,
          volumeSize: 8,
          deleteOnTermination: true,
          volumeType: 'gp3',
          encrypted: false,
        },
      },
    },
    virtualizationType: 'hvm',
    hypervisor: 'xen',
    enaSupport: true,
    tagSet: renderTags(tags.of(image.id)),
  };
}

export function renderInstanceType(type: InstanceType): XmlNode {
  return {
    instanceType: type.name,
    currentGeneration: true,
    freeTierEligible: false,
    supportedUsageClasses: { item: ['on-demand', 'spot'] },
    supportedRootDeviceTypes: { item: ['ebs'] },
    supportedVirtualizationTypes: { item: ['hvm'] },
    bareMetal: false,
    hypervisor: 'nitro',
    processorInfo: { supportedArchitectures: { item: [type.architecture] } },
    vCpuInfo: { defaultVCpus: type.vcpus, defaultCores: 1, defaultThreadsPerCore: 2 },
    memoryInfo: { sizeInMiB: type.memoryMib },
    instanceStorageSupported: false,
    burstablePerformanceSupported: true,
  };
}
