/** The calls that describe instances and their volumes, and change the state of instances. */
import { AwsError } from '../aws-error.ts';
import type { Params } from '../query-protocol.ts';
import type { XmlNode } from '../xml.ts';
import { unknownAttribute } from './catalogue-actions.ts';
import {
  chooseInstances,
  type Ec2Context,
  findInstance,
  findInstances,
  findKnown,
  refuseDryRun,
  seenTags,
} from './context.ts';
import { applyFilters, type FilterTable, paginate } from './filters.ts';
import { type Instance, STATE_CODES, type StateChange } from './instance.ts';
import {
  ROOT_DEVICE,
  isoTime,
  privateAddressOf,
  profileArnOf,
  publicAddressOf,
  renderReservation,
  renderState,
  renderVolume,
} from './render.ts';

/** AWS's limits for MaxResults. */
const PAGE = { min: 5, max: 1_000 };

const FILTERS: FilterTable<Instance> = {
  'instance-id': (i) => i.id,
  'instance-state-name': (i) => i.state,
  'instance-state-code': (i) => String(STATE_CODES[i.state]),
  'instance-type': (i) => i.instanceType,
  'image-id': (i) => i.imageId,
  'availability-zone': (i) => i.zone,
  'subnet-id': (i) => i.subnetId,
  'vpc-id': (i) => i.vpcId,
  'private-ip-address': (i) => privateAddressOf(i),
  'ip-address': (i) => publicAddressOf(i),
  'reservation-id': (i) => i.reservationId,
  'client-token': (i) => i.clientToken ?? undefined,
  'instance.group-id': (i) => i.securityGroupIds,
  'iam-instance-profile.arn': (i) => profileArnOf(i),
  architecture: (i) => i.architecture,
  'key-name': (i) => i.keyName ?? undefined,
  'launch-time': (i) => isoTime(i.launchedAtMs),
};

export function describeInstances(params: Params, context: Ec2Context): XmlNode {
  const ids = params.texts('InstanceId');
  if (ids.length > 0 && params.text('MaxResults') !== undefined)
    throw new AwsError(
      'InvalidParameterCombination',
      'The parameter instancesSet cannot be used with the parameter maxResults',
    );
  const tags = seenTags(context);
  const matching = applyFilters(chooseInstances(ids, context), params, FILTERS, (i) => tags.of(i.id));
  matching.sort((a, b) => a.sequence - b.sequence);
  const page = paginate(matching, params, (i) => i.sequence, PAGE);
  const reservations = Map.groupBy(page.items, (i) => i.reservationId);
  return {
    reservationSet: { item: [...reservations.values()].map((group) => renderReservation(group, tags)) },
    nextToken: page.nextToken,
  };
}

export function describeInstanceStatus(params: Params, context: Ec2Context): XmlNode {
  const shown = applyFilters(chooseInstances(params.texts('InstanceId'), context), params, FILTERS).filter(
    (i) => i.state === 'running' || params.flag('IncludeAllInstances') === true,
  );
  const page = paginate(shown, params, (i) => i.sequence, PAGE);
  const item = page.items.map((i) => {
    const status = i.state === 'running' ? 'ok' : 'not-applicable';
    return {
      instanceId: i.id,
      availabilityZone: i.zone,
      instanceState: renderState(i.state),
      systemStatus: { status },
      instanceStatus: { status },
    };
  });
  return { instanceStatusSet: { item }, nextToken: page.nextToken };
}

/** Every type here is burstable. T3 and T4g are unlimited unless the launch overrides that, which ours does not. */
export function describeInstanceCreditSpecifications(params: Params, context: Ec2Context): XmlNode {
  const chosen = chooseInstances(params.texts('InstanceId'), context);
  const item = chosen.map(({ id }) => ({ instanceId: id, cpuCredits: 'unlimited' }));
  return { instanceCreditSpecificationSet: { item } };
}

const VOLUME_FILTERS: FilterTable<Instance> = {
  'volume-id': (i) => i.volumeId,
  'attachment.instance-id': (i) => i.id,
  'attachment.device': () => ROOT_DEVICE,
  'availability-zone': (i) => i.zone,
  status: () => 'in-use',
};

export const getEbsEncryptionByDefault = (_: Params, { conditions }: Ec2Context): XmlNode => ({
  ebsEncryptionByDefault: conditions.now.ebsKmsKey !== null,
});

