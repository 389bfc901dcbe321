/** Compiles the selectors of a mapping into one table that a page is matched against while it streams by. */
import type { Combinator, CompiledSelector, Compound } from '../../shared/adapters/selector-check.ts';

/**
 * One position in a selector: the element matches `compound` and relates to an element of state `previous` by
 * `combinator`. `target` is set on the last position: an element in this state is a match.
 */
export interface MatchState {
  id: number;
  compound: Compound;
  combinator: Combinator | null;
  previous: number;
  target: number;
}

export interface StateTable {
  /** Number of states; ids are 0 … count - 1. */
  stateCount: number;
  /** States that only an element of this name can be in. */
  byTag: ReadonlyMap<string, readonly MatchState[]>;
  /** States that any element can be in. */
  anyTag: readonly MatchState[];
  /** True when some selector counts elements by their name. */
  countsTypes: boolean;
}

/** Builds one table from the selectors of all targets. */
export function buildTable(targets: Iterable<readonly [target: number, selectors: CompiledSelector[]]>): StateTable {
  const states: MatchState[] = [];
  for (const [target, selectors] of targets) {
    for (const selector of selectors) {
      selector.forEach(({ combinator, compound }, at) => {
        const id = states.length;
        states.push({ id, compound, combinator, previous: id - 1, target: at === selector.length - 1 ? target : -1 });
      });
    }
  }
  const byTag = new Map<string, MatchState[]>();
  const anyTag: MatchState[] = [];
  for (const state of states) {
    const { tag } = state.compound;
    if (tag === null) anyTag.push(state);
    else if (byTag.has(tag)) byTag.get(tag)!.push(state);
    else byTag.set(tag, [state]);
  }
  return { stateCount: states.length, byTag, anyTag, countsTypes: states.some((s) => countsTypes(s.compound)) };
}

function countsTypes(compound: Compound): boolean {
  return compound.tests.some(
    (test) =>
      (test.kind === 'position' && test.ofType) ||
      ((test.kind === 'is' || test.kind === 'not') && test.any.some(countsTypes)),
  );
}
