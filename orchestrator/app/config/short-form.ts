/** The short form of a mapping: `fields: { title: "h1", price: { css: ".price", integer: true } }`. */
import { z } from 'zod';
import type { PlacedStep } from './chain.ts';
import type { FaultList, Path } from './faults.ts';
import { isRecord } from './faults.ts';
import { fieldOptions, parserOptions, selectorOptions } from './field-options.ts';
import type { PageForm, PlacedField, PlacedPage } from './placed-page.ts';
import { text } from './processors.ts';
import { currencySteps, readOptions } from './short-field.ts';

const FIELD = 'must be a CSS selector or an object such as { css: ".price", attr: data-value, integer: true }';
const SELECTOR = 'must be a CSS selector, or { css }, { xpath } or { jsonpath }';

export const SHORT_FORM: PageForm = {
  urlPatterns: z.array(text(), { error: 'must be a list of patterns' }),
  readPattern: (pattern, path) => [{ pattern: pattern as string, path }],
  readParser,
  readFields,
  readSelector,
};

function readFields(value: unknown, path: Path, faults: FaultList): PlacedField[] {
  if (!isRecord(value) || Object.keys(value).length === 0) {
    faults.report(path, 'must have at least one field: `title: "h1"`');
    return [];
  }
  return Object.entries(value).flatMap(([name, form]) => {
    const at = [...path, name];
    if (typeof form !== 'string' && !isRecord(form)) {
      faults.report(at, FIELD);
      return [];
    }
    const options = faults.read(fieldOptions, typeof form === 'string' ? { css: form } : form, at);
    if (!options) return [{ name, path: at, required: false, requiredPath: at, steps: [] }];
    const { required = false, ...chain } = options;
    const steps = readOptions(chain, at, faults);
    const field = { name, path: at, required, requiredPath: [...at, 'required'], steps };
    const currency = currencySteps(chain, steps);
    if (currency === null) return [field];
    return [field, { ...field, name: `${name}_currency`, required: false, steps: currency }];
  });
}

/** A bare text is a CSS selector for links: their href. */
function readParser(value: unknown, path: Path, faults: FaultList): PlacedPage['urlParsers'] {
  if (typeof value !== 'string' && !isRecord(value)) {
    faults.report(path, 'must be a CSS selector for links, or an object such as { css: "a.next", attr: href }');
    return [];
  }
  const options = faults.read(parserOptions, typeof value === 'string' ? { css: value, attr: 'href' } : value, path);
  if (!options) return [];
  const { description = '', ...chain } = options;
  const steps = readOptions(chain, path, faults);
  return steps.length > 0 ? [{ description, path, steps }] : [];
}

function readSelector(value: unknown, path: Path, faults: FaultList): PlacedStep | null {
  const options = typeof value === 'string' ? { css: value } : value;
  const read = isRecord(options) ? faults.read(selectorOptions, options, path) : {};
  if (!read) return null;
  if (Object.keys(read).length !== 1) {
    faults.report(path, SELECTOR);
    return null;
  }
  return readOptions({ ...read, trim: false }, path, faults)[0] ?? null;
}
