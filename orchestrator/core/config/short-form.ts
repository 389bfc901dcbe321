/** The short form of a mapping: `fields: { title: "h1", price: { css: ".price", integer: true } }`. */
import { isDeepStrictEqual } from 'node:util';
import { z } from 'zod';
import { type PlacedStep, readShortStep } from './chain.ts';
import { type FaultList, isRecord, type Path } from './faults.ts';
import {
  type ChainOptions,
  fieldOptions,
  type FieldOptions,
  parserOptions,
  selectorOptions,
  toAssertion,
} from './field-options.ts';
import type { PageForm, PlacedField, PlacedPage } from './placed-page.ts';
import { text, regexStep, stepOptions } from './processors.ts';
import type { Step } from '../../../shared/domain/mapping.ts';

const FIELD =
  'must be a CSS selector or an object such as { css: ".price", attr: data-value, integer: true }, or a list of them';
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
  return Object.entries(value).flatMap(([name, form]) => readField(name, form, [...path, name], faults));
}

/** One source, or a list of them with one set of options, which may be written at any of them. */
function readField(name: string, form: unknown, path: Path, faults: FaultList): PlacedField[] {
  const isList = Array.isArray(form);
  const forms: unknown[] = isList ? form : [form];
  if (forms.length === 0 || forms.some((one) => typeof one !== 'string' && !isRecord(one))) {
    faults.report(path, FIELD);
    return [];
  }
  const read = forms.map((one, i): Placed<FieldOptions> | null => {
    const at = isList ? [...path, i] : path;
    const options = faults.read(fieldOptions, typeof one === 'string' ? { css: one } : one, at);
    return options && { options, at, pathOf: (key) => [...at, key] };
  });
  const field = { name, path, required: false, requiredPath: path, chains: [] };
  if (!read.every((one) => one !== null)) return [field];
  const sources = shareOptions(read, faults);
  const [{ options, pathOf }] = sources as [Placed<FieldOptions>];
  // A default of an earlier source would hide the later ones.
  const chains = sources.map((source, i) =>
    readOptions(source, faults).filter(({ step }) => step.type !== 'default' || i === sources.length - 1),
  );
  const { required = false, assert } = options;
  const all = { ...field, required, requiredPath: pathOf('required'), chains };
  const asserted = assert && { assert: { value: toAssertion(assert), path: pathOf('assert') } };
  if (options.price === undefined || options.price === false) return [{ ...all, ...asserted }];
  const currencies = chains.map((chain) => currencySteps(options, chain));
  const sourceOf = chains.length > 1 ? { sourceOf: name } : {};
  return [
    { ...all, ...asserted },
    { ...all, name: `${name}_currency`, required: false, chains: currencies, ...sourceOf },
  ];
}

/** Options with the place of each in the file. */
interface Placed<Options> {
  options: Options;
  at: Path;
  pathOf: (key: string) => Path;
}

/** Every source with the options of all. */
function shareOptions(sources: readonly Placed<FieldOptions>[], faults: FaultList): Placed<FieldOptions>[] {
  const shared = new Map<string, { value: unknown; path: Path }>();
  for (const { options, pathOf } of sources) {
    for (const [key, value] of Object.entries(options)) {
      if (OF_SOURCE.has(key)) continue;
      const first = shared.get(key);
      if (!first) shared.set(key, { value, path: pathOf(key) });
      else if (!isDeepStrictEqual(first.value, value))
        for (const path of [first.path, pathOf(key)])
          faults.report(path, 'has two values: the sources of a field have their options in common');
    }
  }
  const common = Object.fromEntries([...shared].map(([key, { value }]) => [key, value]));
  return sources.map(({ options, at, pathOf }) => ({
    options: { ...options, ...common },
    at,
    pathOf: (key) => shared.get(key)?.path ?? pathOf(key),
  }));
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
  const steps = readOptions({ options: chain, at: path, pathOf: (key) => [...path, key] }, faults);
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
  return readSelect(read, path, faults)?.[0] ?? null;
}

const SELECTORS = ['css', 'xpath', 'jsonpath', 'json_ld', 'microdata'] as const;
const TYPES = ['number', 'integer', 'price', 'boolean', 'date', 'url'] as const;
const SHAPES = ['first', 'all', 'join'] as const;
/** Options of one source alone. */
const OF_SOURCE: ReadonlySet<string> = new Set([...SELECTORS, 'regex', 'attr', 'node']);
/** Options allowed beside `then`: the selecting ones and those that are no steps. */
const BESIDE_THEN = new Set([...OF_SOURCE, 'required', 'assert', 'description', 'then']);

/** The chain of these options; empty after reporting that nothing is selected. */
function readOptions(placed: Placed<ChainOptions>, faults: FaultList): PlacedStep[] {
  const { options, at, pathOf } = placed;
  const select = readSelect(options, at, faults);
  if (select === null) return [];
  if (options.then === undefined) return [...select, ...readProcess(placed, faults)];
  for (const key of Object.keys(options)) {
    if (!BESIDE_THEN.has(key)) faults.report(pathOf(key), 'with `then` it is one of its steps');
  }
  const then = options.then.map((step, i) => readShortStep(step, [...pathOf('then'), i], faults));
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

function readProcess({ options, pathOf }: Placed<ChainOptions>, faults: FaultList): PlacedStep[] {
  const steps: PlacedStep[] = [];
  const add = (key: string, step: Step): void => void steps.push({ step, path: pathOf(key) });
  const pickOne = <K extends keyof ChainOptions>(keys: readonly K[]): K[] => {
    const given = keys.filter((key) => options[key] !== undefined && options[key] !== false);
    const [, second] = given;
    if (second !== undefined) faults.report(pathOf(second), `${given.join(' and ')} exclude each other`);
    return given.slice(0, 1);
  };
  const trims = options.trim !== false;
  if (trims) add('trim', { type: 'trim' });
  for (const replacement of [options.replace ?? []].flat()) add('replace', { type: 'replace', ...replacement });
  if (options.split !== undefined) add('split', { type: 'split', by: options.split });
  // Replacing and splitting leave white space behind: `1,200 yen` without `yen`, the pieces of `a, b`.
  if (trims && (options.replace !== undefined || options.split !== undefined)) add('trim', { type: 'trim' });
  for (const key of pickOne(['lower', 'upper'])) add(key, { type: key });
  for (const key of pickOne(TYPES)) {
    if (key === 'date') add(key, dateStep(options.date));
    else if (key === 'number' || key === 'integer' || key === 'price')
      add(key, { type: key, ...stepOptions(optionsOf(options[key])) });
    else add(key, { type: key });
  }
  for (const key of pickOne(SHAPES)) {
    if (key !== 'join') add(key, { type: key });
    else if (options.join !== undefined) add(key, { type: 'join', by: options.join });
  }
  if (options.default !== undefined) add('default', { type: 'default', value: options.default });
  return steps;
}

const optionsOf = <T extends object>(option: boolean | T | undefined): T | Record<string, never> =>
  typeof option === 'object' ? option : {};

/**
 * The chain of the currency beside a price, from the options and the chain of the price. In JSON-LD and microdata the
 * currency is beside the amount, as priceCurrency; it is read from there unless the mapping names the currency.
 */
function currencySteps(options: ChainOptions, steps: readonly PlacedStep[]): PlacedStep[] {
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
