/** Tests one element against one compound of a selector: everything that its start tag and its position decide. */
import type { Attributes } from './markup/markup-events.ts';
import type { AttributeOperator, Compound, ElementTest } from '../../shared/adapters/selector-check.ts';

/** An element as its start tag shows it. Positions count from 1. */
export interface ElementView {
  name: string;
  attributes: Attributes;
  position: number;
  positionOfType: number;
  isRoot: boolean;
  /** True for the record whose fields are being searched. */
  isScope: boolean;
}

/** True when the element has the compound's name and passes all its tests. */
export function meetsCompound(compound: Compound, element: ElementView): boolean {
  if (compound.tag !== null && compound.tag !== element.name) return false;
  for (const test of compound.tests) if (!passes(test, element)) return false;
  return true;
}

function passes(test: ElementTest, element: ElementView): boolean {
  switch (test.kind) {
    case 'attribute': {
      const value = element.attributes.get(test.name);
      if (value === undefined) return false;
      return compare(test.operator, test.ignoreCase ? value.toLowerCase() : value, test.value);
    }
    case 'position': {
      const offset = (test.ofType ? element.positionOfType : element.position) - test.b;
      return test.a === 0 ? offset === 0 : offset % test.a === 0 && offset / test.a >= 0;
    }
    case 'root':
      return element.isRoot;
    case 'scope':
      return element.isScope;
    case 'is':
      return test.any.some((compound) => meetsCompound(compound, element));
    case 'not':
      return !test.any.some((compound) => meetsCompound(compound, element));
  }
}

function compare(operator: AttributeOperator, value: string, wanted: string): boolean {
  switch (operator) {
    case 'exists':
      return true;
    case 'equals':
      return value === wanted;
    case 'word':
      return hasWord(value, wanted);
    case 'hyphen':
      return value === wanted || (value.startsWith(wanted) && value[wanted.length] === '-');
    // An empty string is the start, end and part of every value; in CSS such a selector matches nothing.
    case 'start':
      return wanted !== '' && value.startsWith(wanted);
    case 'end':
      return wanted !== '' && value.endsWith(wanted);
    case 'contains':
      return wanted !== '' && value.includes(wanted);
  }
}

/** True when `wanted` is one of the space-separated words. Builds no array, because it runs for most start tags. */
function hasWord(value: string, wanted: string): boolean {
  if (value === wanted) return wanted !== '' && !/[ \t\n\f\r]/.test(wanted);
  if (wanted === '') return false;
  for (let at = value.indexOf(wanted); at !== -1; at = value.indexOf(wanted, at + 1)) {
    if (isEdge(value, at - 1) && isEdge(value, at + wanted.length)) return !/[ \t\n\f\r]/.test(wanted);
  }
  return false;
}

function isEdge(value: string, at: number): boolean {
  if (at < 0 || at >= value.length) return true;
  const code = value.charCodeAt(at);
  return code === 32 || code === 9 || code === 10 || code === 12 || code === 13;
}
