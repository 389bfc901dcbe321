/**
 * Turns a mapping into one table that a page is matched against while it streams by: done once per process, used for
 * every page. What cannot be matched in one pass is refused here.
 */
import { AppError } from '../../shared/domain/errors.ts';
import type { Field, FieldType, Mapping } from '../../shared/domain/mapping.ts';
import { fieldType } from '../../shared/domain/mapping.ts';
import type { Combinator, Compound } from '../../shared/adapters/selector-check.ts';
import { readSelector } from '../../shared/adapters/selector-check.ts';
import { parsePath } from './json-ld.ts';

/**
 * One position in a selector: the element meets `compound` and stands to an element of state `previous` as `combinator`
 * says. `field` is set on the last position: an element in this state is a match.
 */
export interface MatchState {
  id: number;
  compound: Compound;
  combinator: Combinator | null;
  previous: number;
  field: number;
}

export interface CompiledField {
  field: Field;
  type: FieldType;
  /** Set for JSON-LD fields. */
  path: string[] | null;
  /** The attribute to take instead of the text. */
  attribute: string | null;
}

export interface CompiledMapping {
  fields: CompiledField[];
  /** Number of states; ids are 0 … count - 1. */
  stateCount: number;
  /** States that only an element of this name can be in. */
  byTag: ReadonlyMap<string, readonly MatchState[]>;
  /** States that any element can be in. */
  anyTag: readonly MatchState[];
  /** True when some selector counts elements by their name. */
  countsTypes: boolean;
  /** True when some field reads JSON-LD. */
  readsJson: boolean;
}

/** Lists what in the mapping cannot be matched, each with its field; empty when all is well. */
export function findMappingFaults(mapping: Mapping): string[] {
  return mapping.fields.flatMap((field) => {
    if (field.select.type !== 'css') return [];
    const { fault } = readSelector(field.select.selector);
    return fault === null ? [] : [`field ${field.name}: ${fault}`];
  });
}

/** Throws `config-invalid` with every fault of findMappingFaults. */
export function compileMapping(mapping: Mapping): CompiledMapping {
  const faults = findMappingFaults(mapping);
  if (faults.length > 0)
    throw new AppError('config-invalid', `the mapping cannot be used: ${faults.join('; ')}`, {
      hint: 'Write the selectors with what comes before the element in the page, or use json_ld.',
    });
  const states: MatchState[] = [];
  const fields = mapping.fields.map((field, index): CompiledField => {
    const { select } = field;
    if (select.type === 'json_ld')
      return { field, type: fieldType(field), path: parsePath(select.path), attribute: null };
    for (const selector of readSelector(select.selector).selectors ?? []) {
      selector.forEach(({ combinator, compound }, at) => {
        const id = states.length;
        states.push({ id, compound, combinator, previous: id - 1, field: at === selector.length - 1 ? index : -1 });
      });
    }
    return { field, type: fieldType(field), path: null, attribute: select.attribute?.toLowerCase() ?? null };
  });
  return { fields, ...indexStates(states), readsJson: fields.some((f) => f.path !== null) };
}

function indexStates(states: MatchState[]): Pick<CompiledMapping, 'stateCount' | 'byTag' | 'anyTag' | 'countsTypes'> {
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
