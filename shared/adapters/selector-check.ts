/**
 * Reads CSS selectors (css-what) into a form that can be matched while a page streams by, and names what cannot: a
 * selector that looks at what comes later in the page is refused here, before anything is launched, not at crawl time.
 * The configuration and the instance's compiler both use this file, so they cannot disagree.
 */
import type { AttributeSelector, PseudoSelector, Selector as Token } from 'css-what';
import { AttributeAction, SelectorType, parse } from 'css-what';

export type Combinator = 'descendant' | 'child' | 'adjacent' | 'sibling';
export type AttributeOperator = 'exists' | 'equals' | 'word' | 'hyphen' | 'start' | 'end' | 'contains';

/** One condition an element must meet, decidable when its start tag is read. */
export type ElementTest =
  | { kind: 'attribute'; name: string; operator: AttributeOperator; value: string; ignoreCase: boolean }
  /** Position a·k + b (k ≥ 0) among the children of its parent, or among those of its own name. */
  | { kind: 'position'; a: number; b: number; ofType: boolean }
  | { kind: 'root' }
  | { kind: 'is'; any: Compound[] }
  | { kind: 'not'; any: Compound[] };

/** Conditions on one element; `tag` is in lower case, null for any. */
export interface Compound {
  tag: string | null;
  tests: ElementTest[];
}

/** Compounds from left to right; `combinator` says how one relates to the one before it, null for the first. */
export type CompiledSelector = { combinator: Combinator | null; compound: Compound }[];

export type SelectorReading = { selectors: CompiledSelector[]; fault: null } | { selectors: null; fault: string };

/** Reads a selector list; `fault` is one line that says what is wrong with it. */
export function readSelector(text: string): SelectorReading {
  try {
    const lists = parse(text);
    if (lists.length === 0) throw new SelectorFault('the selector is empty');
    return { selectors: lists.map(readComplex), fault: null };
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    return { selectors: null, fault: `the CSS selector ${JSON.stringify(text)} cannot be used: ${reason}` };
  }
}

/** What is wrong with a CSS selector, on one line; null when an instance can match it. */
export function findSelectorFault(text: string): string | null {
  return readSelector(text).fault;
}

class SelectorFault extends Error {}

const COMBINATORS: Partial<Record<Token['type'], Combinator>> = {
  [SelectorType.Descendant]: 'descendant',
  [SelectorType.Child]: 'child',
  [SelectorType.Adjacent]: 'adjacent',
  [SelectorType.Sibling]: 'sibling',
};

function readComplex(tokens: Token[]): CompiledSelector {
  const result: CompiledSelector = [];
  let combinator: Combinator | null = null;
  let current: Token[] = [];
  const push = (): void => {
    if (current.length === 0) throw new SelectorFault('a combinator needs something on both sides');
    result.push({ combinator, compound: readCompound(current) });
    current = [];
  };
  for (const token of tokens) {
    const next = COMBINATORS[token.type];
    if (next === undefined) {
      current.push(token);
      continue;
    }
    push();
    combinator = next;
  }
  push();
  return result;
}

function readCompound(tokens: Token[]): Compound {
  const compound: Compound = { tag: null, tests: [] };
  for (const token of tokens) {
    switch (token.type) {
      case SelectorType.Tag:
        refuseNamespace(token.namespace);
        compound.tag = token.name.toLowerCase();
        break;
      case SelectorType.Universal:
        refuseNamespace(token.namespace);
        break;
      case SelectorType.Attribute:
        compound.tests.push(readAttribute(token));
        break;
      case SelectorType.Pseudo:
        compound.tests.push(readPseudo(token));
        break;
      case SelectorType.PseudoElement:
        throw new SelectorFault(`::${token.name} is not part of the page's source`);
      default:
        throw new SelectorFault(`the ${token.type} combinator is not supported`);
    }
  }
  return compound;
}

function refuseNamespace(namespace: string | null): void {
  if (namespace !== null && namespace !== '*') throw new SelectorFault('namespaces are not supported');
}

