/** The calls on target groups and their targets. */
import { AwsError } from '../aws-error.ts';
import { newArnId } from '../ids.ts';
import type { Params } from '../query-protocol.ts';
import type { XmlNode } from '../xml.ts';
import type { HealthCheckSettings, HealthCheck } from './health-check.ts';
import { readName } from './load-balancer-actions.ts';
import { chooseNamed, elbArn, type ElbContext, pageOf } from './registry.ts';
import { renderAttributes, renderTargetGroup, renderTargetHealth } from './render.ts';
import { putTags, readCreationTags } from './tag-actions.ts';
import { TargetGroup } from './target-group.ts';

const MAX_TARGETS = 1_000;

export function createTargetGroup(params: Params, context: ElbContext): XmlNode {
  const { registry, catalogue, clock, findInstance, faults } = context;
  const name = readName(params);
  const wanted = readWanted(params, context);
  const tags = readCreationTags(params, context, 'CreateTargetGroup');
  const existing = [...registry.targetGroups.values()].find((group) => group.about.name === name);
  if (existing) {
    const { port, vpcId, healthCheck } = existing.about;
    if (JSON.stringify({ port, vpcId, healthCheck }) !== JSON.stringify(wanted))
      throw new AwsError(
        'DuplicateTargetGroupName',
        `A target group with the same name '${name}' exists, but with different settings`,
      );
    return { TargetGroups: { member: renderTargetGroup(existing) } };
  }
  const arn = elbArn(catalogue.region, `targetgroup/${name}/${newArnId()}`);
  const healthCheck: HealthCheck = async (request) =>
    faults.take('failed-check', (rule) => (rule.instance ?? request.instanceId) === request.instanceId)
      ? { code: 'Target.FailedHealthChecks', text: 'Health checks failed' }
      : context.healthCheck(request);
  const group = new TargetGroup({ arn, name, ...wanted }, { clock, healthCheck, findInstance });
  registry.targetGroups.set(arn, group);
  putTags(registry, arn, tags);
  return { TargetGroups: { member: renderTargetGroup(group) } };
}

function readWanted(
  params: Params,
  { catalogue }: ElbContext,
): { port: number; vpcId: string; healthCheck: HealthCheckSettings } {
  const type = params.text('TargetType') ?? 'instance';
  if (type !== 'instance') throw invalid(`The sandbox has targets of type instance only, not '${type}'`);
  for (const name of ['Protocol', 'HealthCheckProtocol']) {
    const protocol = params.text(name) ?? 'HTTP';
    if (protocol !== 'HTTP') throw new AwsError('UnsupportedProtocol', `The sandbox has HTTP only, not '${protocol}'`);
  }
  const vpcId = params.need('VpcId');
  if (vpcId !== catalogue.vpcId) throw invalid(`The VPC ID '${vpcId}' is not found`);
  params.need('Port');
  const number = (name: string, fallback: number, min: number, max: number): number => {
    const value = params.int(name) ?? fallback;
    if (value < min || value > max) throw invalid(`${name} must be between ${min} and ${max}, not ${value}`);
    return value;
  };
  const healthCheck: HealthCheckSettings = {
    path: params.text('HealthCheckPath') ?? '/',
    port: params.text('HealthCheckPort') ?? 'traffic-port',
    intervalS: number('HealthCheckIntervalSeconds', 30, 5, 300),
    timeoutS: number('HealthCheckTimeoutSeconds', 5, 2, 120),
    healthyThreshold: number('HealthyThresholdCount', 5, 2, 10),
    unhealthyThreshold: number('UnhealthyThresholdCount', 2, 2, 10),
    matcher: params.group('Matcher').text('HttpCode') ?? '200',
  };
  if (healthCheck.timeoutS >= healthCheck.intervalS && healthCheck.intervalS !== 5)
    throw invalid('Health check interval must be greater than the timeout.');
  if (!/^\d{3}(-\d{3})?(,\d{3}(-\d{3})?)*$/.test(healthCheck.matcher))
    throw invalid(`Health check matcher HTTP code '${healthCheck.matcher}' must be within '200-499' inclusive`);
  return { port: number('Port', 0, 1, 65_535), vpcId, healthCheck };
}

