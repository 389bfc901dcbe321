/** Calls that only other clients make, not our own adapters: details of resources that exist here anyway. */
import { AwsError } from '../aws-error.ts';
import type { Params } from '../query-protocol.ts';
import type { XmlNode } from '../xml.ts';
import type { Ec2Context } from './context.ts';
import { applyFilters } from './filters.ts';
import type { Instance } from './instance.ts';
import { findInstances } from './instance-actions.ts';
import { paginate } from './paging.ts';
import { isoTime, renderTags } from './render.ts';
import { knownInstances } from './visibility.ts';

/** As in an account's default VPC. */
const VPC_ATTRIBUTES: Record<string, boolean> = {
  enableDnsSupport: true,
  enableDnsHostnames: true,
  enableNetworkAddressUsageMetrics: false,
};

export function describeVpcAttribute(params: Params, { catalogue }: Ec2Context): XmlNode {
  const vpcId = params.need('VpcId');
  if (vpcId !== catalogue.vpcId) {
    throw new AwsError('InvalidVpcID.NotFound', `The vpc ID '${vpcId}' does not exist`);
  }
  const attribute = params.need('Attribute');
  const value = VPC_ATTRIBUTES[attribute];
  if (value === undefined) {
    throw new AwsError(
      'InvalidParameterValue',
      `Value (${attribute}) for parameter attribute is invalid. Unknown attribute.`,
    );
  }
  return { vpcId, [attribute]: { value } };
}

/** Every type here is burstable. T3 and T4g are unlimited unless the launch overrides that, which ours does not. */
export function describeInstanceCreditSpecifications(params: Params, context: Ec2Context): XmlNode {
  const ids = params.texts('InstanceId');
  const chosen = ids.length > 0 ? findInstances(ids, context) : knownInstances(context);
  return {
    instanceCreditSpecificationSet: {
      item: chosen.map(({ id }) => ({ instanceId: id, cpuCredits: 'unlimited' })),
    },
  };
}

/** The root volume of each instance; there are no others, and they are deleted with their instances. */
export function describeVolumes(params: Params, context: Ec2Context): XmlNode {
  const attached = knownInstances(context).filter((instance) => instance.state !== 'terminated');
  const ids = params.texts('VolumeId');
  const unknown = ids.find((id) => !attached.some((instance) => instance.volumeId === id));
  if (unknown !== undefined) {
    throw new AwsError('InvalidVolume.NotFound', `The volume '${unknown}' does not exist.`);
  }
  const { tags } = context;
  const matching = applyFilters<Instance>(
    attached.filter((instance) => ids.length === 0 || ids.includes(instance.volumeId)),
    params,
    {
      'volume-id': (i) => i.volumeId,
      'attachment.instance-id': (i) => i.id,
      'attachment.device': () => ROOT_DEVICE,
      'availability-zone': (i) => i.zone,
      status: () => 'in-use',
    },
    (i) => tags.of(i.volumeId),
  );
  const page = paginate(matching, params, (i) => i.sequence, { min: 5, max: 1_000 });
  return {
    volumeSet: { item: page.items.map((instance) => renderVolume(instance, tags.of(instance.volumeId))) },
    nextToken: page.nextToken,
  };
}

const ROOT_DEVICE = '/dev/xvda';

function renderVolume(instance: Instance, tags: ReadonlyMap<string, string>): XmlNode {
  const { id, volumeId, zone, launchedAtMs } = instance;
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
    tagSet: renderTags(tags),
    volumeType: 'gp3',
    iops: 3_000,
    throughput: 125,
    encrypted: false,
    multiAttachEnabled: false,
  };
}
