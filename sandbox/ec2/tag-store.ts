/** Tags of all EC2 resources, by resource id, within AWS's limits. */
import { AwsError } from '../aws-error.ts';

const MAX_TAGS = 50;

const TYPE_OF_PREFIX: Record<string, string> = {
  i: 'instance',
  vol: 'volume',
  eni: 'network-interface',
  subnet: 'subnet',
  vpc: 'vpc',
  sg: 'security-group',
  ami: 'image',
  snap: 'snapshot',
};

export interface TagEntry {
  resourceId: string;
  resourceType: string;
  key: string;
  value: string;
}

/** `instance` for `i-…`; undefined for an id of an unknown kind. */
export function resourceTypeOf(id: string): string | undefined {
  const prefix = id.slice(0, Math.max(0, id.indexOf('-')));
  return Object.hasOwn(TYPE_OF_PREFIX, prefix) ? TYPE_OF_PREFIX[prefix] : undefined;
}

export class TagStore {
  readonly #tags = new Map<string, Map<string, string>>();

  of(id: string): ReadonlyMap<string, string> {
    return this.#tags.get(id) ?? new Map<string, string>();
  }

  /** Adds or replaces; validates before changing anything. */
  put(id: string, tags: ReadonlyMap<string, string>): void {
    checkTags(tags);
    const merged = new Map([...this.of(id), ...tags]);
    if (merged.size > MAX_TAGS)
      throw new AwsError('TagLimitExceeded', `The maximum number of tags on '${id}' is ${MAX_TAGS}`);
    this.#tags.set(id, merged);
  }

  /** Removes a key; if a value is given, only when it matches. */
  remove(id: string, key: string, value: string | undefined): void {
    const tags = this.#tags.get(id);
    if (tags && (value === undefined || tags.get(key) === value)) tags.delete(key);
  }

  forget(id: string): void {
    this.#tags.delete(id);
  }

  entries(): TagEntry[] {
    return [...this.#tags].flatMap(([resourceId, tags]) =>
      [...tags].map(([key, value]) => ({
        resourceId,
        resourceType: resourceTypeOf(resourceId) ?? 'instance',
        key,
        value,
      })),
    );
  }
}

/** Throws AWS's error when a key or a value breaks the rules. */
export function checkTags(tags: ReadonlyMap<string, string>): void {
  const check = (isFine: boolean, message: string): void => {
    if (!isFine) throw new AwsError('InvalidParameterValue', message);
  };
  for (const [key, value] of tags) {
    check(key !== '' && key.length <= 128, `Tag keys must be 1 to 128 characters: '${key.slice(0, 140)}'`);
    check(
      !key.toLowerCase().startsWith('aws:'),
      `Tag keys starting with 'aws:' are reserved for internal use: '${key}'`,
    );
    check(value.length <= 256, `Tag values must be at most 256 characters (tag '${key}')`);
  }
  if (tags.size > MAX_TAGS) throw new AwsError('TagLimitExceeded', `At most ${MAX_TAGS} tags are allowed`);
}
