/** Paths of `json_ld` and `microdata` in a spelling that finds nothing on any page: JSONPath's, or with the name of a type. */

/** A name of a type before the name of one of its properties; schema.org's begin with a capital and a small letter. */
const TYPE_NAME = /(^|\.)([A-Z][A-Za-z]+)\.(?=[a-z@])/g;

/** What is wrong with the path and how it is meant; null for a path that may find something. `ofPage`: not of a value. */
export function misspelling(path: string, ofPage: boolean): string | null {
  const isForeign = /^\$(?:\.|\[|$)|[[\]]|(?:^|\.)\*(?:\.|$)/.test(path);
  const type = ofPage ? [...path.matchAll(TYPE_NAME)].at(-1)?.[2] : undefined;
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
    .replaceAll(TYPE_NAME, '$1');
  return plain === '' || /[[\]$?*]/.test(plain) ? null : plain;
}
