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
export function callFunction(name: FunctionName, args: XPathValue[], place: CallContext): XPathValue {
  const { world } = place;
  const [first, second, third] = args;
  const text = (value: XPathValue | undefined): string => toText(value ?? [place.node], world);
  switch (name) {
    case 'last':
      return place.size;
    case 'position':
      return place.position;
    case 'count':
      return nodesOf(first).length;
    case 'id':
      return findById(first!, world);
    case 'name':
      return nameOf(first === undefined ? place.node : nodesOf(first)[0]);
    case 'local-name':
      return nameOf(first === undefined ? place.node : nodesOf(first)[0]).replace(/^[^:]*:/, '');
    case 'namespace-uri':
      return '';
    case 'string':
      return text(first);
    case 'concat':
      return args.map((arg) => text(arg)).join('');
    case 'starts-with':
      return text(first).startsWith(text(second));
    case 'contains':
      return text(first).includes(text(second));
    case 'substring-before': {
      const at = text(first).indexOf(text(second));
      return at === -1 ? '' : text(first).slice(0, at);
    }
    case 'substring-after': {
      const at = text(first).indexOf(text(second));
      return at === -1 ? '' : text(first).slice(at + text(second).length);
    }
    case 'substring':
      return substring(text(first), toNumber(second!, world), third === undefined ? Infinity : toNumber(third, world));
    case 'string-length':
      return Array.from(text(first)).length;
    case 'normalize-space':
      return text(first)
        .replace(/[ \t\r\n]+/g, ' ')
        .replace(/^ | $/g, '');
    case 'translate':
      return translate(text(first), text(second), text(third));
    case 'boolean':
      return toBoolean(first!);
    case 'not':
      return !toBoolean(first!);
    case 'true':
      return true;
    case 'false':
      return false;
    case 'lang':
      return hasLanguage(place, text(first).toLowerCase());
    case 'number':
      return toNumber(first ?? [place.node], world);
    case 'sum':
      return nodesOf(first).reduce((sum, node) => sum + toNumber(stringOf(node, world), world), 0);
    case 'floor':
      return Math.floor(toNumber(first!, world));
    case 'ceiling':
      return Math.ceil(toNumber(first!, world));
    case 'round':
      return Math.round(toNumber(first!, world));
  }
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
