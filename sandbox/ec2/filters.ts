/**
 * EC2's filters and pages. All filters must match, by any of their values; `*` and `?` match any text and any
 * character.
 */
import { AwsError } from '../aws-error.ts';
import type { Params } from '../query-protocol.ts';
import type { XmlNode } from '../xml.ts';

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
  const own = Object.hasOwn(table, name) ? table[name] : undefined;
  if (own !== undefined) return own;
  throw new AwsError('InvalidParameterValue', `The filter '${name}' is invalid`);
}

/** Compares a field of a rendered resource. */
export const field = (name: string) => (node: XmlNode) => {
  const value = node[name];
  return value === undefined || typeof value === 'object' ? undefined : String(value);
};

/** Filters of rendered resources that compare the field of their name: `vpc-id` the field vpcId. */
export function fieldFilters(...names: string[]): FilterTable<XmlNode> {
  const fieldOf = (name: string): string => name.replaceAll(/-./g, (found) => found.slice(1).toUpperCase());
  return Object.fromEntries(names.map((name) => [name, field(fieldOf(name))]));
}

/**
 * One page of the items, by MaxResults and NextToken. A token names the last item shown, so pages stay correct while
 * items are added and removed.
 * @param orderOf a number that increases along `items`; @param limits AWS's limits for MaxResults
 */
export function paginate<T>(
  items: readonly T[],
  params: Params,
  orderOf: (item: T) => number,
  limits: { min: number; max: number },
): { items: T[]; nextToken: string | undefined } {
  const maxResults = params.int('MaxResults');
  if (maxResults !== undefined && (maxResults < limits.min || maxResults > limits.max))
    throw new AwsError(
      'InvalidParameterValue',
      `Value ( ${maxResults} ) for parameter maxResults is invalid. Expecting a value between ${limits.min} and ${limits.max}.`,
    );
  const after = readToken(params.text('NextToken'));
  const rest = items.filter((item) => orderOf(item) > after);
  const shown = rest.slice(0, maxResults ?? limits.max);
  const last = rest.length > shown.length ? shown.at(-1) : undefined;
  return { items: shown, nextToken: last && Buffer.from(`after:${orderOf(last)}`).toString('base64url') };
}

function readToken(token = ''): number {
  if (token === '') return -1;
  const match = /^after:(\d{1,15})$/.exec(Buffer.from(token, 'base64url').toString('utf8'));
  if (!match) throw new AwsError('InvalidNextToken', `The token '${token}' is invalid`);
  return Number(match[1]);
}
