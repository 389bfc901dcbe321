/** CreateTags, DeleteTags, DescribeTags. */
import { AwsError } from '../aws-error.ts';
import type { Params } from '../query-protocol.ts';
import type { XmlNode } from '../xml.ts';
import type { Ec2Context } from './context.ts';
import type { FilterTable } from './filters.ts';
import { applyFilters } from './filters.ts';
import { findInstances } from './instance-actions.ts';
import { paginate } from './paging.ts';
import { refuseDryRun } from './run-instances.ts';
import type { TagEntry } from './tag-store.ts';
import { checkTags, resourceTypeOf } from './tag-store.ts';
import { seenTags } from './visibility.ts';

/** The resources of the call; each must exist, if the sandbox implements its kind. */
function readResources(params: Params, context: Ec2Context): string[] {
  params.need('ResourceId.1');
  const ids = params.texts('ResourceId');
  const strange = ids.find((id) => resourceTypeOf(id) === undefined);
  if (strange !== undefined) throw new AwsError('InvalidID', `The ID '${strange}' is not valid`);
  findInstances(
    ids.filter((id) => id.startsWith('i-')),
    context,
  );
  const { subnets, images, vpcId, securityGroupId } = context.catalogue;
  const known = new Set([
    ...context.fleet.all().flatMap((i) => [i.id, i.volumeId, i.interfaceId]),
    ...subnets.map((s) => s.id),
    ...images.map((i) => i.id),
    vpcId,
    securityGroupId,
  ]);
  const unknown = ids.find((id) => !known.has(id));
  if (unknown !== undefined) throw new AwsError('InvalidID', `The ID '${unknown}' is not valid`);
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
    const doomed = tags.length > 0 ? tags : [...context.tags.of(id).keys()].map((key) => ({ key, value: undefined }));
    for (const { key, value } of doomed) context.tags.remove(id, key, value);
  }
  return { return: true };
}

const FILTERS: FilterTable<TagEntry> = {
  key: (tag) => tag.key,
  value: (tag) => tag.value,
  'resource-id': (tag) => tag.resourceId,
  'resource-type': (tag) => tag.resourceType,
};

export function describeTags(params: Params, context: Ec2Context): XmlNode {
  const entries = seenTags(context).entries();
  const order = new Map(entries.map((entry, index) => [entry, index]));
  const matching = applyFilters(entries, params, FILTERS);
  const page = paginate(matching, params, (entry) => order.get(entry)!, { min: 5, max: 1_000 });
  return { tagSet: { item: page.items.map((entry) => ({ ...entry })) }, nextToken: page.nextToken };
}
