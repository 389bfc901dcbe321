/**
 * Values at a dotted path in JSON blocks. Shops write JSON-LD by hand and by template, so reading is lenient: a block
 * that no repair makes valid is skipped, the others still count.
 *
 * Every block is searched, in page order: first the block itself, then each member of its `@graph`. If that yields
 * nothing, the entities they are about (`mainEntity`) are searched, and last the variants of a product group
 * (`hasVariant`). `price` and `priceCurrency` of an offer that keeps them there are read from its `priceSpecification`.
 * Arrays along the path are walked in order; a number in the path selects one element. Values at the end of the path: a
 * string, a number, true or false as text, each element of an array; of an object its `@value`. null and other objects
 * yield nothing.
 */
import { type PageBudget, PageLimitError } from './page-limits.ts';

/** The block's value; undefined when it is beyond repair. Throws PageLimitError; for `budget` see parseBounded. */
export function parseJsonBlock(text: string, budget?: Pick<PageBudget, 'spend'>): unknown {
  const bare = unwrap(text.trim());
  for (const repair of [asItIs, repaired]) {
    try {
      return parseBounded(repair(bare), budget);
    } catch (error) {
      if (error instanceof PageLimitError) throw error;
    }
  }
  return undefined;
}

const asItIs = (text: string): string => text;

