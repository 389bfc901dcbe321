/** Runs a field's chain of steps: the rules for one and for many values are in shared/domain/mapping.ts. */
import type { ChainValue, FieldType, Scalar, Step } from '../../shared/domain/mapping.ts';
import type { Contents, PageContents } from './page-plan.ts';
import type { StepContext } from './processors.ts';
import { replaceBreaks } from './text-breaks.ts';

/** The source of a chain's first values. */
export interface Source {
  /** True when it is independent of the record: it yields the same for each record of a page. */
  isOfPage: boolean;
  /** A source whose values differ in it says in the context whether these were written for machines. */
  read(page: PageContents, record: Contents, context?: Pick<StepContext, 'isMachine'>): Scalar[];
}

/** A step after the first. */
export interface Operation {
  step: Step;
  selects: boolean;
  apply(values: ChainValue[], context: StepContext): ChainValue[];
}

export interface CompiledChain {
  first: Step;
  source: Source;
  operations: Operation[];
  /** Continues with the first selected value only, whatever the other steps make of it. */
  isSingle: boolean;
  type: FieldType;
  /** The values come from attributes, JSON or JSON-LD, where plain numbers have the point as decimal mark. */
  isMachine: boolean;
}

/** Called with the values after each step. */
export type StepObserver = (step: Step, values: readonly ChainValue[]) => void;

export interface ChainResult {
  /** The values after all steps. An empty text is no value. */
  values: ChainValue[];
  /** True when no value comes from the page: the chain was empty before its `default`. */
  isDefault: boolean;
}

export function runChain(
  chain: CompiledChain,
  selected: readonly Scalar[],
  context: StepContext,
  observe: StepObserver | null = null,
): ChainResult {
  let values: ChainValue[] = keep(selected, chain.isSingle);
  let isDefault = false;
  observe?.(chain.first, values);
  for (const operation of chain.operations) {
    isDefault ||= operation.step.type === 'default' && values.length === 0;
    values = keep(operation.apply(values, context), chain.isSingle && operation.selects);
    observe?.(operation.step, values);
  }
  return { values, isDefault };
}

/** Limits first, then filters: an empty first value is no reason to take the second. */
function keep(values: readonly ChainValue[], onlyFirst: boolean): ChainValue[] {
  return (onlyFirst ? values.slice(0, 1) : values).filter((value) => value !== '');
}

interface TracedStep {
  step: Step;
  /** The source that it belongs to, from 0. */
  source: number;
  /** The first few values after the step, each shortened. */
  values: ChainValue[];
  count: number;
}

export interface TracedField {
  /** Those of the sources that were tried. */
  steps: TracedStep[];
  /** The source that gave the value; null without a value from the page. */
  source: number | null;
}

/** How each field got its value, by field name; with `rows` that of the first record. */
export type Trace = Map<string, TracedField>;

const MAX_SHOWN = 5;
const MAX_SHOWN_CHARS = 200;

/** Records the steps of one of a field's sources. */
export function observeSource({ steps }: TracedField, source: number): StepObserver {
  return (step, values) => {
    steps.push({ step, source, values: values.slice(0, MAX_SHOWN).map(cut), count: values.length });
  };
}

function cut(value: ChainValue): ChainValue {
  if (typeof value !== 'string') return value;
  const text = replaceBreaks(value.slice(0, MAX_SHOWN_CHARS), '\n');
  return value.length > MAX_SHOWN_CHARS ? `${text}…` : text;
}
