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

/** A set of nodes compares true when one of its nodes does; each pair counts as a visit. */
export function compare(operator: Comparison, left: XPathValue, right: XPathValue, world: XPathWorld): boolean {
  const rights = [...simplesOf(right, left, world)];
  for (const one of simplesOf(left, right, world)) {
    world.budget.spend('visits', rights.length);
    if (rights.some((other) => compareSimple(operator, one, other, world))) return true;
  }
  return false;
}

type Simple = string | number | boolean;

const ORDER: Record<Exclude<Comparison, '=' | '!='>, (left: number, right: number) => boolean> = {
  '<': (left, right) => left < right,
  '<=': (left, right) => left <= right,
  '>': (left, right) => left > right,
  '>=': (left, right) => left >= right,
};

function compareSimple(operator: Comparison, left: Simple, right: Simple, world: XPathWorld): boolean {
  if (operator === '=' || operator === '!=') {
    let same: boolean;
    if (typeof left === 'boolean' || typeof right === 'boolean') same = toBoolean(left) === toBoolean(right);
    else if (typeof left === 'number' || typeof right === 'number')
      same = toNumber(left, world) === toNumber(right, world);
    else same = left === right;
    return same === (operator === '=');
  }
  return ORDER[operator](toNumber(left, world), toNumber(right, world));
}

/** What `other` is compared with: the texts of nodes, or whether there are any; or the value itself. */
function* simplesOf(value: XPathValue, other: XPathValue, world: XPathWorld): Generator<Simple> {
  if (!Array.isArray(value)) yield value;
  else if (typeof other === 'boolean') yield value.length > 0;
  else for (const node of value) yield stringOf(node, world);
}
