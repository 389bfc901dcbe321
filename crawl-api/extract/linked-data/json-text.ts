/**
 * Parses JSON of pages. Shops write JSON-LD by hand and by template, so a block of it is repaired where only one
 * reading is possible; one that no repair makes valid is skipped. Numbers keep all their digits: those that a
 * JavaScript number does not hold are beside it, under the object or array and the key.
 */
import { decodeHTML } from 'entities/decode';
import { KEPT_BY_CONTAINER, type PageBudget, PageLimitError } from '../page-limits.ts';
import { MAX_JSON_CHARS } from '../values.ts';
import { BareObject } from './nodes.ts';

/** The block's value; undefined when it is beyond repair. Throws PageLimitError; for `budget` see parseBounded. */
export function parseJsonBlock(text: string, budget?: Pick<PageBudget, 'spend'>): unknown {
  // A text that was cut at the limit has no end to repair.
  const repairs = text.length < MAX_JSON_CHARS ? [repaired, repairedWithoutMarks] : [];
  for (const prepare of [asItIs, ...repairs]) {
    try {
      const json = prepare(text);
      if (json !== null) return parseBounded(json, budget);
    } catch (error) {
      if (error instanceof PageLimitError) throw error;
    }
  }
  return undefined;
}

/** The text without the byte order mark, which is no white space of JSON. */
const asItIs = (text: string): string => text.trim();

// Unclosed strings and comments extend to the end, so that nothing is scanned twice.
const STRING = String.raw`"(?:\\(?:[^]|$)|[^"\\])*(?:"|$)`;
const COMMENT = String.raw`\/\/[^\n\r]*|\/\*(?:[^]*?\*\/|[^]*$)|<!--(?:[^]*?-->|[^]*$)|<!\[CDATA\[|\]\]>`;
const MARKS = new RegExp(String.raw`${STRING}|\/\/|\/\*|\*\/|<!--|-->|<!\[CDATA\[|\]\]>`, 'g');
const STRING_OR_COMMENT = new RegExp(String.raw`${STRING}|'(?:\\(?:[^]|$)|[^'\\])*(?:'|$)|${COMMENT}`, 'g');
const TOKEN = new RegExp(String.raw`${STRING}|[A-Za-z_$@][\w$]*|[{}[\],:]`, 'g');

/**
 * The text without the marks of comments and CDATA, but with what they enclose: a comment may hide the block from old
 * browsers. Null without any.
 */
function repairedWithoutMarks(text: string): string | null {
  const bare = text.replace(MARKS, (found) => (found.startsWith('"') ? found : ' '));
  return bare === text ? null : repaired(bare);
}

/**
 * Removes comments, commas before a closing bracket, an assignment before and a semicolon behind the value, closing
 * brackets too many. Puts quotes around names, null where a value is missing, closing brackets where the text ends
 * behind another one.
 */
function repaired(text: string): string {
  const whole = !text.includes('"') && text.includes('&quot;') ? decodeHTML(text) : text;
  const bare = whole
    .replace(STRING_OR_COMMENT, (found) => (found.startsWith('"') || found.startsWith("'") ? quoted(found) : ' '))
    .replace(/\p{Cc}+/gu, ' ')
    .replace(/^\s*(?:(?:var|let|const)\s+)?[\w$.]+\s*=(?=\s*[{[])/, '')
    .trim()
    .replace(/;$/, '')
    .trimEnd();
  const open: string[] = [];
  const balanced = bare.replace(TOKEN, (found, at: number) => {
    switch (found) {
      case '{':
      case '[':
        open.push(found === '{' ? '}' : ']');
        return found;
      case '}':
      case ']':
        return open.pop() === undefined ? '' : found;
      case ',':
        return isBefore(bare, at + 1, CLOSING) ? '' : found;
      case ':':
        return isBefore(bare, at + 1, NO_VALUE) ? ':null' : found;
      case 'NaN':
      case 'undefined':
        return 'null';
      default:
        return !found.startsWith('"') && isBefore(bare, at + found.length, COLON) ? `"${found}"` : found;
    }
  });
  return /[}\]]$/.test(bare) ? balanced + open.reverse().join('') : balanced;
}

const CLOSING = /\s*[}\]]/y;
const NO_VALUE = /\s*[,}\]]/y;
const COLON = /\s*:/y;

function isBefore(text: string, at: number, pattern: RegExp): boolean {
  pattern.lastIndex = at;
  return pattern.test(text);
}

/** A string in JSON's quotes, without backslashes that JSON does not know. */
function quoted(found: string): string {
  const inner = found.slice(1, found.length > 1 && found.endsWith(found.charAt(0)) ? -1 : undefined);
  const text = inner.replace(/\\([^])|"/g, (escape, after: string | undefined) => {
    if (after === undefined) return String.raw`\"`;
    return '"\\/bfnrtu'.includes(after) ? escape : after;
  });
  return `"${text}"`;
}