const OPERATORS: Partial<Record<AttributeSelector['action'], AttributeOperator>> = {
  [AttributeAction.Exists]: 'exists',
  [AttributeAction.Equals]: 'equals',
  [AttributeAction.Element]: 'word',
  [AttributeAction.Hyphen]: 'hyphen',
  [AttributeAction.Start]: 'start',
  [AttributeAction.End]: 'end',
  [AttributeAction.Any]: 'contains',
};

function readAttribute(token: AttributeSelector): ElementTest {
  refuseNamespace(token.namespace);
  const name = token.name.toLowerCase();
  const operator = OPERATORS[token.action];
  if (!operator) throw new SelectorFault(`[${name}!=…] is not CSS; write :not([${name}="…"])`);
  // Without an i or s flag HTML compares the values of some attributes without regard to case. Classes and ids
  // ('quirks') are compared exactly, as in a page with a doctype.
  const ignoreCase = token.ignoreCase === true || (token.ignoreCase === null && CASELESS_VALUES.has(name));
  return { kind: 'attribute', name, operator, value: ignoreCase ? token.value.toLowerCase() : token.value, ignoreCase };
}

function readPseudo(token: PseudoSelector): ElementTest {
  const name = token.name.toLowerCase();
  switch (name) {
    case 'first-child':
      return { kind: 'position', a: 0, b: 1, ofType: false };
    case 'first-of-type':
      return { kind: 'position', a: 0, b: 1, ofType: true };
    case 'nth-child':
    case 'nth-of-type':
      return { kind: 'position', ...readNth(name, token.data), ofType: name === 'nth-of-type' };
    case 'root':
      return { kind: 'root' };
    case 'not':
    case 'is':
    case 'where':
    case 'matches':
      return { kind: name === 'not' ? 'not' : 'is', any: readInner(name, token.data) };
    default:
      throw new SelectorFault(
        /^(last-|nth-last|only-|empty$|has$)/.test(name)
          ? `:${name} needs what comes later in the page; pages are read once, from start to end`
          : `:${name} is not supported`,
      );
  }
}

function readInner(name: string, data: PseudoSelector['data']): Compound[] {
  if (!Array.isArray(data) || data.length === 0) throw new SelectorFault(`:${name}() needs a selector`);
  return data.map((tokens) => {
    if (tokens.length === 0) throw new SelectorFault(`:${name}() needs a selector`);
    if (tokens.some((token) => COMBINATORS[token.type] !== undefined))
      throw new SelectorFault(`inside :${name}() only conditions on the element itself are supported`);
    return readCompound(tokens);
  });
}

/** `odd`, `even`, `3`, `2n+1`, `-n+3`. */
function readNth(name: string, data: PseudoSelector['data']): { a: number; b: number } {
  const text = typeof data === 'string' ? data.toLowerCase().trim() : '';
  if (text === 'odd') return { a: 2, b: 1 };
  if (text === 'even') return { a: 2, b: 0 };
  const match = /^([+-]?\d*)n(?:\s*([+-])\s*(\d+))?$/.exec(text);
  if (match) {
    const [, step, sign, offset] = match;
    const a = step === '' || step === '+' ? 1 : step === '-' ? -1 : Number(step);
    return { a, b: offset === undefined ? 0 : Number(offset) * (sign === '-' ? -1 : 1) };
  }
  if (/^[+-]?\d+$/.test(text)) return { a: 0, b: Number(text) };
  throw new SelectorFault(`:${name}(${text}) is not a position such as 2, odd or 2n+1`);
}

/** https://html.spec.whatwg.org/multipage/semantics-other.html#case-sensitivity-of-selectors */
const CASELESS_VALUES = new Set(
  (
    'accept accept-charset align alink axis bgcolor charset checked clear codetype color compact declare defer dir ' +
    'direction disabled enctype face frame hreflang http-equiv lang language link media method multiple nohref ' +
    'noresize noshade nowrap readonly rel rev rules scope scrolling selected shape target text type valign valuetype vlink'
  ).split(' '),
);
