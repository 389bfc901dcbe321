/**
 * The short YAML form of a mapping into the normalised one. A field is a CSS selector, or an object with one
 * selector and what to do with its values.
 */
import type { Field, Mapping, Processor, Selector } from '../../../shared/domain/mapping.ts';
import { RESERVED_COLUMNS } from '../../../shared/domain/mapping.ts';
import { findSelectorFault } from '../../../shared/adapters/selector-check.ts';

/** Selectors and options of the contract that this version cannot do; a clear word beats "unknown key". */
const LATER = [
  'xpath',
  'jsonpath',
  'regex',
  'default',
  'date',
  'replace',
  'then',
  'split',
  'join',
  'lower',
  'upper',
  'boolean',
  'url',
  'first',
];
const OPTIONS = ['css', 'json_ld', 'attr', 'all', 'required', 'trim', 'number', 'integer'];

export interface MappingFault {
  path: (string | number)[];
  message: string;
}

/** Reads the mapping and lists every fault in it; `mapping` is usable only when there are none. */
export function readMapping(value: unknown): { mapping: Mapping; faults: MappingFault[] } {
  const faults: MappingFault[] = [];
  const mapping: Mapping = { fields: [] };
  if (!isRecord(value)) return { mapping, faults: [{ path: [], message: 'must be a mapping with `fields`' }] };
  for (const key of Object.keys(value)) {
    if (key === 'fields') continue;
    const known = ['rows', 'url_patterns', 'url_parsers', 'name'].includes(key);
    faults.push({ path: [key], message: known ? 'is not available in this version' : 'unknown key' });
  }
  if (!isRecord(value.fields) || Object.keys(value.fields).length === 0) {
    faults.push({ path: ['fields'], message: 'must have at least one field: `title: "h1"`' });
    return { mapping, faults };
  }
  const seen = new Set<string>();
  for (const [name, form] of Object.entries(value.fields)) {
    const report = (message: string, ...more: string[]) => faults.push({ path: ['fields', name, ...more], message });
    if (!/^[A-Za-z][A-Za-z0-9_]{0,63}$/.test(name))
      report('a field name is a letter, then letters, digits or underscores, at most 64');
    if ((RESERVED_COLUMNS as readonly string[]).includes(name.toLowerCase()))
      report(`the name is taken: every result table has a column ${name.toLowerCase()}`);
    // Column names are case-insensitive in both engines.
    if (seen.has(name.toLowerCase())) report('another field has this name in other letters');
    seen.add(name.toLowerCase());
    const field = readField(name, form, report);
    if (field) mapping.fields.push(field);
  }
  return { mapping, faults };
}

function readField(name: string, form: unknown, report: (message: string, ...path: string[]) => void): Field | null {
  const options: Record<string, unknown> | null =
    typeof form === 'string' ? { css: form } : isRecord(form) ? form : null;
  if (!options) {
    report('must be a CSS selector or an object such as { css: ".price", attr: data-value, integer: true }');
    return null;
  }
  for (const key of Object.keys(options)) {
    if (LATER.includes(key)) report('is not available in this version', key);
    else if (!OPTIONS.includes(key)) report('unknown key', key);
  }
  for (const key of ['all', 'required', 'trim', 'number', 'integer']) {
    if (options[key] !== undefined && typeof options[key] !== 'boolean') report('must be true or false', key);
  }
  if (options.number === true && options.integer === true) report('number and integer exclude each other', 'integer');
  const select = readSelector(options, report);
  if (!select) return null;
  const process: Processor[] = [];
  if (options.trim !== false) process.push({ type: 'trim' });
  if (options.number === true) process.push({ type: 'number' });
  if (options.integer === true) process.push({ type: 'integer' });
  return { name, select, process, all: options.all === true, required: options.required === true };
}

function readSelector(
  options: Record<string, unknown>,
  report: (message: string, ...path: string[]) => void,
): Selector | null {
  const { css, json_ld: jsonLd, attr } = options;
  if ((css === undefined) === (jsonLd === undefined)) {
    report('must have exactly one of css and json_ld');
    return null;
  }
  if (jsonLd !== undefined) {
    if (attr !== undefined) report('goes with css only', 'attr');
    if (typeof jsonLd === 'string' && jsonLd !== '') return { type: 'json_ld', path: jsonLd };
    report('must be a path such as offers.price', 'json_ld');
    return null;
  }
  if (attr !== undefined && (typeof attr !== 'string' || attr === ''))
    report('must be the name of an attribute', 'attr');
  if (typeof css !== 'string' || css.trim() === '') {
    report('must be a CSS selector', 'css');
    return null;
  }
  const fault = findSelectorFault(css);
  if (fault) report(fault, 'css');
  return { type: 'css', selector: css, ...(typeof attr === 'string' ? { attribute: attr } : {}) };
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
