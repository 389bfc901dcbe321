/** The four types of XPath 1.0 and their conversions (https://www.w3.org/TR/xpath-10/#section-Expressions). */
import { stringOf, type XPathNode, type XPathWorld } from './xpath-nodes.ts';

/** Nodes are in document order, each once. */
export type XPathValue = XPathNode[] | string | number | boolean;

export function toText(value: XPathValue, world: XPathWorld): string {
  if (Array.isArray(value)) return value[0] ? stringOf(value[0], world) : '';
  if (typeof value !== 'number') return String(value);
  return Object.is(value, -0) ? '0' : plainNumber(value);
}

/** XPath writes no exponents. */
function plainNumber(value: number): string {
  const text = String(value);
  if (!text.includes('e') || !Number.isFinite(value)) return text;
  return Math.abs(value) >= 1 ? BigInt(value).toString() : value.toFixed(20).replace(/0+$/, '');
}

const NUMBER = /^[ \t\r\n]*-?(?:\d+(?:\.\d*)?|\.\d+)[ \t\r\n]*$/;

export function toNumber(value: XPathValue, world: XPathWorld): number {
  if (typeof value === 'number') return value;
  if (typeof value === 'boolean') return value ? 1 : 0;
  const text = toText(value, world);
  return NUMBER.test(text) ? Number(text) : Number.NaN;
}

export function toBoolean(value: XPathValue): boolean {
  if (Array.isArray(value)) return value.length > 0;
  return typeof value === 'number' ? value !== 0 && !Number.isNaN(value) : Boolean(value);
}

export type Comparison = '=' | '!=' | '<' | '<=' | '>' | '>=';

/** A set of nodes compares true when one of its nodes does. */
export function compare(operator: Comparison, left: XPathValue, right: XPathValue, world: XPathWorld): boolean {
  if (Array.isArray(left) && Array.isArray(right)) return compareNodes(operator, left, right, world);
  if (Array.isArray(right)) {
    const one = left as Simple;
    return compareEach(right, one, world, (own) => compareSimple(operator, one, own, world));
  }
  if (Array.isArray(left)) return compareEach(left, right, world, (own) => compareSimple(operator, own, right, world));
  return compareSimple(operator, left, right, world);
}

type Simple = string | number | boolean;

function compareSimple(operator: Comparison, left: Simple, right: Simple, world: XPathWorld): boolean {
  if (operator === '=' || operator === '!=') {
    let same: boolean;
    if (typeof left === 'boolean' || typeof right === 'boolean') same = toBoolean(left) === toBoolean(right);
    else if (typeof left === 'number' || typeof right === 'number')
      same = toNumber(left, world) === toNumber(right, world);
    else same = left === right;
    return same === (operator === '=');
  }
  return isOrdered(operator, toNumber(left, world), toNumber(right, world));
}

function isOrdered(operator: Comparison, left: number, right: number): boolean {
  switch (operator) {
    case '<':
      return left < right;
    case '<=':
      return left <= right;
    case '>':
      return left > right;
    default:
      return left >= right;
  }
}

function compareEach(nodes: XPathNode[], other: Simple, world: XPathWorld, holds: (own: Simple) => boolean): boolean {
  if (typeof other === 'boolean') return holds(nodes.length > 0);
  return nodes.some((node) => holds(stringOf(node, world)));
}

/** In time linear in the nodes: by a set for equality, by the extremes for order. */
function compareNodes(operator: Comparison, left: XPathNode[], right: XPathNode[], world: XPathWorld): boolean {
  const texts = (nodes: XPathNode[]): string[] => nodes.map((node) => stringOf(node, world));
  if (operator === '=') {
    const wanted = new Set(texts(right));
    return texts(left).some((text) => wanted.has(text));
  }
  if (operator === '!=') {
    if (left.length === 0 || right.length === 0) return false;
    return new Set([...texts(left), ...texts(right)]).size > 1;
  }
  const numbers = (nodes: XPathNode[]): number[] =>
    texts(nodes)
      .map((text) => toNumber(text, world))
      .filter((number) => !Number.isNaN(number));
  const [a, b] = [numbers(left), numbers(right)];
  if (a.length === 0 || b.length === 0) return false;
  const least = (list: number[]): number => list.reduce((x, y) => Math.min(x, y));
  const most = (list: number[]): number => list.reduce((x, y) => Math.max(x, y));
  return operator === '<' || operator === '<='
    ? isOrdered(operator, least(a), most(b))
    : isOrdered(operator, most(a), least(b));
}