/** A string, or a comment in one of three forms. Unclosed ones extend to the end, so that nothing is scanned twice. */
const STRING_OR_COMMENT = /"(?:\\[^]|[^"\\])*(?:"|$)|\/\/[^\n\r]*|\/\*(?:[^]*?\*\/|[^]*$)|<!--(?:[^]*?-->|[^]*$)/g;
const STRING_OR_LAST_COMMA = /"(?:\\[^]|[^"\\])*(?:"|$)|,(?=\s*[}\]])/g;

/** Removes comments, commas before a closing bracket, raw line ends in strings, a semicolon at the end. */
const repaired = (text: string): string =>
  text
    .replace(STRING_OR_COMMENT, (found) => (found.startsWith('"') ? found : ' '))
    .replace(STRING_OR_LAST_COMMA, (found) => (found === ',' ? '' : found))
    .replace(/\p{Cc}+/gu, ' ')
    .replace(/;\s*$/, '');

const OPENING = ['//', '/*', '<!--', '<![CDATA['];
const CLOSING = ['*/', '-->', ']]>', '//', '/*'];

/** Removes the comment or CDATA marks around scripts; JSON itself neither begins nor ends with one. */
function unwrap(text: string): string {
  let bare = text;
  for (let mark; (mark = OPENING.find((m) => bare.startsWith(m))) !== undefined;)
    bare = bare.slice(mark.length).trimStart();
  for (let mark; (mark = CLOSING.find((m) => bare.endsWith(m))) !== undefined;)
    bare = bare.slice(0, -mark.length).trimEnd();
  return bare;
}

/** Splits `offers.0.price` once, when the mapping is compiled. */
export function parsePath(path: string): string[] {
  return path.split('.');
}

/** Maximum depth of nested arrays, to prevent a stack overflow. */
const MAX_WALK = 100;

/** All values at the path, in order, at most `limit`. */
export function findJsonValues(
  blocks: readonly unknown[],
  path: readonly string[],
  limit: number,
): (string | number)[] {
  const found: (string | number)[] = [];
  const search = { path, found, limit };
  let things = blocks.flatMap(listOf).flatMap((top) => [top, ...listOf(own(top, '@graph'))]);
  for (const further of [null, 'mainEntity', 'hasVariant']) {
    // If the block has the value itself, the related entities and variants would only add other products' values.
    if (found.length > 0) break;
    const next = further === null ? things : things.flatMap((thing) => listOf(own(thing, further)));
    for (const thing of next) walk(thing, 0, 0, search);
    if (further !== null) things = [...things, ...next];
  }
  return found;
}

const listOf = (value: unknown): unknown[] =>
  value === undefined ? [] : Array.isArray(value) ? (value as unknown[]) : [value];

interface Search {
  path: readonly string[];
  found: (string | number)[];
  limit: number;
}

function walk(value: unknown, at: number, depth: number, search: Search): void {
  const { path, found, limit } = search;
  if (found.length >= limit || depth > MAX_WALK) return;
  if (at === path.length) return collect(value, depth, search);
  const key = path[at]!;
  if (Array.isArray(value)) {
    if (/^\d+$/.test(key)) walk(value[Number(key)], at + 1, depth + 1, search);
    else for (const element of value as unknown[]) walk(element, at, depth + 1, search);
    return;
  }
  const next = own(value, key) ?? (IN_SPECIFICATION.has(key) ? priceSpecification(value, key) : undefined);
  if (next !== undefined) walk(next, at + 1, depth + 1, search);
}

const IN_SPECIFICATION = new Set(['price', 'priceCurrency']);

/** The value of the first specification that has one: further ones are list prices and unit prices. */
function priceSpecification(offer: unknown, key: string): unknown {
  return listOf(own(offer, 'priceSpecification'))
    .map((specification) => own(specification, key))
    .find((value) => value !== undefined && value !== null);
}

function collect(value: unknown, depth: number, search: Search): void {
  const { found, limit } = search;
  if (found.length >= limit || depth > MAX_WALK) return;
  if (typeof value === 'string' || (typeof value === 'number' && Number.isFinite(value))) found.push(value);
  else if (typeof value === 'boolean') found.push(String(value));
  else if (Array.isArray(value)) for (const element of value as unknown[]) collect(element, depth + 1, search);
  else {
    const literal = own(value, '@value');
    if (literal !== undefined) collect(literal, depth + 1, search);
  }
}

/** Own properties only: a path such as `constructor.name` finds nothing. */
function own(value: unknown, key: string): unknown {
  if (typeof value !== 'object' || value === null || !Object.hasOwn(value, key)) return undefined;
  return (value as Record<string, unknown>)[key];
}

/** Maximum nesting levels; shops have ten or twenty. */
const MAX_JSON_DEPTH = 1_000;
/** Maximum arrays and objects of one text. 5 MB of shop products have a quarter of that. */
const MAX_JSON_CONTAINERS = 200_000;

/**
 * Like JSON.parse, after counting the brackets. Throws PageLimitError, and SyntaxError as JSON.parse does.
 * @param budget passed when the value stays in memory along with others of the page
 */
export function parseBounded(text: string, budget?: Pick<PageBudget, 'spend'>): unknown {
  const containers = countContainers(text);
  const value = JSON.parse(text) as unknown;
  budget?.spend('containers', containers);
  return value;
}

/** Up to the first syntax error these are the brackets that JSON.parse sees. */
function countContainers(text: string): number {
  let containers = 0;
  let depth = 0;
  for (let at = 0; at < text.length; at++) {
    switch (text[at]) {
      case '"':
        at = endOfString(text, at);
        break;
      case '[':
      case '{':
        if (++depth > MAX_JSON_DEPTH) throw new PageLimitError(`the JSON nests deeper than ${MAX_JSON_DEPTH} levels`);
        if (++containers > MAX_JSON_CONTAINERS)
          throw new PageLimitError(`the JSON has more than ${MAX_JSON_CONTAINERS} arrays and objects`);
        break;
      case ']':
      case '}':
        depth--;
        break;
      default:
        break;
    }
  }
  return containers;
}

function endOfString(text: string, start: number): number {
  let at = start;
  do {
    at = text.indexOf('"', at + 1);
    if (at < 0) return text.length;
  } while (isEscaped(text, at));
  return at;
}

function isEscaped(text: string, at: number): boolean {
  let slashes = 0;
  while (text[at - 1 - slashes] === '\\') slashes++;
  return slashes % 2 === 1;
}
