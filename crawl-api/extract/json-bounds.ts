/**
 * Parses JSON of a page within limits: deeply nested or finely divided JSON takes a hundred times its own size, in a
 * single blocking call.
 */
import type { PageBudget } from './page-limits.ts';
import { PageLimitError } from './page-limits.ts';

/** Maximum nesting levels; shops have ten or twenty. */
const MAX_JSON_DEPTH = 1_000;
/** Maximum arrays and objects of one text. 5 MB of shop products have a quarter of that. */
const MAX_JSON_CONTAINERS = 200_000;

/**
 * Like JSON.parse, after counting the brackets. Throws PageLimitError, and SyntaxError as JSON.parse does.
 * @param keeper passed when the value stays in memory along with others of the page
 */
export function parseBounded(text: string, keeper?: Pick<PageBudget, 'keepJson'>): unknown {
  const containers = countContainers(text);
  const value = JSON.parse(text) as unknown;
  keeper?.keepJson(containers);
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

/** End of the string that begins here, or of the text. */
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
