/** The calls on load balancers and listeners. */
import { AwsError } from '../aws-error.ts';
import { newArnId } from '../ids.ts';
import type { Params } from '../query-protocol.ts';
import type { XmlNode } from '../xml.ts';
import { LoadBalancer, type LoadBalancerAbout } from './load-balancer.ts';
import { chooseNamed, elbArn, type ElbContext, pageOf } from './registry.ts';
import { renderAttributes, renderListener, renderLoadBalancer } from './render.ts';
import { putTags, readCreationTags } from './tag-actions.ts';
import type { TargetGroup } from './target-group.ts';

/** The name of a load balancer or target group. */
export function readName(params: Params): string {
  const name = params.need('Name');
  if (!/^[A-Za-z0-9]([A-Za-z0-9-]{0,30}[A-Za-z0-9])?$/.test(name))
    throw new AwsError(
      'ValidationError',
      `The name '${name}' must be 1 to 32 letters, digits and hyphens, with no hyphen at its ends`,
    );
  return name;
}

export function createLoadBalancer(params: Params, context: ElbContext): XmlNode {
  const { registry, catalogue, clock, addresses } = context;
  const name = readName(params);
  const wanted = readWanted(params, context);
  const tags = readCreationTags(params, context, 'CreateLoadBalancer');
  const existing = [...registry.loadBalancers.values()].find((balancer) => balancer.about.name === name);
  if (existing) {
    // Repeating the same request is fine; a different request under the same name is not.
    if (!sameSettings(existing.about, wanted))
      throw new AwsError(
        'DuplicateLoadBalancerName',
        `A load balancer with the same name '${name}' exists, but with different settings`,
      );
    return { LoadBalancers: { member: renderLoadBalancer(existing, clock.now()) } };
  }
  const address = addresses.take();
  if (address === null)
    throw new AwsError('TooManyLoadBalancers', 'The sandbox has no address left for another load balancer');
  const arn = elbArn(catalogue.region, `loadbalancer/app/${name}/${newArnId()}`);
  const about = { arn, name, address, ...wanted, createdMs: clock.now() };
  const { conditions } = context;
  const balancer = new LoadBalancer(about, context.faults, {
    nodes: () => conditions.now.balancerNodes,
    isOut: () => conditions.now.outages.includes(catalogue.region),
  });
  registry.loadBalancers.set(arn, balancer);
  putTags(registry, arn, tags);
  return { LoadBalancers: { member: renderLoadBalancer(balancer, clock.now()) } };
}

type Wanted = Pick<LoadBalancerAbout, 'scheme' | 'vpcId' | 'subnets' | 'securityGroupIds'>;

function readWanted(params: Params, { catalogue }: ElbContext): Wanted {
  const type = params.text('Type') ?? 'application';
  if (type !== 'application')
    throw new AwsError('InvalidConfigurationRequest', `The sandbox has application load balancers only, not '${type}'`);
  const ids = [
    ...params.texts('Subnets'),
    ...params.groups('SubnetMappings').map((mapping) => mapping.need('SubnetId')),
  ];
  const subnets = ids.map((id) => {
    const subnet = catalogue.subnets.find((candidate) => candidate.id === id);
    if (!subnet) throw new AwsError('SubnetNotFound', `The subnet ID '${id}' does not exist`);
    return { id, zone: subnet.zone };
  });
  if (new Set(subnets.map(({ zone }) => zone)).size < 2)
    throw new AwsError('ValidationError', 'At least two subnets in two different Availability Zones must be specified');
  const groups = params.texts('SecurityGroups');
  const unknown = groups.find((id) => id !== catalogue.securityGroupId);
  if (unknown !== undefined)
    throw new AwsError('InvalidSecurityGroup', `The security group '${unknown}' does not exist`);
  const scheme = params.text('Scheme') ?? 'internet-facing';
  if (scheme !== 'internet-facing' && scheme !== 'internal')
    throw new AwsError('InvalidScheme', `'${scheme}' is not a scheme`);
  return {
    scheme,
    vpcId: catalogue.vpcId,
    subnets,
    securityGroupIds: groups.length > 0 ? groups : [catalogue.securityGroupId],
  };
}

function sameSettings(about: LoadBalancerAbout, wanted: Wanted): boolean {
  const settings = ({ scheme, subnets, securityGroupIds }: Wanted): string =>
    JSON.stringify([scheme, subnets.map(({ id }) => id).sort(), [...securityGroupIds].sort()]);
  return settings(about) === settings(wanted);
}

export function describeLoadBalancers(params: Params, { registry, clock }: ElbContext): XmlNode {
  const refuse = (missing: string): AwsError =>
    new AwsError('LoadBalancerNotFound', `Load balancers '[${missing}]' not found`);
  const arns = params.texts('LoadBalancerArns');
  const chosen = chooseNamed(registry.loadBalancers, arns, params.texts('Names'), refuse);
  const page = pageOf(chosen, params, (b) => b.about.arn);
  return {
    LoadBalancers: { member: page.items.map((balancer) => renderLoadBalancer(balancer, clock.now())) },
    NextMarker: page.nextMarker,
  };
}

