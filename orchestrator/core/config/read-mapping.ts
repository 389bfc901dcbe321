/**
 * Reads a mapping as a user writes it, in the short form or in the JSON form, into the normalised one. `fields`
 * distinguishes the forms: an object in the short form, a list in the JSON form. A file holds one mapping, a list of
 * them, or `mappings: [...]`.
 */
import { findMappingFaults, findChainFault, findStepFault } from '../../../shared/adapters/step-check.ts';
import { fieldType, type FieldType, type Mapping, RESERVED_COLUMNS } from '../../../shared/domain/mapping.ts';
import { CHAIN_FORM } from './chain-form.ts';
import { FaultList, isRecord, type MappingFault, type Path } from './faults.ts';
import { type PlacedField, type PlacedPage, type PlacedRows, readPage, stepsOf, toPageMapping } from './placed-page.ts';
import { SHORT_FORM } from './short-form.ts';
import { isDeepStrictEqual } from 'node:util';
import { describeError } from '../../../shared/domain/errors.ts';
import { readTextFile } from './text-file.ts';
import { readYaml } from './yaml-source.ts';
import type { PlacedStep } from './chain.ts';
import { misspelling } from './path-spelling.ts';

interface MappingReading {
  mapping: Mapping;
  /** The mapping is usable only without any. */
  faults: MappingFault[];
  /** Paths that find nothing on any page: a mistake, but no reason to lose a night. */
  misspelt: MappingFault[];
}

export function readMapping(value: unknown): MappingReading {
  const faults = new FaultList();
  const parts = findParts(value, faults);
  const pages = parts.flatMap(({ value: part, path }, i): PlacedPage[] => {
    if (!isRecord(part)) {
      faults.report(path, 'must be a mapping with `fields`');
      return [];
    }
    const fallbackName = parts.length === 1 ? 'mapping' : `mapping ${i + 1}`;
    const form = Array.isArray(part.fields) ? CHAIN_FORM : SHORT_FORM;
    const before = faults.all.length;
    const page = readPage(form, { value: part, path, fallbackName }, faults);
    if (page) checkPage(page, faults);
    // Refuses what an instance would refuse. A part that already has a fault is not checked again.
    if (page && faults.all.length === before)
      for (const fault of findMappingFaults({ pages: [toPageMapping(page)] })) faults.report(page.path, fault);
    return page ? [page] : [];
  });
  for (const check of [checkPageNames, checkKinds, checkOrder, checkColumns]) check(pages, faults);
  return { mapping: { pages: pages.map(toPageMapping) }, faults: faults.all, misspelt: faults.misspelt };
}

function findParts(value: unknown, faults: FaultList): { value: unknown; path: Path }[] {
  if (Array.isArray(value)) return listParts(value, [], faults);
  if (!isRecord(value) || !('mappings' in value)) return [{ value, path: [] }];
  for (const key of Object.keys(value)) {
    if (key !== 'mappings') faults.report([key], 'unknown key beside `mappings`; it goes into each of them');
  }
  if (Array.isArray(value.mappings)) return listParts(value.mappings, ['mappings'], faults);
  faults.report(['mappings'], 'must be a list of mappings');
  return [];
}

function listParts(list: readonly unknown[], path: Path, faults: FaultList): { value: unknown; path: Path }[] {
  if (list.length === 0) faults.report(path, 'must have at least one mapping');
  return list.map((value, i) => ({ value, path: [...path, i] }));
}

/** Reports identify a mapping by its name. */
function checkPageNames(pages: readonly PlacedPage[], faults: FaultList): void {
  const seen = new Set<string>();
  for (const { name, path } of pages) {
    if (seen.has(name)) faults.report([...path, 'name'], `another mapping is called ${name}, too`);
    seen.add(name);
  }
}

/** Reports pages without rows beside pages with rows, whose result table has another key. */
function checkKinds(pages: readonly PlacedPage[], faults: FaultList): void {
  const withRows = pages.find((page) => page.rows !== null);
  if (!withRows) return;
  for (const page of pages) {
    if (page.rows === null && page.fields.length > 0)
      faults.report(
        page.path,
        `must have rows, as ${withRows.name} has: one result table holds rows or products, not both`,
      );
  }
}

