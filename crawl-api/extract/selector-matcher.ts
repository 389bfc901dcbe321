/**
 * Follows the elements of a page as they open and close, and says which selectors each one matches. There is no
 * tree: for each open element it keeps which states (positions in selectors) the element, its ancestors and its earlier
 * siblings are in, which is all that descendant, child, + and ~ ask for.
 */
import type { CompiledMapping, MatchState } from './compile-mapping.ts';
import { meetsCompound } from './element-test.ts';
import type { ElementView } from './element-test.ts';

/** Deeper pages are refused: the parser searches its stack for every stray end tag, so depth costs quadratic time. */
export const MAX_DEPTH = 4_000;

export class TooDeepError extends Error {}

/** Sets of states, one bit each, of one open element. */
interface Frame {
  /** The element's own. */
  own: Uint32Array;
  /** Its own and all its ancestors'. */
  path: Uint32Array;
  /** Those of the child that opened last. */
  lastChild: Uint32Array;
  /** Those of all children so far. */
  children: Uint32Array;
  childCount: number;
  types: Map<string, number> | null;
}

export class SelectorMatcher {
  readonly #mapping: CompiledMapping;
  readonly #words: number;
  readonly #frames: Frame[] = [];
  /** Kept for its sets: one is needed for every start tag. */
  readonly #view: ElementView = { name: '', attributes: {}, position: 0, positionOfType: 0, isRoot: false };
  #depth = 0;

  constructor(mapping: CompiledMapping) {
    this.#mapping = mapping;
    this.#words = Math.ceil(mapping.stateCount / 32);
    this.#frames.push(this.#createFrame());
  }

  /** Number of elements open now. */
  get depth(): number {
    return this.#depth;
  }

  /** Call at every start tag; `onMatch` hears the number of each field whose selector the element matches, maybe twice. */
  open(name: string, attributes: Record<string, string>, onMatch: (field: number) => void): void {
    if (this.#depth >= MAX_DEPTH) throw new TooDeepError(`the page nests deeper than ${MAX_DEPTH} elements`);
    const parent = this.#frames[this.#depth]!;
    this.#depth++;
    const frame = (this.#frames[this.#depth] ??= this.#createFrame());
    this.#enter(frame, parent, name, attributes);
    const special = this.#mapping.byTag.get(name);
    if (special) this.#match(special, frame, parent, onMatch);
    if (this.#mapping.anyTag.length > 0) this.#match(this.#mapping.anyTag, frame, parent, onMatch);
    for (let w = 0; w < this.#words; w++) {
      frame.path[w] = parent.path[w]! | frame.own[w]!;
      parent.lastChild[w] = frame.own[w]!;
      parent.children[w] = parent.children[w]! | frame.own[w]!;
    }
  }

  /** Call at every end tag. */
  close(): void {
    if (this.#depth > 0) this.#depth--;
  }

  #enter(frame: Frame, parent: Frame, name: string, attributes: Record<string, string>): void {
    frame.own.fill(0);
    frame.lastChild.fill(0);
    frame.children.fill(0);
    frame.childCount = 0;
    frame.types?.clear();
    parent.childCount++;
    let ofType = 0;
    if (this.#mapping.countsTypes) {
      parent.types ??= new Map();
      ofType = (parent.types.get(name) ?? 0) + 1;
      parent.types.set(name, ofType);
    }
    const view = this.#view;
    view.name = name;
    view.attributes = attributes;
    view.position = parent.childCount;
    view.positionOfType = ofType;
    view.isRoot = this.#depth === 1;
  }

  #match(states: readonly MatchState[], frame: Frame, parent: Frame, onMatch: (field: number) => void): void {
    for (const state of states) {
      if (!isReachable(state, parent) || !meetsCompound(state.compound, this.#view)) continue;
      frame.own[state.id >>> 5]! |= 1 << (state.id & 31);
      if (state.field !== -1) onMatch(state.field);
    }
  }

  #createFrame(): Frame {
    const set = (): Uint32Array => new Uint32Array(this.#words);
    return { own: set(), path: set(), lastChild: set(), children: set(), childCount: 0, types: null };
  }
}

/** Whether an element of the state before this one stands where the combinator wants it. */
function isReachable(state: MatchState, parent: Frame): boolean {
  switch (state.combinator) {
    case null:
      return true;
    case 'descendant':
      return hasState(parent.path, state.previous);
    case 'child':
      return hasState(parent.own, state.previous);
    case 'adjacent':
      return hasState(parent.lastChild, state.previous);
    case 'sibling':
      return hasState(parent.children, state.previous);
  }
}

function hasState(set: Uint32Array, id: number): boolean {
  return ((set[id >>> 5]! >>> (id & 31)) & 1) === 1;
}