/** A missing load balancer counts as deleted. */
export async function deleteLoadBalancer(params: Params, { registry, addresses }: ElbContext): Promise<XmlNode> {
  const arn = params.need('LoadBalancerArn');
  const balancer = registry.loadBalancers.get(arn);
  if (!balancer) return {};
  if (balancer.attributes.get('deletion_protection.enabled') === 'true')
    throw new AwsError(
      'OperationNotPermitted',
      `Load balancer '${arn}' cannot be deleted because deletion protection is enabled`,
    );
  registry.loadBalancers.delete(arn);
  for (const listener of balancer.listeners()) registry.tags.delete(listener.arn);
  registry.tags.delete(arn);
  await balancer.close();
  addresses.give(balancer.about.address);
  return {};
}

export function modifyLoadBalancerAttributes(params: Params, { registry }: ElbContext): XmlNode {
  const { attributes } = registry.loadBalancer(params.need('LoadBalancerArn'));
  for (const attribute of params.groups('Attributes'))
    attributes.set(attribute.need('Key'), attribute.text('Value') ?? '');
  return renderAttributes(attributes);
}

export function describeLoadBalancerAttributes(params: Params, { registry }: ElbContext): XmlNode {
  return renderAttributes(registry.loadBalancer(params.need('LoadBalancerArn')).attributes);
}

export async function createListener(params: Params, context: ElbContext): Promise<XmlNode> {
  const { registry, catalogue } = context;
  const balancer = registry.loadBalancer(params.need('LoadBalancerArn'));
  const protocol = params.text('Protocol') ?? 'HTTP';
  if (protocol !== 'HTTP')
    throw new AwsError('UnsupportedProtocol', `The sandbox has HTTP listeners only, not '${protocol}'`);
  const port = params.needInt('Port');
  if (port < 1 || port > 65_535) throw new AwsError('ValidationError', `Port ${port} must be between 1 and 65535`);
  const group = readForwardAction(params, context);
  const tags = readCreationTags(params, context, 'CreateListener');
  const present = balancer.listenerAt(port);
  if (present) {
    if (present.targetGroup !== group)
      throw new AwsError(
        'DuplicateListener',
        `A listener already exists on port ${port} for this load balancer '${balancer.about.arn}'`,
      );
    return { Listeners: { member: renderListener(present, balancer.about.arn) } };
  }
  if (group.use && group.use.loadBalancerArn !== balancer.about.arn)
    throw new AwsError(
      'TargetGroupAssociationLimit',
      `The target group '${group.about.arn}' is in use by another load balancer`,
    );
  const id = balancer.about.arn.replace(/^.*:loadbalancer\//, '');
  const arn = elbArn(catalogue.region, `listener/${id}/${newArnId()}`);
  const listener = await balancer.listen(arn, port, group).catch((error: NodeJS.ErrnoException) => {
    throw new AwsError(
      'InvalidConfigurationRequest',
      `The sandbox cannot listen on ${balancer.about.address}:${port}: ${error.code ?? error.message}`,
    );
  });
  putTags(registry, arn, tags);
  return { Listeners: { member: renderListener(listener, balancer.about.arn) } };
}

function readForwardAction(params: Params, { registry }: ElbContext): TargetGroup {
  const actions = params.groups('DefaultActions');
  const [action] = actions;
  if (!action) throw new AwsError('ValidationError', "'DefaultActions' must be specified");
  if (actions.length > 1 || action.need('Type') !== 'forward')
    throw new AwsError('InvalidLoadBalancerAction', 'The sandbox has one forward action per listener');
  const arn =
    action.text('TargetGroupArn') ?? action.group('ForwardConfig').groups('TargetGroups')[0]?.text('TargetGroupArn');
  if (arn === undefined) throw new AwsError('InvalidLoadBalancerAction', 'A forward action needs a target group');
  return registry.targetGroup(arn);
}

export function describeListeners(params: Params, { registry }: ElbContext): XmlNode {
  const arns = params.texts('ListenerArns');
  const balancerArn = params.text('LoadBalancerArn');
  if (arns.length === 0 && balancerArn === undefined)
    throw new AwsError('ValidationError', "Either 'LoadBalancerArn' or 'ListenerArns' must be specified");
  const arnsOfOne = (arn: string): string[] =>
    registry
      .loadBalancer(arn)
      .listeners()
      .map((listener) => listener.arn);
  const found = (balancerArn === undefined ? arns : arnsOfOne(balancerArn)).map((arn) => registry.listener(arn));
  const page = pageOf(found, params, ({ listener }) => listener.arn);
  return {
    Listeners: { member: page.items.map(({ balancer, listener }) => renderListener(listener, balancer.about.arn)) },
    NextMarker: page.nextMarker,
  };
}

export async function deleteListener(params: Params, { registry }: ElbContext): Promise<XmlNode> {
  const { balancer, listener } = registry.listener(params.need('ListenerArn'));
  registry.tags.delete(listener.arn);
  await balancer.removeListener(listener);
  return {};
}
