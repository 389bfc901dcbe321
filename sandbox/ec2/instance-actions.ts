/** The calls that describe instances and change their state. */
import { AwsError } from '../aws-error.ts';
import type { Params } from '../query-protocol.ts';
import type { XmlNode } from '../xml.ts';
import type { Ec2Context } from './context.ts';
import type { FilterTable } from './filters.ts';
import { applyFilters } from './filters.ts';
import type { Instance, StateChange } from './instance.ts';
import { STATE_CODES } from './instance.ts';
import { paginate } from './paging.ts';
import {
  isoTime,
  privateAddressOf,
  profileArnOf,
  publicAddressOf,
  renderChanges,
  renderReservation,
  renderState,
} from './render.ts';
import { refuseDryRun } from './run-instances.ts';
import { findKnown, knownInstances, seenTags } from './visibility.ts';

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

/** The instances with these ids; throws for malformed and unknown ones before any of them is changed. */
export function findInstances(ids: readonly string[], context: Ec2Context): Instance[] {
  for (const id of ids) {
    if (!/^i-([0-9a-f]{8}|[0-9a-f]{17})$/.test(id)) {
      throw new AwsError('InvalidInstanceID.Malformed', `Invalid id: "${id}"`);
    }
  }
  const unknown = ids.filter((id) => !findKnown(id, context));
  if (unknown.length === 1) {
    throw new AwsError('InvalidInstanceID.NotFound', `The instance ID '${unknown[0]}' does not exist`);
  }
  if (unknown.length > 1) {
    throw new AwsError('InvalidInstanceID.NotFound', `The instance IDs '${unknown.join(', ')}' do not exist`);
  }
  return [...new Set(ids)].map((id) => context.fleet.find(id)!);
}

export function describeInstances(params: Params, context: Ec2Context): XmlNode {
  const ids = params.texts('InstanceId');
  if (ids.length > 0 && params.text('MaxResults') !== undefined) {
    throw new AwsError(
      'InvalidParameterCombination',
      'The parameter instancesSet cannot be used with the parameter maxResults',
    );
  }
  const chosen = ids.length > 0 ? findInstances(ids, context) : knownInstances(context);
  const tags = seenTags(context);
  const matching = applyFilters(chosen, params, FILTERS, (i) => tags.of(i.id));
  const page = paginate(
    matching.sort((a, b) => a.sequence - b.sequence),
    params,
    (i) => i.sequence,
    { min: 5, max: 1_000 },
  );
  const reservations = Map.groupBy(page.items, (i) => i.reservationId);
  return {
    reservationSet: { item: [...reservations.values()].map((group) => renderReservation(group, tags)) },
    nextToken: page.nextToken,
  };
}

export function describeInstanceStatus(params: Params, context: Ec2Context): XmlNode {
  const ids = params.texts('InstanceId');
  const chosen = ids.length > 0 ? findInstances(ids, context) : knownInstances(context);
  const shown = applyFilters(chosen, params, FILTERS).filter(
    (i) => i.state === 'running' || params.flag('IncludeAllInstances') === true,
  );
  const page = paginate(shown, params, (i) => i.sequence, { min: 5, max: 1_000 });
  return {
    instanceStatusSet: {
      item: page.items.map((i) => {
        const status = i.state === 'running' ? 'ok' : 'not-applicable';
        return {
          instanceId: i.id,
          availabilityZone: i.zone,
          instanceState: renderState(i.state),
          systemStatus: { status },
          instanceStatus: { status },
        };
      }),
    },
    nextToken: page.nextToken,
  };
}

/** One of the three calls that change the state: all ids must be known, and `move` changes each. */
function changeState(params: Params, context: Ec2Context, move: (instance: Instance) => StateChange): XmlNode {
  params.need('InstanceId.1');
  const instances = findInstances(params.texts('InstanceId'), context);
  refuseDryRun(params);
  return renderChanges(instances.map((instance) => move(instance)));
}

/**
 * One protected instance fails the call and protects every instance in its own zone; those in other zones are
 * terminated.
 */
export function terminateInstances(params: Params, context: Ec2Context): XmlNode {
  const named = params.texts('InstanceId').flatMap((id) => findKnown(id, context) ?? []);
  const guarded = named.filter((instance) => instance.isProtected);
  const zones = new Set(guarded.map(({ zone }) => zone));
  const ignored = params.flag('DryRun') !== true && context.faults.takeForTerminate();
  const reply = changeState(params, context, (instance) =>
    ignored || zones.has(instance.zone) ? { instance, previous: instance.state } : context.fleet.terminate(instance),
  );
  if (guarded.length === 0) return reply;
  throw new AwsError(
    'OperationNotPermitted',
    `The instance '${guarded[0]!.id}' may not be terminated. Modify its 'disableApiTermination' instance attribute and try again.`,
  );
}

export const stopInstances = (params: Params, context: Ec2Context): XmlNode =>
  changeState(params, context, (instance) => context.fleet.stop(instance));

export const startInstances = (params: Params, context: Ec2Context): XmlNode =>
  changeState(params, context, (instance) => context.fleet.start(instance));

export function describeInstanceAttribute(params: Params, context: Ec2Context): XmlNode {
  const instance = findInstances([params.need('InstanceId')], context)[0]!;
  const attribute = params.need('Attribute');
  const value = attributeOf(instance, attribute);
  return { instanceId: instance.id, [attribute]: value };
}

function attributeOf(instance: Instance, attribute: string): XmlNode {
  switch (attribute) {
    case 'userData':
      return instance.userData === '' ? {} : { value: instance.userData };
    case 'instanceInitiatedShutdownBehavior':
      return { value: instance.shutdownBehavior };
    case 'instanceType':
      return { value: instance.instanceType };
    case 'disableApiTermination':
      return { value: String(instance.isProtected) };
    case 'disableApiStop':
      return { value: 'false' };
    case 'rootDeviceName':
      return { value: '/dev/xvda' };
    default:
      throw new AwsError(
        'InvalidParameterValue',
        `Value (${attribute}) for parameter attribute is invalid. Unknown attribute.`,
      );
  }
}

/** Supports only the protection against termination. */
export function modifyInstanceAttribute(params: Params, context: Ec2Context): XmlNode {
  const instance = findInstances([params.need('InstanceId')], context)[0]!;
  const value = params.group('DisableApiTermination').flag('Value') ?? params.flag('Value');
  if (value === undefined) {
    throw new AwsError('InvalidParameterCombination', 'The sandbox modifies disableApiTermination only');
  }
  refuseDryRun(params);
  instance.isProtected = value;
  return { return: true };
}

export function getConsoleOutput(params: Params, context: Ec2Context): XmlNode {
  const instance = findInstances([params.need('InstanceId')], context)[0]!;
  const output = context.host.consoleOutput(instance.id);
  return {
    instanceId: instance.id,
    timestamp: isoTime(instance.launchedAtMs),
    output: output === null || output.length === 0 ? undefined : output.toString('base64'),
  };
}
