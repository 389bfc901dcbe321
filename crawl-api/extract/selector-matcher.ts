/**
 * Reports which selectors each element of a page matches, as elements open and close. There is no tree: for each open
 * element it keeps the states (positions in selectors) of the element, its ancestors and its earlier siblings, which is
 * all that descendant, child, + and ~ need.
 */
import { type ElementView, meetsCompound } from './element-test.ts';
import type { MatchState, StateTable } from './state-table.ts';

// Each open element has four sets of states, one bit each, side by side in one array: a page has thousands of elements,
// and separate sets would have to be created or cleared one by one.
/** The element's own states. */
const OWN = 0;
/** Its own and all its ancestors'. */
const PATH = 1;
/** Those of the child that opened last. */
const LAST_CHILD = 2;
/** Those of all children so far. */
const CHILDREN = 3;
const SETS = 4;

const FIRST_DEPTHS = 64;

export class SelectorMatcher {
  readonly #table: StateTable;
  /** Length of one set, and of the sets of one element. */
  readonly #words: number;
  readonly #frame: number;
  #sets: Int32Array;
  #depth = 0;

  constructor(table: StateTable) {
    this.#table = table;
    this.#words = Math.max(1, Math.ceil(table.stateCount / 32));
    this.#frame = SETS * this.#words;
    this.#sets = new Int32Array(FIRST_DEPTHS * this.#frame);
  }

  /**
   * Call at every start tag; `onMatch` is called with the number of each target whose selector the element matches,
   * possibly twice.
   */
  open(view: ElementView, onMatch: (target: number) => void): void {
    const words = this.#words;
    const parent = this.#depth++ * this.#frame;
    const frame = parent + this.#frame;
    if (frame >= this.#sets.length) this.#grow();
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
    const parent = frame - this.#frame;
    for (const state of states) {
      if (!this.#isReachable(state, parent) || !meetsCompound(state.compound, view)) continue;
      this.#sets[frame + OWN * this.#words + (state.id >>> 5)]! |= 1 << (state.id & 31);
      if (state.target !== -1) onMatch(state.target);
    }
  }

  /** Whether an element in the previous state stands where the combinator requires it. */
  #isReachable(state: MatchState, parent: number): boolean {
    switch (state.combinator) {
      case null:
        return true;
      case 'descendant':
        return this.#has(parent, PATH, state.previous);
      case 'child':
        return this.#has(parent, OWN, state.previous);
      case 'adjacent':
        return this.#has(parent, LAST_CHILD, state.previous);
      case 'sibling':
        return this.#has(parent, CHILDREN, state.previous);
    }
  }

  #has(element: number, set: number, id: number): boolean {
    return ((this.#sets[element + set * this.#words + (id >>> 5)]! >>> (id & 31)) & 1) === 1;
  }

  #grow(): void {
    const larger = new Int32Array(this.#sets.length * 2);
    larger.set(this.#sets);
    this.#sets = larger;
  }
}