function checkOrder(pages: readonly PlacedPage[], faults: FaultList): void {
  const first = pages.find((page) => page.urlPatterns.length === 0);
  if (first === undefined) return;
  for (const page of pages.slice(pages.indexOf(first) + 1))
    faults.report(page.path, `is never used: ${first.name}, before it, has no url_patterns and takes every page`);
}

function checkColumns(pages: readonly PlacedPage[], faults: FaultList): void {
  const columns = new Map<string, { field: PlacedField; page: PlacedPage }>();
  for (const page of pages) {
    for (const field of page.fields) {
      const column = columns.get(field.name.toLowerCase());
      if (!column) columns.set(field.name.toLowerCase(), { field, page });
      // Two fields of one name in one mapping are reported for that mapping.
      else if (column.page !== page) checkSame(field, column, faults);
    }
  }
}

function checkSame(field: PlacedField, first: { field: PlacedField; page: PlacedPage }, faults: FaultList): void {
  if (field.name !== first.field.name)
    faults.report(field.path, `is written ${first.field.name} in ${first.page.name}; a column has one spelling`);
  if (!isDeepStrictEqual(field.assert?.value, first.field.assert?.value))
    faults.report(
      field.assert?.path ?? field.path,
      `asserts something else in ${first.page.name}; a column has one assert`,
    );
  const [type, expected] = [typeOf(field.chains[0]), typeOf(first.field.chains[0])];
  if (type === null || expected === null) return;
  if (type !== expected)
    faults.report(field.path, `gives ${type}, but in ${first.page.name} it gives ${expected}; a column has one type`);
}

/** The type of the values that a chain gives; null for a chain with a fault. */
const typeOf = (chain: readonly PlacedStep[] = []): FieldType | null =>
  chain.length === 0 ? null : fieldType({ steps: stepsOf(chain) });

export interface MappingFile {
  mapping: Mapping;
  /** One line each: `mapping.yaml line 3: fields.price.integer: must be true or false`. */
  faults: string[];
  misspelt: string[];
}

/** Throws errors of the file system. `shownAs` names the file in the faults. */
export function readMappingFile(path: string, shownAs: string): MappingFile {
  // JSON is YAML, so one reader provides line numbers for both.
  const source = readYaml(readTextFile(path));
  if (source.faults.length > 0)
    return { mapping: { pages: [] }, faults: source.faults.map((f) => `${shownAs} ${f}`), misspelt: [] };
  const { mapping, faults, misspelt } = readMapping(source.value);
  const line = ({ path, message }: MappingFault): string =>
    `${shownAs} line ${source.lineOf(path)}: ${path.join('.') || 'file'}: ${message}`;
  return { mapping, faults: faults.map(line), misspelt: misspelt.map(line) };
}

/** Why the file cannot be read, on one line. */
export function describeUnreadable(shownAs: string, error: unknown): string {
  return `cannot read the mapping ${shownAs}: ${describeError(error)}`;
}

/** The rules for one mapping in either form: names, chains, patterns, records. */
function checkPage(page: PlacedPage, faults: FaultList): void {
  checkNames(page.fields, faults);
  const inRows = page.rows !== null;
  for (const field of page.fields) checkField(field, inRows, faults);
  for (const { pattern, path } of page.urlPatterns) {
    const fault = findStepFault({ type: 'regex', pattern, group: 0 }, { first: true, inRows: false });
    if (fault !== null) faults.report(path, fault);
  }
  for (const { steps, path } of page.urlParsers) checkChain(steps, path, false, faults);
  if (page.rows) checkRows(page.rows, page.fields, faults);
}

