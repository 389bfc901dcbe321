/** Paths of `json_ld` and `microdata` in a spelling that finds nothing: JSONPath's, or with the name of a type. */
import { PRODUCT_TYPES, SITE_TYPES } from '../../../shared/domain/schema-types.ts';

/** A name before another one that may be that of a type; schema.org's begin with a capital and a small letter. */
const TYPE_NAME = /(^|\.)([A-Z][A-Za-z]+)\.(?=[a-z@])/g;

/** The types of the values of a product. */
const VALUE_TYPES: ReadonlySet<string> = new Set(['offer', 'aggregateoffer', 'aggregaterating', 'listitem']);

/** Other names with a capital may be keys of a page that is JSON. */
const isType = (name: string): boolean =>
  [PRODUCT_TYPES, SITE_TYPES, VALUE_TYPES].some((types) => types.has(name.toLowerCase()));

/**
 * What is wrong with the path and how it is meant; null for a path that may find something. `ofPage`: not of a value.
 */
export function misspelling(path: string, ofPage: boolean): string | null {
  const isForeign = /^\$(?:\.|\[|$)|[[\]]|(?:^|\.)\*(?:\.|$)/.test(path);
  const type = ofPage
    ? [...path.matchAll(TYPE_NAME)].map(({ 2: name }) => name).findLast((name) => name !== undefined && isType(name))
    : undefined;
  if (!isForeign && type === undefined) return null;
  const plain = plainPath(path);
  const what = isForeign
    ? 'a path has names and numbers with points between them, as in offers.0.price'
    : `${type} is a type, and a path has only names of properties`;
  const node = type === undefined || /Product/.test(type) ? '' : `, with node: ${type} for that type`;
  return `${JSON.stringify(path)} finds nothing: ${what}${plain === null ? '' : `; write ${plain}${node}`}`;
}

/** The path without the marks of JSONPath and the names of types; null when something else is in it. */
export function plainPath(path: string): string | null {
  const plain = path
    .replace(/^\$/, '')
    .replaceAll(/\[\s*(?:(\d+)|(["'])(.*?)\2|\*)\s*\]/g, (_, index?: string, _quote?: string, name?: string) =>
      (index ?? name) ? `.${index ?? name}` : '',
    )
    .split('.')
    .filter((name) => name !== '' && name !== '*')
    .join('.')
    .replaceAll(TYPE_NAME, (found, before: string, name: string) => (isType(name) ? before : found));
  return plain === '' || /[[\]$?*]/.test(plain) ? null : plain;
}
