/**
 * Finds faults in the steps of a mapping, each a one-line message for the user. The caller passes in the libraries'
 * checks, so that an instance loads only those of its own steps; step-check.ts has them all.
 */
import { isCurrencyCode } from '../domain/currencies.ts';
import { chainsOf, fieldType, type FieldType, isSelectStep, type PageMapping, type Step } from '../domain/mapping.ts';
import { findSelectorFault, readSelector } from './selector-check.ts';
import { findXPathFault } from './xpath/parse-xpath.ts';

export interface StepChecks {
  findPatternFault: (pattern: string, group?: number) => string | null;
  findJsonPathFault: (expression: string) => string | null;
  findDateFault: (reading: { format: string | null; locale: string | null }) => string | null;
}

/** The position of a step: whether it is first in its chain, and in a field of a mapping with rows. */
export interface StepLocation {
  first: boolean;
  inRows: boolean;
}

/** The fault of one step; null when it is usable. */
export function findFaultOfStep(step: Step, location: StepLocation, checks: StepChecks): string | null {
  if (location.first && !isSelectStep(step))
    return `the first step must select something from the page (css, xpath, json_ld, microdata, jsonpath or regex); ${step.type} does not`;
  switch (step.type) {
    case 'css':
      return findSelectorFault(step.selector, location.first && location.inRows);
    case 'xpath':
      return findXPathFault(step.expression);
    case 'jsonpath':
      return checks.findJsonPathFault(step.expression);
    case 'json_ld':
    case 'microdata':
      return step.path.split('.').includes('') ? `the path ${JSON.stringify(step.path)} has an empty name in it` : null;
    case 'regex':
      return checks.findPatternFault(step.pattern, step.group);
    case 'date':
      return checks.findDateFault(step);
    case 'price':
    case 'currency':
      return step.currency === undefined || isCurrencyCode(step.currency)
        ? null
        : `${JSON.stringify(step.currency)} is not an ISO 4217 currency code such as EUR`;
    default:
      return null;
  }
}

/** The fault of a chain as a whole or of its first faulty step; null when it is usable. */
export function findFaultOfChain(steps: readonly Step[], inRows: boolean, checks: StepChecks): string | null {
  if (steps.length === 0) return 'the chain is empty; its first step must select something from the page';
  for (const [i, step] of steps.entries()) {
    const fault = findFaultOfStep(step, { first: i === 0, inRows }, checks) ?? findDefaultFault(steps, step, i);
    if (fault !== null) return fault;
  }
  return null;
}

/** A default that no later step converts must have the column's type. */
function findDefaultFault(steps: readonly Step[], step: Step, at: number): string | null {
  if (step.type !== 'default') return null;
  if (steps.slice(at + 1).some(changesType)) return null;
  const type = fieldType({ steps: steps.slice(0, at).filter(({ type }) => type !== 'all') });
  const [wanted, fits] = WANTED[type];
  return fits(step.value)
    ? null
    : `the default ${JSON.stringify(step.value)} does not fit the column, which needs ${wanted}`;
}

function changesType(step: Step): boolean {
  return !['trim', 'first', 'all', 'default'].includes(step.type);
}

const isText = (value: unknown): value is string => typeof value === 'string';
const isTime = (value: unknown, form: RegExp): boolean =>
  isText(value) && form.test(value) && !Number.isNaN(Date.parse(value));

const WANTED: Record<FieldType, [name: string, fits: (value: unknown) => boolean]> = {
  text: ['text (write it in quotes)', isText],
  number: ['a number', Number.isFinite],
  integer: ['a whole number', Number.isSafeInteger],
  boolean: ['true or false', (value) => typeof value === 'boolean'],
  date: ['a date such as 2026-11-21', (value) => isTime(value, /^\d{4}-\d\d-\d\d$/)],
  datetime: [
    'a date and time such as 2026-11-21T09:30:00',
    (value) => isTime(value, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d$/),
  ],
  json: ['text', isText],
  currency: ['a currency such as EUR', (value) => isText(value) && isCurrencyCode(value)],
};

/** All faults of a page mapping, each with its location. */
export function findFaultsOfPage(page: PageMapping, checks: StepChecks): string[] {
  const faults: string[] = [];
  const add = (location: string, fault: string | null): void => {
    if (fault !== null) faults.push(`${location}: ${fault}`);
  };
  for (const pattern of page.urlPatterns) add('url_patterns', checks.findPatternFault(pattern));
  for (const { description, steps } of page.urlParsers)
    add(`url_parsers ${JSON.stringify(description)}`, findFaultOfChain(steps, false, checks));
  if (page.rows) for (const fault of findFaultsOfRows(page.rows, page.fields, checks)) add('rows', fault);
  for (const field of page.fields) {
    for (const steps of chainsOf(field))
      add(`field ${field.name}`, findFaultOfChain(steps, page.rows !== null, checks) ?? findRecordFault(page, steps));
  }
  return faults;
}

function findFaultsOfRows(
  { each, empty, key }: NonNullable<PageMapping['rows']>,
  fields: PageMapping['fields'],
  checks: StepChecks,
): string[] {
  const outside = { first: true, inRows: false };
  const faults = [findFaultOfStep(each, outside, checks), empty && findFaultOfStep(empty, outside, checks)];
  if (!['css', 'xpath', 'jsonpath'].includes(each.type))
    faults.push(`each must be css, xpath or jsonpath, not ${each.type}`);
  if (each.type === 'css' && each.attribute !== undefined)
    faults.push('each selects elements; an attribute has no meaning here');
  const keyField = fields.find(({ name }) => name === key);
  if (!keyField) faults.push(`key names the field ${JSON.stringify(key)}, which does not exist`);
  else if (fieldType(keyField) === 'json') faults.push(`the key ${JSON.stringify(key)} must be one value, not a list`);
  return faults.filter((fault) => fault !== null);
}

/** A field that expects another kind of record than the mapping's would never have a value. */
function findRecordFault({ rows }: PageMapping, steps: readonly Step[]): string | null {
  const first = steps[0]!.type;
  if (!rows) return null;
  const inJson = rows.each.type === 'jsonpath';
  if (inJson && (first === 'css' || first === 'xpath'))
    return `${first} finds nothing in records that are JSON; use jsonpath`;
  if (!inJson && first === 'jsonpath')
    return 'jsonpath finds nothing in records that are elements; begin with css or xpath';
  return null;
}

/**
 * Why the step needs the page as a tree; null when it is matched while the page streams. Only first steps read the
 * page; others read small texts.
 */
export function needsDom(step: Step): string | null {
  if (step.type === 'xpath') return 'xpath';
  if (step.type !== 'css') return null;
  const reading = readSelector(step.selector);
  return reading.kind === 'tree' ? reading.why : null;
}
