/**
 * Parses CSS selectors (css-what) into a form that can be matched while a page streams. A selector that depends on
 * later content needs the page as a tree; one that cannot be used at all is a fault. The configuration and the
 * instance's compiler both use this file, so they cannot disagree.
 */
import {
  AttributeAction,
  type AttributeSelector,
  parse,
  type PseudoSelector,
  type Selector as Token,
  SelectorType,
} from 'css-what';

export type Combinator = 'descendant' | 'child' | 'adjacent' | 'sibling';
export type AttributeOperator = 'exists' | 'equals' | 'word' | 'hyphen' | 'start' | 'end' | 'contains';

/** A condition on an element that is decidable when its start tag is read. */
export type ElementTest =
  | { kind: 'attribute'; name: string; operator: AttributeOperator; value: string; ignoreCase: boolean }
  /** Position a·k + b (k ≥ 0) among its siblings, or among those of the same name. */
  | { kind: 'position'; a: number; b: number; ofType: boolean }
  | { kind: 'root' }
  /** The record's element itself. */
  | { kind: 'scope' }
  | { kind: 'is'; any: Compound[] }
  | { kind: 'not'; any: Compound[] };

/** Conditions on one element; `tag` is in lower case, null for any. */
export interface Compound {
  tag: string | null;
  tests: ElementTest[];
}

/** Compounds from left to right; `combinator` relates each to the previous one, null for the first. */
export type CompiledSelector = { combinator: Combinator | null; compound: Compound }[];

export type SelectorReading =
  /** Can be matched while the page streams. `usesScope`: it contains `:scope`. */
  | { kind: 'stream'; selectors: CompiledSelector[]; usesScope: boolean }
  /** Needs the page as a tree; `why` names the reason. */
  | { kind: 'tree'; why: string; usesScope: boolean }
  /** `fault` is a one-line error message. */
  | { kind: 'fault'; fault: string };

/** Reads a selector list. */
export function readSelector(text: string): SelectorReading {
  try {
    const lists = parse(text);
    if (lists.length === 0) throw new SelectorFault('the selector is empty');
    const reader = new SelectorReader();
    const selectors = lists.map((tokens) => reader.readComplex(tokens));
    const { why, usesScope } = reader;
    // In one pass a plain selector of such a list would also match the record's own element.
    const isMixed = usesScope && selectors.length > 1;
    const reason = why ?? (isMixed ? ':scope beside other selectors' : null);
    return reason === null ? { kind: 'stream', selectors, usesScope } : { kind: 'tree', why: reason, usesScope };
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    return { kind: 'fault', fault: `the CSS selector ${JSON.stringify(text)} cannot be used: ${reason}` };
  }
}

/** The fault of a CSS selector, on one line; null when it is usable. `:scope` is for fields of `rows`. */
export function findSelectorFault(text: string, inRecord = false): string | null {
  const reading = readSelector(text);
  if (reading.kind === 'fault') return reading.fault;
  if (!reading.usesScope || inRecord) return null;
  return `the CSS selector ${JSON.stringify(text)} cannot be used: :scope is the record of a mapping with rows; there is none here`;
}

/** Replaces `:scope` in the lists of partByScope, because css-select interprets it differently inside `:has()`. */
export const RECORD_PSEUDO = 'crawlfleet-record';

/**
 * The selectors of a usable list, split by what they can match in a record: `self` ends in `:scope` and matches only
 * the record's element, `inside` matches elements inside it.
 */
export function partByScope(text: string): { self: Token[][]; inside: Token[][] } {
  const self: Token[][] = [];
  const inside: Token[][] = [];
  for (const tokens of parse(text)) {
    const endsInScope = splitComplex(tokens).at(-1)!.compound.some(isScope);
    const renamed = tokens.map((token): Token => (isScope(token) ? { ...token, name: RECORD_PSEUDO } : token));
    (endsInScope ? self : inside).push(renamed);
  }
  return { self, inside };
}

class SelectorFault extends Error {}

const COMBINATORS: Partial<Record<Token['type'], Combinator>> = {
  [SelectorType.Descendant]: 'descendant',
  [SelectorType.Child]: 'child',
  [SelectorType.Adjacent]: 'adjacent',
  [SelectorType.Sibling]: 'sibling',
};

