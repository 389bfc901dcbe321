/** EC2's filters: all filters must match, by any of their values; `*` and `?` match any text and any character. */
import { AwsError } from '../aws-error.ts';
import type { Params } from '../query-protocol.ts';

/** The values of an item that a filter is compared with. */
type ValuesOf<T> = (item: T) => string | readonly string[] | undefined;
export type FilterTable<T> = Record<string, ValuesOf<T>>;

function wildcard(pattern: string): RegExp {
  const source = pattern.replace(/\\([*?\\])|[.*+?^${}()|[\]\\]/g, (found, escaped: string | undefined) => {
    if (escaped !== undefined) return `\\${escaped}`;
    return found === '*' ? '.*' : found === '?' ? '.' : `\\${found}`;
  });
  return new RegExp(`^${source}$`, 's');
}

/**
 * The items that pass every `Filter.N` of the call.
 * @param table filter name to the compared values; an unknown name is refused, as on AWS
 * @param tagsOf makes `tag:KEY`, `tag-key` and `tag-value` available; left out for items without tags
 */
export function applyFilters<T>(
  items: readonly T[],
  params: Params,
  table: FilterTable<T>,
  tagsOf?: (item: T) => ReadonlyMap<string, string>,
): T[] {
  let kept = [...items];
  for (const filter of params.groups('Filter')) {
    const name = filter.need('Name');
    const patterns = filter.texts('Value').map(wildcard);
    const valuesOf = findFilter(name, table, tagsOf);
    kept = kept.filter((item) => {
      const values = valuesOf(item) ?? [];
      return (typeof values === 'string' ? [values] : values).some((value) => patterns.some((p) => p.test(value)));
    });
  }
  return kept;
}

function findFilter<T>(
  name: string,
  table: FilterTable<T>,
  tagsOf: ((item: T) => ReadonlyMap<string, string>) | undefined,
): ValuesOf<T> {
  if (tagsOf) {
    if (name.startsWith('tag:')) return (item) => tagsOf(item).get(name.slice('tag:'.length));
    if (name === 'tag-key') return (item) => [...tagsOf(item).keys()];
    if (name === 'tag-value') return (item) => [...tagsOf(item).values()];
  }
  if (Object.hasOwn(table, name)) return table[name]!;
  throw new AwsError('InvalidParameterValue', `The filter '${name}' is invalid`);
}