/** Maximum nesting levels; shops have ten or twenty. */
const MAX_JSON_DEPTH = 1_000;
/** Maximum properties of one object: JSON.parse takes 350 bytes for each. */
const MAX_JSON_PROPERTIES = 100_000;
/** Maximum arrays and objects of one text. 5 MB of shop products have a quarter of that. */
const MAX_JSON_CONTAINERS = 200_000;

/**
 * Parses as JSON.parse does, after counting the brackets. Throws PageLimitError, and SyntaxError as JSON.parse does.
 * @param budget passed when the value stays in memory along with others of the page
 */
export function parseBounded(text: string, budget?: Pick<PageBudget, 'spend'>): unknown {
  const containers = countContainers(text);
  const value: unknown = LONG_NUMBER.test(text) ? parseExactly(text) : JSON.parse(text);
  budget?.spend('kept', containers * KEPT_BY_CONTAINER);
  return value;
}

/** Numbers with more digits may not fit into a JavaScript number. */
const SAFE_DIGITS = 15;
const LONG_NUMBER = /[\s:,[-]\d[\d.]{15}/;

/**
 * The digits of numbers that a JavaScript number does not hold: by object or array, then by key, each behind the mark.
 */
const exactDigits = new WeakMap<object, Record<string, string>>();

// TypeScript does not know JSON.rawJSON yet (ECMAScript 2026).
const { rawJSON } = JSON as unknown as { rawJSON: (this: void, text: string) => unknown };

/** Stands before a long number while it is a string. Random, so that no page can contain it. */
const MARK = crypto.randomUUID();
const NUMBER = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?(?![\w.+-])/y;

/**
 * Parses with the digits of long numbers, as strings meanwhile. A reviver of JSON.parse would know them too, but V8
 * then keeps the source of every value, 50 MB for a page of 5 MB.
 */
function parseExactly(text: string): unknown {
  const value: unknown = JSON.parse(withNumbersMarked(text));
  const holder = { value };
  restoreNumbers(holder);
  return holder.value;
}

/** The JSON with quotes around the numbers that a JavaScript number does not hold. Invalid JSON stays invalid. */
function withNumbersMarked(text: string): string {
  const pieces: string[] = [];
  let from = 0;
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === QUOTE) at = endOfString(text, at);
    if (code !== MINUS && (code < ZERO || code > NINE)) continue;
    NUMBER.lastIndex = at;
    if (!NUMBER.test(text)) return text;
    const end = NUMBER.lastIndex;
    const source = text.slice(at, end);
    if (source.length > SAFE_DIGITS && String(Number(source)) !== withoutZeros(source)) {
      pieces.push(text.slice(from, at), `"${MARK}${source}"`);
      from = end;
    }
    at = end - 1;
  }
  return pieces.join('') + text.slice(from);
}

const [QUOTE, MINUS, ZERO, NINE] = [0x22, 0x2d, 0x30, 0x39];

/** Makes numbers of the marked strings inside, and keeps their digits. */
function restoreNumbers(holder: object): void {
  const values = holder as Record<string | number, unknown>;
  const restore = (key: string | number): void => {
    const value = values[key];
    if (typeof value === 'object' && value !== null) restoreNumbers(value);
    if (typeof value !== 'string' || !value.startsWith(MARK)) return;
    values[key] = Number(value.slice(MARK.length));
    let digits = exactDigits.get(holder);
    if (digits === undefined) exactDigits.set(holder, (digits = new BareObject<string>()));
    digits[key] = value;
  };
  // No list of the keys of a long array.
  if (Array.isArray(holder)) for (let i = 0; i < holder.length; i++) restore(i);
  else for (const key of Object.keys(holder)) restore(key);
}

/** The number as String() writes it, if it holds all of its digits. Short numbers are held in any spelling. */
function withoutZeros(source: string): string {
  if (source.length <= SAFE_DIGITS) return String(Number(source));
  let end = source.length;
  if (source.includes('.')) while (source[end - 1] === '0') end--;
  return source.slice(0, source[end - 1] === '.' ? end - 1 : end);
}

/** The number at this key as it is written, where a JavaScript number does not hold it; else null. */
export function digitsAt(holder: unknown, key: string | number): string | null {
  if (typeof holder !== 'object' || holder === null) return null;
  const digits = exactDigits.get(holder);
  return digits !== undefined && Object.hasOwn(digits, key) ? (digits[key]?.slice(MARK.length) ?? null) : null;
}

/** JSON.stringify with all digits. */
export function stringifyExactly(value: object): string {
  return JSON.stringify(value, function (this: unknown, key: string, inner: unknown) {
    const digits = typeof inner === 'number' ? digitsAt(this, key) : null;
    return digits === null ? inner : rawJSON(digits);
  });
}

/** Up to the first syntax error these are the brackets that JSON.parse sees. */
function countContainers(text: string): number {
  let containers = 0;
  let depth = 0;
  /** How many properties each open array or object has so far. */
  const properties: number[] = [];
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
        properties[depth] = 0;
        break;
      case ':':
        if (++properties[depth]! > MAX_JSON_PROPERTIES)
          throw new PageLimitError(`the JSON has an object with more than ${MAX_JSON_PROPERTIES} properties`);
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
