/**
 * The JSON form of a mapping, where every field is an explicit chain of processors and nothing is implied:
 * `{"fields": [{"name": "title", "processors": [{"type": "css", "parameters": {"selector": "h1"}}, {"type":
 * "trim"}]}]}`.
 */
import { z } from 'zod';
import { type PlacedStep, readTypedStep } from './chain.ts';
import { type FaultList, isRecord, type Path } from './faults.ts';
import type { PageForm, PlacedField, PlacedPage } from './placed-page.ts';
import { flag, text } from './processors.ts';
import { assertOptions, toAssertion } from './field-options.ts';

const patternShape = z.strictObject({
  type: z.literal('regex', { error: 'must be regex: there is no other type of pattern' }),
  pattern: text(),
});
const PROCESSORS = 'must be a list of processors, or for several sources a list of such lists';
const processors = () => z.array(z.unknown(), { error: PROCESSORS }).min(1, 'must have at least one processor');
const parserShape = z.strictObject({ description: z.string().exactOptional(), processors: processors() });
const fieldShape = z.strictObject({
  name: text(),
  processors: processors(),
  required: flag().exactOptional(),
  assert: assertOptions.exactOptional(),
});

export const CHAIN_FORM: PageForm = {
  urlPatterns: z.array(z.unknown(), { error: 'must be a list' }),
  readPattern,
  readParser,
  readFields,
  readSelector: readTypedStep,
};

function readPattern(value: unknown, path: Path, faults: FaultList): PlacedPage['urlPatterns'] {
  if (!isRecord(value)) {
    faults.report(path, 'must be {"type": "regex", "pattern": "…"}');
    return [];
  }
  const read = faults.read(patternShape, value, path);
  return read ? [{ pattern: read.pattern, path: [...path, 'pattern'] }] : [];
}

function readParser(value: unknown, path: Path, faults: FaultList): PlacedPage['urlParsers'] {
  const read = faults.read(parserShape, value, path);
  if (!read) return [];
  return [
    { description: read.description ?? '', path, steps: readSteps(read.processors, [...path, 'processors'], faults) },
  ];
}

function readFields(value: unknown, path: Path, faults: FaultList): PlacedField[] {
  if (!Array.isArray(value) || value.length === 0) {
    faults.report(path, 'must have at least one field');
    return [];
  }
  return value.flatMap((one, i): PlacedField[] => {
    const at = [...path, i];
    const field = faults.read(fieldShape, one, at);
    if (!field) return [];
    const { name, required = false, processors, assert } = field;
    const asserted = assert && { assert: { value: toAssertion(assert), path: [...at, 'assert'] } };
    const chains = processors.every(Array.isArray)
      ? processors.map((chain, source) => readSteps(chain, [...at, 'processors', source], faults))
      : [readSteps(processors, [...at, 'processors'], faults)];
    return [{ name, path: [...at, 'name'], required, requiredPath: [...at, 'required'], chains, ...asserted }];
  });
}

function readSteps(processors: readonly unknown[], path: Path, faults: FaultList): PlacedStep[] {
  const steps = processors.map((one, i) => readTypedStep(one, [...path, i], faults));
  // With a step missing, checking the rest would only report consequential faults.
  return steps.every((step) => step !== null) ? steps : [];
}