function checkNames(fields: readonly PlacedField[], faults: FaultList): void {
  const seen = new Set<string>();
  for (const { name, path } of fields) {
    // Column names are case-insensitive in both engines.
    const column = name.toLowerCase();
    if (!/^[A-Za-z][A-Za-z0-9_]{0,63}$/.test(name))
      faults.report(path, 'a field name is a letter, then letters, digits or underscores, at most 64');
    if ((RESERVED_COLUMNS as readonly string[]).includes(column))
      faults.report(path, `the name is taken: every result table has a column ${column}`);
    if (seen.has(column)) faults.report(path, 'another field has this name, perhaps in another case');
    seen.add(column);
  }
}

function checkField(field: PlacedField, inRows: boolean, faults: FaultList): void {
  const { chains, path } = field;
  for (const chain of chains) checkChain(chain, path, inRows, faults);
  const [type, ...others] = chains.map(typeOf);
  const other = others.find((one) => one !== null && one !== type);
  if (type && other) faults.report(path, `its sources give ${type} and ${other}; a column has one type`);
  const defaults = chains.map((chain) => chain.find(({ step }) => step.type === 'default'));
  const early = defaults.slice(0, -1).find((step) => step !== undefined);
  if (early) faults.report(early.path, 'a default belongs in the last source: those after it would never count');
  if (field.assert && type) checkAssert(field.assert, type, faults);
  if (field.required && defaults.at(-1))
    faults.report(field.requiredPath, 'a field with a default always has a value; leave one of the two out');
}

function checkAssert({ value, path }: NonNullable<PlacedField['assert']>, type: FieldType, faults: FaultList): void {
  const { min, max, matches, maxChange } = value;
  const isNumber = type === 'number' || type === 'integer';
  for (const [key, limit] of Object.entries({ min, max, max_change: maxChange }))
    if (limit !== undefined && !isNumber)
      faults.report([...path, key], `is for numbers, and the column is ${type}: add number, integer or price`);
  if (matches !== undefined && type !== 'text' && type !== 'currency' && type !== 'json')
    faults.report([...path, 'matches'], `is for text, and the column is ${type}`);
  if (min !== undefined && max !== undefined && min > max) faults.report([...path, 'min'], 'is greater than max');
  const regex = { type: 'regex', pattern: matches ?? '', group: 0 } as const;
  const fault = findStepFault(regex, { first: true, inRows: false });
  if (fault !== null) faults.report([...path, 'matches'], fault);
}

/** Reports faults of single steps at their own position; only without any, those of the chain as a whole. */
function checkChain(steps: readonly PlacedStep[], path: Path, inRows: boolean, faults: FaultList): void {
  for (const [i, { step, path }] of steps.entries()) {
    const message = step.type === 'json_ld' || step.type === 'microdata' ? misspelling(step.path, i === 0) : null;
    if (message !== null) faults.misspelt.push({ path, message });
  }
  if (steps.length === 0) return;
  const found = steps.map(({ step, path }, i) => ({ path, fault: findStepFault(step, { first: i === 0, inRows }) }));
  if (found.every(({ fault }) => fault === null)) found.push({ path, fault: findChainFault(stepsOf(steps), inRows) });
  for (const { path, fault } of found) if (fault !== null) faults.report(path, fault);
}

function checkRows(rows: PlacedRows, fields: readonly PlacedField[], faults: FaultList): void {
  checkRecordSelector(rows.each, faults);
  if (rows.empty) checkRecordSelector(rows.empty, faults);
  const key = fields.find((field) => field.name === rows.key);
  if (!key) faults.report([...rows.path, 'key'], `must be one of the fields: ${fields.map((f) => f.name).join(', ')}`);
  else if (key.chains.flat().some(({ step }) => step.type === 'all'))
    faults.report([...rows.path, 'key'], `${rows.key} is a list; a key is one value`);
}

function checkRecordSelector({ step, path }: PlacedStep, faults: FaultList): void {
  if (step.type !== 'css' && step.type !== 'xpath' && step.type !== 'jsonpath') {
    faults.report(path, 'must be css, xpath or jsonpath');
    return;
  }
  if (step.type === 'css' && step.attribute !== undefined)
    faults.report(path, 'selects elements, not an attribute of them');
  const fault = findStepFault(step, { first: true, inRows: false });
  if (fault !== null) faults.report(path, fault);
}