export const getEbsDefaultKmsKeyId = (_: Params, { conditions }: Ec2Context): XmlNode => ({
  kmsKeyId: conditions.now.ebsKmsKey ?? 'alias/aws/ebs',
});

/** The root volume of each instance; there are no others, and they are deleted with their instances. */
export function describeVolumes(params: Params, context: Ec2Context): XmlNode {
  const { tags } = context;
  const attached = chooseInstances([], context).filter((instance) => instance.state !== 'terminated');
  const ids = params.texts('VolumeId');
  const unknown = ids.find((id) => !attached.some((instance) => instance.volumeId === id));
  if (unknown !== undefined) throw new AwsError('InvalidVolume.NotFound', `The volume '${unknown}' does not exist.`);
  const chosen = attached.filter((instance) => ids.length === 0 || ids.includes(instance.volumeId));
  const matching = applyFilters(chosen, params, VOLUME_FILTERS, (i) => tags.of(i.volumeId));
  const page = paginate(matching, params, (i) => i.sequence, PAGE);
  return { volumeSet: { item: page.items.map((i) => renderVolume(i, tags)) }, nextToken: page.nextToken };
}

/** One of the three calls that change the state: all ids must be known, and `move` changes each. */
function changeState(params: Params, context: Ec2Context, move: (instance: Instance) => StateChange): XmlNode {
  params.need('InstanceId.1');
  const instances = findInstances(params.texts('InstanceId'), context);
  refuseDryRun(params);
  const item = instances.map(move).map(({ instance, previous }) => ({
    instanceId: instance.id,
    currentState: renderState(instance.state),
    previousState: renderState(previous),
  }));
  return { instancesSet: { item } };
}

/**
 * One protected instance fails the call and protects every instance in its own zone; those in other zones are
 * terminated.
 */
export function terminateInstances(params: Params, context: Ec2Context): XmlNode {
  const named = params.texts('InstanceId').flatMap((id) => findKnown(id, context) ?? []);
  const guarded = named.filter((instance) => instance.isProtected);
  const zones = new Set(guarded.map(({ zone }) => zone));
  const ignored = params.flag('DryRun') !== true && context.faults.take('ignored-terminate') !== null;
  const reply = changeState(params, context, (instance) =>
    ignored || zones.has(instance.zone) ? { instance, previous: instance.state } : context.fleet.terminate(instance),
  );
  const [first] = guarded;
  if (first === undefined) return reply;
  throw new AwsError(
    'OperationNotPermitted',
    `The instance '${first.id}' may not be terminated. Modify its 'disableApiTermination' instance attribute and try again.`,
  );
}

export const stopInstances = (params: Params, context: Ec2Context): XmlNode =>
  changeState(params, context, (instance) => context.fleet.stop(instance));

export const startInstances = (params: Params, context: Ec2Context): XmlNode =>
  changeState(params, context, (instance) => context.fleet.start(instance));

export function describeInstanceAttribute(params: Params, context: Ec2Context): XmlNode {
  const instance = findInstance(params, context);
  const attribute = params.need('Attribute');
  const values: Record<string, string | undefined> = {
    userData: instance.userData || undefined,
    instanceInitiatedShutdownBehavior: instance.shutdownBehavior,
    instanceType: instance.instanceType,
    disableApiTermination: String(instance.isProtected),
    disableApiStop: 'false',
    rootDeviceName: ROOT_DEVICE,
  };
  if (!Object.hasOwn(values, attribute)) throw unknownAttribute(attribute);
  return { instanceId: instance.id, [attribute]: { value: values[attribute] } };
}

/** Supports only the protection against termination. */
export function modifyInstanceAttribute(params: Params, context: Ec2Context): XmlNode {
  const instance = findInstance(params, context);
  const value = params.group('DisableApiTermination').flag('Value') ?? params.flag('Value');
  if (value === undefined)
    throw new AwsError('InvalidParameterCombination', 'The sandbox modifies disableApiTermination only');
  refuseDryRun(params);
  instance.isProtected = value;
  return { return: true };
}

export function getConsoleOutput(params: Params, context: Ec2Context): XmlNode {
  const instance = findInstance(params, context);
  return {
    instanceId: instance.id,
    timestamp: isoTime(instance.launchedAtMs),
    output: instance.machine?.consoleOutput().toString('base64') || undefined,
  };
}
