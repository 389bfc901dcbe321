/**
 * Values at a dotted path in JSON blocks. Shops write JSON-LD by hand and by template, so reading is lenient: a block
 * that no repair makes valid is skipped, the others still count.
 *
 * A path is looked for in every block, in the order of the page: in the block itself, then in each member of its
 * `@graph`. Arrays on the way are walked through in order; a number in the path takes one element. What stands at the
 * end of the path gives values: a string, a number, true or false as text, each element of an array; of an object
 * its `@value`. null and other objects give nothing.
 */

/** The block's value; undefined when it is broken beyond repair. */
export function parseJsonBlock(text: string): unknown {
  const bare = unwrap(text.trim());
  // The second try repairs what is seen most: raw line ends inside strings, and a semicolon after the block.
  for (const candidate of [bare, bare.replace(/\p{Cc}+/gu, ' ').replace(/;\s*$/, '')]) {
    try {
      return JSON.parse(candidate) as unknown;
    } catch {
      continue;
    }
  }
  return undefined;
}

const OPENING = ['//', '/*', '<!--', '<![CDATA['];
const CLOSING = ['*/', '-->', ']]>', '//', '/*'];

/** Without the comment or CDATA marks that scripts are put in; JSON itself neither begins nor ends with one. */
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

/** A page that nests arrays deeper than this is not worth a stack overflow. */
const MAX_WALK = 100;

/** All values at the path, in order, at most `limit`. */
export function findJsonValues(
  blocks: readonly unknown[],
  path: readonly string[],
  limit: number,
): (string | number)[] {
  const found: (string | number)[] = [];
  for (const block of blocks) {
    for (const top of Array.isArray(block) ? (block as unknown[]) : [block]) {
      walk(top, path, 0, 0, found, limit);
      const graph = own(top, '@graph');
      for (const member of Array.isArray(graph) ? (graph as unknown[]) : []) walk(member, path, 0, 0, found, limit);
    }
  }
  return found;
}

function walk(
  value: unknown,
  path: readonly string[],
  at: number,
  depth: number,
  found: (string | number)[],
  limit: number,
): void {
  if (found.length >= limit || depth > MAX_WALK) return;
  if (at === path.length) {
    collect(value, depth, found, limit);
    return;
  }
  const key = path[at]!;
  if (Array.isArray(value)) {
    if (/^\d+$/.test(key)) walk(value[Number(key)], path, at + 1, depth + 1, found, limit);
    else for (const element of value as unknown[]) walk(element, path, at, depth + 1, found, limit);
    return;
  }
  const next = own(value, key);
  if (next !== undefined) walk(next, path, at + 1, depth + 1, found, limit);
}

function collect(value: unknown, depth: number, found: (string | number)[], limit: number): void {
  if (found.length >= limit || depth > MAX_WALK) return;
  if (typeof value === 'string' || (typeof value === 'number' && Number.isFinite(value))) found.push(value);
  else if (typeof value === 'boolean') found.push(String(value));
  else if (Array.isArray(value)) for (const element of value as unknown[]) collect(element, depth + 1, found, limit);
  else {
    const literal = own(value, '@value');
    if (literal !== undefined) collect(literal, depth + 1, found, limit);
  }
}

/** Own properties only: a path such as `constructor.name` finds nothing. */
function own(value: unknown, key: string): unknown {
  if (typeof value !== 'object' || value === null || !Object.hasOwn(value, key)) return undefined;
  return (value as Record<string, unknown>)[key];
}
