/** Converts one step of a chain, in any of its spellings, into the normalised step. */
import type { Step } from '../../../shared/domain/mapping.ts';
import { type FaultList, isRecord, type Path } from './faults.ts';
import { PROCESSOR_NAMES, type ProcessorForm, PROCESSORS } from './processors.ts';

/** A step with its position in the file. */
export interface PlacedStep {
  step: Step;
  path: Path;
}

/** `{ type: "split", parameters: { by: "," } }`, as in the JSON form. */
export function readTypedStep(value: unknown, path: Path, faults: FaultList): PlacedStep | null {
  if (!isRecord(value)) {
    faults.report(path, 'must be a processor such as {"type": "css", "parameters": {"selector": "h1"}}');
    return null;
  }
  for (const key of Object.keys(value)) {
    if (key !== 'type' && key !== 'parameters')
      faults.report([...path, key], 'unknown key; a processor has type and parameters');
  }
  if (typeof value.type !== 'string') {
    faults.report([...path, 'type'], `must name a processor: ${PROCESSOR_NAMES.join(', ')}`);
    return null;
  }
  const form = findForm(value.type, [...path, 'type'], faults);
  if (!form) return null;
  return readParameters(form, value.parameters ?? {}, faults, { at: path, path: [...path, 'parameters'] });
}

/** `trim`, `{ split: "," }` or `{ replace: { find: "a", with: "b" } }`, as in `then`. */
export function readShortStep(value: unknown, path: Path, faults: FaultList): PlacedStep | null {
  if (typeof value === 'string') {
    const form = findForm(value, path, faults);
    if (!form) return null;
    if (form.parameters.safeParse({}).success) return readParameters(form, {}, faults, { at: path });
    faults.report(path, `${value} needs ${Object.keys(form.parameters.shape).join(' and ')}`);
    return null;
  }
  const entries = isRecord(value) ? Object.entries(value) : [];
  if (entries.length !== 1) {
    faults.report(path, 'must be one step: a name such as trim, or a name with its parameters such as { split: "," }');
    return null;
  }
  const [name, given] = entries[0]!;
  const at = [...path, name];
  const form = findForm(name, at, faults);
  if (!form) return null;
  const isPlain = Object.keys(form.parameters.shape).length === 0;
  // `{ trim: true }` means the same as `trim`.
  if (given === true && form.parameters.safeParse({}).success && (form.main === null || form.main === 'format'))
    return readParameters(form, {}, faults, { at });
  if (isRecord(given)) return readParameters(form, given, faults, { at });
  if (form.main !== null) return readParameters(form, { [form.main]: given }, faults, { at, bare: true });
  faults.report(at, isPlain ? 'takes no parameters' : `must have ${Object.keys(form.parameters.shape).join(' and ')}`);
  return null;
}

function findForm(name: string, path: Path, faults: FaultList): ProcessorForm | null {
  const form = PROCESSORS.get(name) ?? null;
  if (!form)
    faults.report(path, `there is no processor ${JSON.stringify(name)}; there are ${PROCESSOR_NAMES.join(', ')}`);
  return form;
}

function readParameters(
  form: ProcessorForm,
  value: unknown,
  faults: FaultList,
  { at, path = at, bare = false }: { at: Path; path?: Path; bare?: boolean },
): PlacedStep | null {
  if (Object.keys(form.parameters.shape).length === 0 && isRecord(value)) {
    for (const key of Object.keys(value))
      faults.report([...path, key], 'unknown key; this processor has no parameters');
    return { step: form.toStep({}), path: at };
  }
  const before = faults.all.length;
  const read = faults.read(form.parameters, value, path);
  // A bare value is at the step's own position: its parameter has no key in the file.
  if (bare) for (const fault of faults.all.slice(before)) fault.path = path;
  return read ? { step: form.toStep(read), path: at } : null;
}