/** Pseudo-classes that depend on later content of the page. */
const LATER = [
  'last-child',
  'last-of-type',
  'nth-last-child',
  'nth-last-of-type',
  'only-child',
  'only-of-type',
  'empty',
];

/** Parses the selectors of one list and records what they need. The result is valid only if `why` stays null. */
class SelectorReader {
  why: string | null = null;
  usesScope = false;

  readComplex(tokens: Token[]): CompiledSelector {
    const result: CompiledSelector = [];
    let combinator: Combinator | null = null;
    for (const { before, compound } of splitComplex(tokens)) {
      combinator = before;
      const hasScope = compound.some(isScope);
      if (hasScope && result.length > 0) this.#needTree(':scope after something else');
      result.push({ combinator, compound: this.#readCompound(compound, true) });
    }
    return result;
  }

  #needTree(what: string): void {
    this.why ??= what;
  }

  #readCompound(tokens: Token[], isOuter: boolean): Compound {
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
        case SelectorType.Pseudo: {
          const test = this.#readPseudo(token, isOuter);
          if (test) compound.tests.push(test);
          break;
        }
        case SelectorType.PseudoElement:
          throw new SelectorFault(`::${token.name} is not part of the page's source`);
        default:
          throw new SelectorFault(`the ${token.type} combinator is not supported`);
      }
    }
    return compound;
  }

  #readPseudo(token: PseudoSelector, isOuter: boolean): ElementTest | null {
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
      case 'scope':
        if (!isOuter) throw new SelectorFault(':scope inside another pseudo-class is not supported');
        this.usesScope = true;
        return { kind: 'scope' };
      case 'not':
      case 'is':
      case 'where':
      case 'matches':
        return { kind: name === 'not' ? 'not' : 'is', any: this.#readInner(name, token.data) };
      case 'has':
        this.#readRelative(token.data);
        this.#needTree(':has()');
        return null;
      case 'contains':
        if (typeof token.data !== 'string' || token.data === '') throw new SelectorFault(':contains() needs a text');
        this.#needTree(':contains()');
        return null;
      default:
        if (!LATER.includes(name)) throw new SelectorFault(`:${name} is not supported`);
        if (name.startsWith('nth-')) readNth(name, token.data);
        this.#needTree(`:${name}`);
        return null;
    }
  }

  #readInner(name: string, data: PseudoSelector['data']): Compound[] {
    return innerLists(name, data).flatMap((tokens) => {
      const parts = splitComplex(tokens);
      if (parts.length > 1) this.#needTree(`:${name}() with more than one element`);
      const compounds = parts.map(({ compound }) => this.#readCompound(compound, false));
      return compounds.slice(-1);
    });
  }

  /** The argument of :has() may begin with a combinator. */
  #readRelative(data: PseudoSelector['data']): void {
    for (const tokens of innerLists('has', data)) {
      const isRelative = tokens[0] !== undefined && COMBINATORS[tokens[0].type] !== undefined;
      for (const { compound } of splitComplex(isRelative ? tokens.slice(1) : tokens))
        this.#readCompound(compound, false);
    }
  }
}

function isScope(token: Token): token is PseudoSelector {
  return token.type === SelectorType.Pseudo && token.name.toLowerCase() === 'scope';
}

/** The compounds of a complex selector, each with its preceding combinator. */
function splitComplex(tokens: Token[]): { before: Combinator | null; compound: Token[] }[] {
  const parts: { before: Combinator | null; compound: Token[] }[] = [{ before: null, compound: [] }];
  for (const token of tokens) {
    const next = COMBINATORS[token.type];
    if (next === undefined) parts.at(-1)!.compound.push(token);
    else parts.push({ before: next, compound: [] });
  }
  if (parts.some(({ compound }) => compound.length === 0))
    throw new SelectorFault('a combinator needs something on both sides');
  return parts;
}

function innerLists(name: string, data: PseudoSelector['data']): Token[][] {
  if (!Array.isArray(data) || data.length === 0 || data.some((tokens) => tokens.length === 0))
    throw new SelectorFault(`:${name}() needs a selector`);
  return data;
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
