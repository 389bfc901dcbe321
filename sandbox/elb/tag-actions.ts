/** Tags of load balancers, target groups and listeners. */
import { AwsError } from '../aws-error.ts';
import type { Params } from '../query-protocol.ts';
import type { XmlNode } from '../xml.ts';
import type { ElbContext, ElbRegistry } from './registry.ts';

const MAX_TAGS = 50;

/** The tags of a call; throws for a duplicate key. */
export function readTags(params: Params): Map<string, string> {
  const tags = new Map<string, string>();
  for (const tag of params.groups('Tags')) {
    const key = tag.need('Key');
    if (tags.has(key)) throw new AwsError('DuplicateTagKeys', `A tag key was specified more than once: '${key}'`);
    tags.set(key, tag.text('Value') ?? '');
  }
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