export function describeTargetGroups(params: Params, { registry }: ElbContext): XmlNode {
  const balancerArn = params.text('LoadBalancerArn');
  if (balancerArn !== undefined) registry.loadBalancer(balancerArn);
  const refuse = (missing: string): AwsError =>
    new AwsError('TargetGroupNotFound', `One or more target groups not found: '${missing}'`);
  const arns = params.texts('TargetGroupArns');
  const chosen = chooseNamed(registry.targetGroups, arns, params.texts('Names'), refuse).filter(
    (group) => balancerArn === undefined || group.use?.loadBalancerArn === balancerArn,
  );
  const page = pageOf(chosen, params, (group) => group.about.arn);
  return { TargetGroups: { member: page.items.map(renderTargetGroup) }, NextMarker: page.nextMarker };
}

/** A missing group counts as deleted. */
export function deleteTargetGroup(params: Params, { registry }: ElbContext): XmlNode {
  const arn = params.need('TargetGroupArn');
  const group = registry.targetGroups.get(arn);
  if (!group) return {};
  if (group.use)
    throw new AwsError('ResourceInUse', `Target group '${arn}' is currently in use by a listener or a rule`);
  group.close();
  registry.targetGroups.delete(arn);
  registry.tags.delete(arn);
  return {};
}

export function modifyTargetGroupAttributes(params: Params, { registry }: ElbContext): XmlNode {
  const { attributes } = registry.targetGroup(params.need('TargetGroupArn'));
  const changes = params.groups('Attributes').map((a) => [a.need('Key'), a.text('Value') ?? ''] as const);
  for (const [key, value] of changes) {
    const bad = key === 'deregistration_delay.timeout_seconds' && !(/^\d{1,4}$/.test(value) && Number(value) <= 3_600);
    if (bad)
      throw invalid(`Target group attribute value '${value}' for key '${key}' must be an integer between 0 and 3600`);
  }
  for (const [key, value] of changes) attributes.set(key, value);
  return renderAttributes(attributes);
}

export function describeTargetGroupAttributes(params: Params, { registry }: ElbContext): XmlNode {
  return renderAttributes(registry.targetGroup(params.need('TargetGroupArn')).attributes);
}

/** The targets that a call names; the port is null where it names none. */
const readTargets = (params: Params): { id: string; port: number | null }[] =>
  params.groups('Targets').map((target) => ({ id: target.need('Id'), port: target.int('Port') ?? null }));

export function registerTargets(params: Params, { registry, findInstance }: ElbContext): XmlNode {
  const group = registry.targetGroup(params.need('TargetGroupArn'));
  const targets = readTargets(params);
  if (targets.length === 0) throw new AwsError('ValidationError', "'Targets' must be specified");
  const refuse = (ids: string[], what: string): void => {
    if (ids.length > 0) throw new AwsError('InvalidTarget', `The following targets ${what}: '${ids.join("', '")}'`);
  };
  const ids = targets.map(({ id }) => id);
  refuse(
    ids.filter((id) => !findInstance(id)),
    'do not exist',
  );
  refuse(
    ids.filter((id) => findInstance(id)?.state !== 'running'),
    'are not in a running state and cannot be registered',
  );
  if (group.targets().length + targets.length > MAX_TARGETS)
    throw new AwsError('TooManyTargets', `A target group can have at most ${MAX_TARGETS} targets`);
  for (const { id, port } of targets) group.register(id, port ?? group.about.port);
  return {};
}

/** A target that is not registered counts as deregistered. */
export function deregisterTargets(params: Params, { registry }: ElbContext): XmlNode {
  const group = registry.targetGroup(params.need('TargetGroupArn'));
  for (const { id, port } of readTargets(params)) group.deregister(id, port);
  return {};
}

export function describeTargetHealth(params: Params, { registry }: ElbContext): XmlNode {
  const group = registry.targetGroup(params.need('TargetGroupArn'));
  const asked = readTargets(params).map(({ id, port }) => ({ id, port: port ?? group.about.port }));
  const member = (asked.length === 0 ? group.targets() : asked).map(({ id, port }) => {
    const target = group.targets().find((t) => t.id === id && t.port === port);
    if (target) return renderTargetHealth(group, target);
    const [Reason, Description] = ['Target.NotRegistered', 'Target is not registered to the target group'];
    return { Target: { Id: id, Port: port }, TargetHealth: { State: 'unused', Reason, Description } };
  });
  return { TargetHealthDescriptions: { member } };
}

function invalid(message: string): AwsError {
  return new AwsError('ValidationError', message);
}
