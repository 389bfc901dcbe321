/** The short form of a mapping: `fields: { title: "h1", price: { css: ".price", integer: true } }`. */
import { z } from 'zod';
import { type PlacedStep, readShortStep } from './chain.ts';
import { type FaultList, isRecord, type Path } from './faults.ts';
import { type ChainOptions, fieldOptions, parserOptions, selectorOptions } from './field-options.ts';
import type { PageForm, PlacedField, PlacedPage } from './placed-page.ts';
import { text, regexStep, stepOptions } from './processors.ts';
import type { Step } from '../../../shared/domain/mapping.ts';

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
  if (value === undefined) return [];
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

const SELECTORS = ['css', 'xpath', 'jsonpath', 'json_ld', 'microdata'] as const;
const TYPES = ['number', 'integer', 'price', 'boolean', 'date', 'url'] as const;
const SHAPES = ['first', 'all', 'join'] as const;
/** Options allowed beside `then`: the selecting ones and those that are no steps. */
const BESIDE_THEN = new Set([...SELECTORS, 'regex', 'attr', 'node', 'required', 'description', 'then']);

/** The chain of these options; empty after reporting that nothing is selected. */
function readOptions(options: ChainOptions, path: Path, faults: FaultList): PlacedStep[] {
  const select = readSelect(options, path, faults);
  if (select === null) return [];
  if (options.then === undefined) return [...select, ...readProcess(options, path, faults)];
  for (const key of Object.keys(options)) {
    if (!BESIDE_THEN.has(key)) faults.report([...path, key], 'with `then` it is one of its steps');
  }
  const then = options.then.map((step, i) => readShortStep(step, [...path, 'then', i], faults));
  return [...select, ...then.filter((step) => step !== null)];
}

function readSelect(options: ChainOptions, path: Path, faults: FaultList): PlacedStep[] | null {
  const given = SELECTORS.filter((key) => options[key] !== undefined);
  if (given.length > 1) {
    faults.report([...path, given[1]!], `cannot be combined with ${given[0]!}: a field has one selector`);
    return null;
  }
  if (options.attr !== undefined && options.css === undefined) faults.report([...path, 'attr'], 'works only with css');
  if (options.node !== undefined && options.json_ld === undefined && options.microdata === undefined)
    faults.report([...path, 'node'], 'works only with json_ld and microdata');
  const regex = readRegex(options, path);
  const key = given[0];
  if (key !== undefined) return [{ step: selectStep(key, options), path: [...path, key] }, ...regex];
  if (regex.length > 0 || options.then !== undefined) return regex;
  faults.report(path, `must have one of ${SELECTORS.join(', ')} and regex, to say where the value is`);
  return null;
}

function selectStep(key: (typeof SELECTORS)[number], options: ChainOptions): Step {
  const value = options[key]!;
  switch (key) {
    case 'css':
      return { type: 'css', selector: value, ...(options.attr === undefined ? {} : { attribute: options.attr }) };
    case 'json_ld':
    case 'microdata':
      return { type: key, path: value, ...(options.node === undefined ? {} : { node: options.node }) };
    case 'xpath':
    case 'jsonpath':
      return { type: key, expression: value };
  }
}

function readRegex({ regex }: ChainOptions, path: Path): PlacedStep[] {
  if (regex === undefined) return [];
  const { pattern, group } = typeof regex === 'string' ? { pattern: regex, group: undefined } : regex;
  return [{ step: regexStep(pattern, group ?? null), path: [...path, 'regex'] }];
}

function readProcess(options: ChainOptions, path: Path, faults: FaultList): PlacedStep[] {
  const steps: PlacedStep[] = [];
  const add = (key: string, step: Step): void => void steps.push({ step, path: [...path, key] });
  const trims = options.trim !== false;
  if (trims) add('trim', { type: 'trim' });
  for (const replacement of [options.replace ?? []].flat()) add('replace', { type: 'replace', ...replacement });
  if (options.split !== undefined) add('split', { type: 'split', by: options.split });
  // Replacing and splitting leave white space behind: `1,200 yen` without `yen`, the pieces of `a, b`.
  if (trims && (options.replace !== undefined || options.split !== undefined)) add('trim', { type: 'trim' });
  for (const key of pickOne(['lower', 'upper'], options, path, faults)) add(key, { type: key });
  for (const key of pickOne(TYPES, options, path, faults)) {
    if (key === 'date') add(key, dateStep(options.date));
    else if (key === 'number' || key === 'integer' || key === 'price')
      add(key, { type: key, ...stepOptions(optionsOf(options[key])) });
    else add(key, { type: key });
  }
  for (const key of pickOne(SHAPES, options, path, faults)) {
    if (key === 'join') add(key, { type: 'join', by: options.join! });
    else add(key, { type: key });
  }
  if (options.default !== undefined) add('default', { type: 'default', value: options.default });
  return steps;
}

const optionsOf = <T extends object>(option: boolean | T | undefined): T | Record<string, never> =>
  typeof option === 'object' ? option : {};

/**
 * The chain of the currency beside a price, from the options and the chain of the price; null for a field that is no
 * price. In JSON-LD and microdata the currency is beside the amount, as priceCurrency; it is read from there unless the
 * mapping names the currency.
 */
function currencySteps(options: ChainOptions, steps: readonly PlacedStep[]): PlacedStep[] | null {
  if (options.price === undefined || options.price === false || steps.length === 0) return null;
  return steps
    .filter(({ step }) => step.type !== 'default')
    .map(({ step, path }) => {
      if (step.type === 'price')
        return { step: { type: 'currency', ...(step.currency ? { currency: step.currency } : {}) }, path };
      const isBeside = step.type === 'json_ld' || step.type === 'microdata';
      return isBeside && optionsOf(options.price).currency === undefined
        ? { step: { ...step, path: step.path.replace(PRICE_KEY, 'priceCurrency') }, path }
        : { step, path };
    });
}

/** The schema.org names of amounts that have a priceCurrency beside them. */
const PRICE_KEY = /\b(?:price|lowPrice|highPrice)$/;

function dateStep(date: ChainOptions['date']): Step {
  if (typeof date === 'string') return { type: 'date', format: date, locale: null };
  const { format = null, locale = null } = typeof date === 'object' ? date : {};
  return { type: 'date', format, locale };
}

/** The one of these options that is set, as a list of none or one; two of them are a fault. */
function pickOne<K extends keyof ChainOptions>(
  keys: readonly K[],
  options: ChainOptions,
  path: Path,
  faults: FaultList,
): K[] {
  const given = keys.filter((key) => options[key] !== undefined && options[key] !== false);
  if (given.length > 1) faults.report([...path, given[1]!], `${given.join(' and ')} exclude each other`);
  return given.slice(0, 1);
}
