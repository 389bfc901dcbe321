/** The core functions of XPath 1.0 (https://www.w3.org/TR/xpath-10/#corelib). */
import { Element } from 'domhandler';
import type { FunctionName } from '../../../shared/adapters/xpath/xpath-tree.ts';
import { descendants } from './tree.ts';
import { AttributeNode, parentOf, stringOf, type XPathNode, type XPathWorld } from './xpath-nodes.ts';
import { toBoolean, toNumber, toText, type XPathValue } from './xpath-values.ts';

/** The context of a function call. */
export interface CallContext {
  node: XPathNode;
  position: number;
  size: number;
  world: XPathWorld;
}

/** Calls a function; the parser has checked the number of arguments. */
export function callFunction(name: FunctionName, args: XPathValue[], context: CallContext): XPathValue {
  return FUNCTIONS[name](args, context);
}

/** The text of an argument; of the context node where it was left out. */
const text = (value: XPathValue | undefined, { node, world }: CallContext): string => toText(value ?? [node], world);
const number = (value: XPathValue | undefined, { node, world }: CallContext): number =>
  toNumber(value ?? [node], world);
const name = (value: XPathValue | undefined, { node }: CallContext): string =>
  nameOf(value === undefined ? node : nodesOf(value)[0]);

const FUNCTIONS: Record<FunctionName, (args: XPathValue[], at: CallContext) => XPathValue> = {
  last: (_, { size }) => size,
  position: (_, { position }) => position,
  count: ([nodes]) => nodesOf(nodes).length,
  id: ([value], { world }) => findById(value!, world),
  name: ([node], at) => name(node, at),
  'local-name': ([node], at) => name(node, at).replace(/^[^:]*:/, ''),
  'namespace-uri': () => '',
  string: ([value], at) => text(value, at),
  concat: (args, at) => args.map((arg) => text(arg, at)).join(''),
  'starts-with': ([whole, part], at) => text(whole, at).startsWith(text(part, at)),
  contains: ([whole, part], at) => text(whole, at).includes(text(part, at)),
  'substring-before': ([whole, part], at) => around(text(whole, at), text(part, at)).before,
  'substring-after': ([whole, part], at) => around(text(whole, at), text(part, at)).behind,
  substring: ([whole, start, length], at) =>
    substring(text(whole, at), number(start, at), length === undefined ? Infinity : number(length, at)),
  'string-length': ([value], at) => Array.from(text(value, at)).length,
  'normalize-space': ([value], at) => normalizeSpace(text(value, at)),
  translate: ([value, from, to], at) => translate(text(value, at), text(from, at), text(to, at)),
  boolean: ([value]) => toBoolean(value!),
  not: ([value]) => !toBoolean(value!),
  true: () => true,
  false: () => false,
  lang: ([value], at) => hasLanguage(at, text(value, at).toLowerCase()),
  number: ([value], at) => number(value, at),
  sum: ([nodes], { world }) => nodesOf(nodes).reduce((sum, node) => sum + toNumber(stringOf(node, world), world), 0),
  floor: ([value], at) => Math.floor(number(value, at)),
  ceiling: ([value], at) => Math.ceil(number(value, at)),
  round: ([value], at) => Math.round(number(value, at)),
};

export function normalizeSpace(text: string): string {
  return text.replace(/[ \t\r\n]+/g, ' ').replace(/^ | $/g, '');
}

function around(whole: string, part: string): { before: string; behind: string } {
  const at = whole.indexOf(part);
  return at === -1 ? { before: '', behind: '' } : { before: whole.slice(0, at), behind: whole.slice(at + part.length) };
}

/** The nodes of a value; none when it is of another type. */
export function nodesOf(value: XPathValue | undefined): XPathNode[] {
  return Array.isArray(value) ? value : [];
}

function nameOf(node: XPathNode | undefined): string {
  return node instanceof Element || node instanceof AttributeNode ? node.name : '';
}

/** Positions count characters from 1 and are rounded; NaN compares false and gives ''. */
function substring(text: string, start: number, length: number): string {
  const from = Math.round(start);
  const to = from + Math.round(length);
  return Array.from(text)
    .filter((_, i) => i + 1 >= from && i + 1 < to)
    .join('');
}

function translate(text: string, from: string, to: string): string {
  const targets = Array.from(to);
  const map = new Map<string, string>();
  for (const [i, character] of Array.from(from).entries()) {
    if (!map.has(character)) map.set(character, targets[i] ?? '');
  }
  return Array.from(text)
    .map((character) => map.get(character) ?? character)
    .join('');
}

function findById(value: XPathValue, world: XPathWorld): XPathNode[] {
  const texts = Array.isArray(value) ? value.map((node) => stringOf(node, world)) : [toText(value, world)];
  const wanted = new Set(texts.flatMap((text) => text.split(/[ \t\r\n]+/)));
  wanted.delete('');
  const found: XPathNode[] = [];
  for (const node of descendants(world.root, world.budget)) {
    // The first element with an id counts.
    if (node instanceof Element && typeof node.attribs.id === 'string' && wanted.delete(node.attribs.id))
      found.push(node);
  }
  return found;
}

function hasLanguage({ node, world }: CallContext, wanted: string): boolean {
  for (let at: XPathNode | null = node; at !== null; at = parentOf(at, world)) {
    if (!(at instanceof Element)) continue;
    const language = at.attribs['xml:lang'] ?? at.attribs.lang;
    if (typeof language === 'string')
      return language.toLowerCase() === wanted || language.toLowerCase().startsWith(`${wanted}-`);
  }
  return false;
}
