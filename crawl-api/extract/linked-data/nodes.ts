/** Access to the nodes of JSON-LD and microdata: plain objects whose properties are values, nodes, or lists of them. */

import { replaceBreaks } from '../text-breaks.ts';

export type Node = Record<string, unknown>;

/**
 * Makes an object that inherits nothing: a page may name its properties at will. `Object.create(null)` would do, but V8
 * keeps such objects as hash tables, which take several times the memory.
 */
export const BareObject = function () {} as unknown as new <T = unknown>() => Record<string, T>;
BareObject.prototype = Object.create(null);

/** The text of an element, as a value of microdata: written for people. All other values are written for machines. */
export class ShownText {
  readonly text: string;
  /** The same with its breaks. */
  readonly broken: string;

  constructor(broken: string) {
    this.broken = broken;
    this.text = replaceBreaks(broken, '');
  }
}

export const isNode = (value: unknown): value is Node =>
  typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof ShownText);

export const listOf = (value: unknown): unknown[] =>
  value === undefined || value === null ? [] : Array.isArray(value) ? (value as unknown[]) : [value];

const VOCABULARIES = ['schema:', 'https://schema.org/', 'http://schema.org/'];

/**
 * The name under which a node has a property: its bare name, or that with schema.org's prefix. Own properties only: a
 * path such as `constructor.name` finds nothing.
 */
export function keyIn(node: object, key: string): string | null {
  if (Object.hasOwn(node, key)) return key;
  if (key.startsWith('@')) return null;
  for (const name of prefixed(key)) if (Object.hasOwn(node, name)) return name;
  return null;
}

/** Kept, because joining takes longer than the search: the keys are those of mappings and of this program. */
const prefixedNames = new Map<string, readonly string[]>();

function prefixed(key: string): readonly string[] {
  let names = prefixedNames.get(key);
  if (names === undefined) prefixedNames.set(key, (names = VOCABULARIES.map((vocabulary) => vocabulary + key)));
  return names;
}

export function own(node: unknown, key: string): unknown {
  if (typeof node !== 'object' || node === null) return undefined;
  const name = keyIn(node, key);
  return name === null ? undefined : (node as Node)[name];
}

/** The name of a property without schema.org's prefix. */
export function bareKey(key: string): string {
  const vocabulary = key.includes(':') ? VOCABULARIES.find((prefix) => key.startsWith(prefix)) : undefined;
  return vocabulary === undefined ? key : key.slice(vocabulary.length);
}

/** The first text or number that a property has; null without any. */
export function literalOf(node: unknown, key: string): string | number | ShownText | null {
  for (const value of listOf(own(node, key))) {
    const literal = isNode(value) ? own(value, '@value') : value;
    if (typeof literal === 'string' || typeof literal === 'number' || literal instanceof ShownText) return literal;
  }
  return null;
}

/** The same as text without white space around it; null for an empty one. */
export function textOf(node: unknown, key: string): string | null {
  const literal = literalOf(node, key);
  const text = literal instanceof ShownText ? literal.text.replace(/\s+/g, ' ') : String(literal ?? '');
  return text.trim() || null;
}
