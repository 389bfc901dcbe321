/** The tags that a call sets on the resources it creates, by resource type. */
import { AwsError } from '../aws-error.ts';
import type { Params } from '../query-protocol.ts';
import { checkTags } from './tag-store.ts';

/** @param taggable resource types that the call can create */
export function readTagSpecifications(params: Params, taggable: readonly string[]): Map<string, Map<string, string>> {
  const byType = new Map<string, Map<string, string>>();
  for (const specification of params.groups('TagSpecification')) {
    const type = specification.need('ResourceType');
    if (!taggable.includes(type)) invalid(`'${type}' is not a valid taggable resource type for this operation.`);
    const tags = byType.get(type) ?? new Map<string, string>();
    for (const tag of specification.groups('Tag')) {
      const key = tag.text('Key') ?? '';
      if (tags.has(key)) invalid(`Duplicate tag key '${key}' specified.`);
      tags.set(key, tag.text('Value') ?? '');
    }
    checkTags(tags);
    byType.set(type, tags);
  }
  return byType;
}

function invalid(message: string): never {
  throw new AwsError('InvalidParameterValue', message);
}
