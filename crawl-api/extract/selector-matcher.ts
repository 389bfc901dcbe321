/**
 * Reports which selectors each element of a page matches, as elements open and close. There is no tree: for each open
 * element it keeps the states (positions in selectors) of the element, its ancestors and its earlier siblings, which is
 * all that descendant, child, + and ~ need.
 */
import type {
  AttributeOperator,
  Combinator,
  CompiledSelector,
  Compound,
  ElementTest,
} from '../../shared/adapters/selector-check.ts';
import type { Attributes } from './markup/markup-events.ts';

/**
 * One position in a selector. An element is in this state when it matches `compound` and the required state is in the
 * right set of its parent. `target` is set on the last position: an element in this state is a match.
 */
interface MatchState {
  compound: Compound;
  target: number;
  /** The state's word and bit in the element's own set. */
  word: number;
  bit: number;
  /** The required state's word and bit among the sets of the parent; -1 for the first position. */
  requiredWord: number;
  requiredBit: number;
}

export interface StateTable {
  /** Length of one set of states. */
  words: number;
  /** States that only an element of this name can be in. */
  byTag: ReadonlyMap<string | null, readonly MatchState[]>;
  anyTag: readonly MatchState[];
  /** True when some selector counts elements by their name. */
  countsTypes: boolean;
}

// Each open element has four sets of states, one bit each, side by side in one array: a page has thousands of elements,
// and separate sets would have to be created or cleared one by one.
const OWN = 0;
/** Its own and all its ancestors'. */
const PATH = 1;
/** Those of the child that opened last. */
const LAST_CHILD = 2;
/** Those of all children so far. */
const CHILDREN = 3;
const SETS = 4;

/** The set of the parent in which the state before the combinator must be. */
const REQUIRED_IN: Record<Combinator, number> = {
  descendant: PATH,
  child: OWN,
  adjacent: LAST_CHILD,
  sibling: CHILDREN,
};

interface Position {
  compound: Compound;
  combinator: Combinator | null;
  previous: number;
  target: number;
}

/** Builds one table from the selectors of all targets. Selectors share the states of equal beginnings. */
export function buildTable(targets: Iterable<readonly [target: number, selectors: CompiledSelector[]]>): StateTable {
  const positions = new Map<string, Position & { id: number }>();
  for (const [target, selectors] of targets) {
    for (const selector of selectors) {
      let previous = -1;
      for (const [at, { combinator, compound }] of selector.entries()) {
        const position = { compound, combinator, previous, target: at === selector.length - 1 ? target : -1 };
        const key = JSON.stringify(position);
        const known = positions.get(key) ?? { ...position, id: positions.size };
        positions.set(key, known);
        previous = known.id;
      }
    }
  }
  const words = Math.max(1, Math.ceil(positions.size / 32));
  const states = [...positions.values()].map(({ id, compound, combinator, previous, target }): MatchState => {
    const requiredWord = combinator === null ? -1 : REQUIRED_IN[combinator] * words + (previous >>> 5);
    return { compound, target, word: id >>> 5, bit: 1 << id, requiredWord, requiredBit: 1 << previous };
  });
  const byTag = Map.groupBy(states, ({ compound }) => compound.tag);
  const anyTag = byTag.get(null) ?? [];
  return { words, byTag, anyTag, countsTypes: states.some((s) => countsTypes(s.compound)) };
}

function countsTypes(compound: Compound): boolean {
  return compound.tests.some(
    (test) =>
      (test.kind === 'position' && test.ofType) ||
      ((test.kind === 'is' || test.kind === 'not') && test.any.some(countsTypes)),
  );
}

const FIRST_DEPTHS = 16;

export class SelectorMatcher {
  readonly #table: StateTable;
  /** Length of one set, and of the sets of one element. */
  readonly #words: number;
  readonly #frame: number;
  readonly #sets: number[];
  #depth = 0;

  constructor(table: StateTable) {
    this.#table = table;
    this.#words = table.words;
    this.#frame = SETS * this.#words;
    this.#sets = Array.from({ length: FIRST_DEPTHS * this.#frame }, () => 0);
  }

  /** Call at every start tag; `onMatch` gets each target whose selector the element matches, possibly twice. */
  open(view: ElementView, onMatch: (target: number) => void): void {
    const words = this.#words;
    const parent = this.#depth++ * this.#frame;
    const frame = parent + this.#frame;
    const sets = this.#sets;
    for (let w = 0; w < this.#frame; w++) sets[frame + w] = 0;
    const { byTag, anyTag } = this.#table;
    const special = byTag.get(view.name);
    if (special !== undefined) this.#match(special, frame, view, onMatch);
    if (anyTag.length > 0) this.#match(anyTag, frame, view, onMatch);
    for (let w = 0; w < words; w++) {
      const own = sets[frame + OWN * words + w]!;
      sets[frame + PATH * words + w] = sets[parent + PATH * words + w]! | own;
      sets[parent + LAST_CHILD * words + w] = own;
      sets[parent + CHILDREN * words + w]! |= own;
    }
  }

  /** Call at every end tag. */
  close(): void {
    if (this.#depth > 0) this.#depth--;
  }

  #match(states: readonly MatchState[], frame: number, view: ElementView, onMatch: (target: number) => void): void {
    const sets = this.#sets;
    const parent = frame - this.#frame;
    for (const { compound, target, word, bit, requiredWord, requiredBit } of states) {
      if (requiredWord !== -1 && (sets[parent + requiredWord]! & requiredBit) === 0) continue;
      if (!meetsCompound(compound, view)) continue;
      sets[frame + OWN * this.#words + word]! |= bit;
      if (target !== -1) onMatch(target);
    }
  }
}

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
function meetsCompound(compound: Compound, element: ElementView): boolean {
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

// An empty string is the start, end and part of every value; in CSS such a selector matches nothing.
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
  if (value.length < wanted.length || wanted === '') return false;
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
