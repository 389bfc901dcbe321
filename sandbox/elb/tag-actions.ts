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

/** Throws the NotFound error for the kind of ARN. */
function checkExists(registry: ElbRegistry, arn: string): void {
  if (arn.includes(':targetgroup/')) registry.targetGroup(arn);
  else if (arn.includes(':listener/')) registry.listener(arn);
  else registry.loadBalancer(arn);
}

export function addTags(params: Params, { registry }: ElbContext): XmlNode {
  const arns = params.texts('ResourceArns');
  for (const arn of arns) checkExists(registry, arn);
  const tags = readTags(params);
  for (const arn of arns) putTags(registry, arn, tags);
  return {};
}

export function removeTags(params: Params, { registry }: ElbContext): XmlNode {
  const arns = params.texts('ResourceArns');
  for (const arn of arns) checkExists(registry, arn);
  for (const arn of arns) {
    for (const key of params.texts('TagKeys')) registry.tags.get(arn)?.delete(key);
  }
  return {};
}

export function describeTags(params: Params, { registry }: ElbContext): XmlNode {
  const arns = params.texts('ResourceArns');
  for (const arn of arns) checkExists(registry, arn);
  return {
    TagDescriptions: {
      member: arns.map((arn) => ({
        ResourceArn: arn,
        Tags: { member: [...(registry.tags.get(arn) ?? [])].map(([Key, Value]) => ({ Key, Value })) },
      })),
    },
  };
}
