/** Tags of load balancers, target groups and listeners. */
import { AwsError } from '../aws-error.ts';
import type { Params } from '../query-protocol.ts';
import type { XmlNode } from '../xml.ts';
import { demandTags } from '../tag-policy.ts';
import type { ElbContext, ElbRegistry } from './registry.ts';

const MAX_TAGS = 50;

/** The tags of a call; throws for a duplicate key. */
function readTags(params: Params): Map<string, string> {
  const tags = new Map<string, string>();
  for (const tag of params.groups('Tags')) {
    const key = tag.need('Key');
    if (tags.has(key)) throw new AwsError('DuplicateTagKeys', `A tag key was specified more than once: '${key}'`);
    tags.set(key, tag.text('Value') ?? '');
  }
  return tags;
}

const CREATED_BY = {
  CreateLoadBalancer: 'loadbalancer/app',
  CreateTargetGroup: 'targetgroup',
  CreateListener: 'listener/app',
} as const;

/** The tags of a call that creates something; throws also where a policy demands others. */
export function readCreationTags(
  params: Params,
  { conditions, catalogue }: ElbContext,
  action: keyof typeof CREATED_BY,
): Map<string, string> {
  const tags = readTags(params);
  const created = [[CREATED_BY[action], tags] as const];
  demandTags(conditions.now.tagPolicy, {
    service: 'elasticloadbalancing',
    action,
    region: catalogue.region,
    created,
  });
  return tags;
}

export function putTags(registry: ElbRegistry, arn: string, tags: ReadonlyMap<string, string>): void {
  const merged = new Map([...(registry.tags.get(arn) ?? []), ...tags]);
  if (merged.size > MAX_TAGS) throw new AwsError('TooManyTags', `At most ${MAX_TAGS} tags are allowed on '${arn}'`);
  registry.tags.set(arn, merged);
}

/** The resources of the call; throws the NotFound error of its kind for the first that does not exist. */
function readArns(params: Params, registry: ElbRegistry): string[] {
  const arns = params.texts('ResourceArns');
  for (const arn of arns) {
    if (arn.includes(':targetgroup/')) registry.targetGroup(arn);
    else if (arn.includes(':listener/')) registry.listener(arn);
    else registry.loadBalancer(arn);
  }
  return arns;
}

export function addTags(params: Params, { registry }: ElbContext): XmlNode {
  const arns = readArns(params, registry);
  const tags = readTags(params);
  for (const arn of arns) putTags(registry, arn, tags);
  return {};
}

export function removeTags(params: Params, { registry }: ElbContext): XmlNode {
  for (const arn of readArns(params, registry)) {
    for (const key of params.texts('TagKeys')) registry.tags.get(arn)?.delete(key);
  }
  return {};
}

export function describeTags(params: Params, { registry }: ElbContext): XmlNode {
  const member = readArns(params, registry).map((arn) => ({
    ResourceArn: arn,
    Tags: { member: [...(registry.tags.get(arn) ?? [])].map(([Key, Value]) => ({ Key, Value })) },
  }));
  return { TagDescriptions: { member } };
}
