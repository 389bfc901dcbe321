/**
 * JSONPath (RFC 9535) by json-p3. Its match() and search() build JavaScript regular expressions, possibly from the
 * page's text, which can take exponential time; here RE2 runs both.
 */
import {
  FunctionExpressionType,
  JSONPathEnvironment,
  type JSONPathNode,
  type JSONPathQuery,
  type JSONValue,
} from 'json-p3';
import { firstLineOf } from '../../domain/errors.ts';
import { compilePattern, type Pattern } from './regex.ts';

export class JsonTooLargeError extends Error {}

/** A value, and the object or array that has it under this key; null for the whole JSON. */
export interface FoundJson {
  value: unknown;
  holder: unknown;
  key: string | number;
}

export interface JsonPath {
  /**
   * The first `limit` values. Throws JsonTooLargeError for JSON that takes too long or is too deeply
   * nested.
   */
  find(json: unknown, limit: number): FoundJson[];
}

/** Maximum nesting that `..` follows. */
const MAX_JSON_DEPTH = 200;
/** Maximum objects and arrays that one query visits. */
const MAX_VISITS = 2_000_000;
const MAX_PATTERNS = 20;

/**
 * match() and search(); a pattern that RE2 rejects, or a value that is not text, matches nothing, as the RFC requires.
 */
class PatternFunction {
  readonly argTypes = [FunctionExpressionType.ValueType, FunctionExpressionType.ValueType];
  readonly returnType = FunctionExpressionType.LogicalType;
  readonly #test: (pattern: Pattern, text: string) => boolean;
  readonly #patterns = new Map<string, Pattern | null>();

  constructor(test: (pattern: Pattern, text: string) => boolean) {
    this.#test = test;
  }

  call(text: unknown, pattern: unknown): boolean {
    if (typeof text !== 'string' || typeof pattern !== 'string') return false;
    const compiled = this.#compiled(pattern);
    return compiled !== null && this.#test(compiled, text);
  }

  #compiled(text: string): Pattern | null {
    const known = this.#patterns.get(text);
    if (known !== undefined) return known;
    let compiled: Pattern | null = null;
    try {
      compiled = compilePattern(withoutLineEnds(text));
    } catch {
      // Stays null: the pattern may come from the page.
    }
    if (this.#patterns.size >= MAX_PATTERNS) this.#patterns.clear();
    this.#patterns.set(text, compiled);
    return compiled;
  }
}

/** `.` of an I-Regexp (RFC 9485) excludes both line ends; RE2's excludes only \n. */
const withoutLineEnds = (pattern: string): string =>
  pattern.replace(/\\[^]|\[(?:\\[^]|[^\]\\])*\]|\./g, (found) => (found === '.' ? '[^\\n\\r]' : found));

class BoundedEnvironment extends JSONPathEnvironment {
  visits = 0;

  constructor() {
    super({ strict: true, maxRecursionDepth: MAX_JSON_DEPTH });
    this.functionRegister.set('match', new PatternFunction((pattern, text) => pattern.fits(text)));
    this.functionRegister.set('search', new PatternFunction((pattern, text) => pattern.isIn(text)));
  }

  override entries(object: Record<string, JSONValue>): [string, JSONValue][] {
    if (++this.visits > MAX_VISITS) throw new JsonTooLargeError('a JSONPath visits too many objects');
    return Object.entries(object);
  }
}

const environment = new BoundedEnvironment();

/** Throws an Error with a one-line message about the fault in the expression. */
export function compileJsonPath(expression: string): JsonPath {
  const query = environment.compile(expression);
  return { find: (json, limit) => find(query, json, limit) };
}

function find(query: JSONPathQuery, json: unknown, limit: number): FoundJson[] {
  environment.visits = 0;
  const found: FoundJson[] = [];
  let nodes = 0;
  try {
    // Lazily: the eager query spreads whole arrays into a call and fails on long ones.
    for (const node of query.lazyQuery(json as JSONValue)) {
      if (++nodes > MAX_VISITS) break;
      const key = node.location.at(-1) ?? '';
      found.push({ value: node.value, holder: holderOf(node, json), key });
      if (found.length >= limit) break;
    }
  } catch (error) {
    throw new JsonTooLargeError(`a JSONPath cannot be evaluated on this JSON: ${firstLineOf(error)}`, { cause: error });
  }
  return found;
}

/** The object or array with a number; only numbers need it. */
function holderOf({ value, location }: JSONPathNode, json: unknown): unknown {
  if (typeof value !== 'number') return null;
  let holder = json;
  for (const key of location.slice(0, -1)) holder = (holder as Record<string | number, unknown>)[key];
  return location.length > 0 ? holder : null;
}

/** The fault of a JSONPath, on one line; null when it is usable. */
export function findJsonPathFault(expression: string): string | null {
  try {
    compileJsonPath(expression);
    return null;
  } catch (error) {
    return `the JSONPath ${JSON.stringify(expression)} cannot be used: ${firstLineOf(error)}`;
  }
}
