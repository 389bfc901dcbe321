/** Records how each field got its value: the values after every step of its chain. */
import type { ChainValue, Step } from '../../shared/domain/mapping.ts';
import type { StepObserver } from './chain.ts';

interface TracedStep {
  step: Step;
  /** The first few values after the step, each shortened. */
  values: ChainValue[];
  /** Total number of values. */
  count: number;
}

/** The fields' steps by field name; with `rows` those of the first record. */
export type Trace = Map<string, TracedStep[]>;

const MAX_SHOWN = 5;
const MAX_SHOWN_CHARS = 200;

/** Records a field's steps in the trace. */
export function observeField(trace: Trace, field: string): StepObserver {
  const steps: TracedStep[] = [];
  trace.set(field, steps);
  return (step, values) => {
    steps.push({ step, values: values.slice(0, MAX_SHOWN).map(cut), count: values.length });
  };
}

function cut(value: ChainValue): ChainValue {
  return typeof value === 'string' && value.length > MAX_SHOWN_CHARS ? `${value.slice(0, MAX_SHOWN_CHARS)}…` : value;
}
