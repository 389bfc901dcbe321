/** CreateTags, DeleteTags, DescribeTags, and the tags that other calls set on the resources they create. */
import { AwsError } from '../aws-error.ts';
import type { Params } from '../query-protocol.ts';
import type { XmlNode } from '../xml.ts';
import { type Ec2Context, findInstances, refuseDryRun, seenTags } from './context.ts';
import { applyFilters, fieldFilters, paginate } from './filters.ts';
import { checkTags, resourceTypeOf } from './tag-store.ts';

/** Tags by resource type. @param taggable resource types that the call can create */
export function readTagSpecifications(params: Params, taggable: readonly string[]): Map<string, Map<string, string>> {
  const byType = new Map<string, Map<string, string>>();
  for (const specification of params.groups('TagSpecification')) {
    const type = specification.need('ResourceType');
    if (!taggable.includes(type))
      throw new AwsError(
        'InvalidParameterValue',
        `'${type}' is not a valid taggable resource type for this operation.`,
      );
    const tags = byType.get(type) ?? new Map<string, string>();
    for (const tag of specification.groups('Tag')) {
      const key = tag.text('Key') ?? '';
      if (tags.has(key)) throw new AwsError('InvalidParameterValue', `Duplicate tag key '${key}' specified.`);
      tags.set(key, tag.text('Value') ?? '');
    }
    checkTags(tags);
    byType.set(type, tags);
  }
  return byType;
}

/** The resources of the call; each must exist, if the sandbox implements its kind. */
function readResources(params: Params, context: Ec2Context): string[] {
  params.need('ResourceId.1');
  const ids = params.texts('ResourceId');
  const refuse = (id: string | undefined): void => {
    if (id !== undefined) throw new AwsError('InvalidID', `The ID '${id}' is not valid`);
  };
  refuse(ids.find((id) => resourceTypeOf(id) === undefined));
  const instanceIds = ids.filter((id) => id.startsWith('i-'));
  findInstances(instanceIds, context);
  const { subnets, images, vpcId, securityGroupId } = context.catalogue;
  const instances = context.fleet.all().flatMap((i) => [i.id, i.volumeId, i.interfaceId]);
  const others = [...subnets, ...images].map(({ id }) => id);
  const known = new Set([...instances, ...others, vpcId, securityGroupId]);
  refuse(ids.find((id) => !known.has(id)));
  return ids;
}

export function createTags(params: Params, context: Ec2Context): XmlNode {
  const ids = readResources(params, context);
  const tags = new Map(params.groups('Tag').map((tag) => [tag.text('Key') ?? '', tag.text('Value') ?? '']));
  if (tags.size === 0) params.need('Tag.1.Key');
  checkTags(tags);
  refuseDryRun(params);
  for (const id of ids) context.tags.put(id, tags);
  return { return: true };
}

export function deleteTags(params: Params, context: Ec2Context): XmlNode {
  const ids = readResources(params, context);
  const tags = params.groups('Tag').map((tag) => ({ key: tag.text('Key') ?? '', value: tag.text('Value') }));
  refuseDryRun(params);
  for (const id of ids) {
    // Without a list, every tag of the resource is deleted.
    if (tags.length === 0) context.tags.forget(id);
    for (const { key, value } of tags) context.tags.remove(id, key, value);
  }
  return { return: true };
}

const FILTERS = fieldFilters('key', 'value', 'resource-id', 'resource-type');

export function describeTags(params: Params, context: Ec2Context): XmlNode {
  const entries = seenTags(context)
    .entries()
    .map((entry, order) => ({ ...entry, order }));
  const page = paginate(applyFilters(entries, params, FILTERS), params, (e) => e.order, { min: 5, max: 1_000 });
  const item = page.items.map(({ order: _order, ...entry }) => entry);
  return { tagSet: { item }, nextToken: page.nextToken };
}
