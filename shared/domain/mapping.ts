/**
 * A mapping says which values of a page become which columns. This is the normalised form that both sides use: a field
 * is a chain of steps. The YAML and JSON forms are read elsewhere.
 *
 * A chain works on a list of values. Its first step selects from the page; each further one works on every value of the
 * list. A selecting step that is not the first reads each value's text as HTML (css, xpath) or JSON (jsonpath, json_ld).
 *
 * How many values: a chain without `first`, `all`, `join` and `split` goes on with the first value selected, whatever
 * becomes of it. With one of them every selected value goes through; a value that a step can make nothing of is left
 * out; and at the end the first one left is the field's value, or with `all` the whole list is.
 */
import type { DecimalMark } from './currencies.ts';
import type { UnreadNumber } from './unread-number.ts';

/** Steps that select: from the page as the first step, from each value's text elsewhere. */
export type SelectStep =
  /** All elements matching the CSS selector; their text, or the named attribute of each. */
  | { type: 'css'; selector: string; attribute?: string }
  /** XPath 1.0: text of the nodes, or the string, number or boolean that the expression gives. */
  | { type: 'xpath'; expression: string }
  /** Values at a dotted path in any JSON-LD block: `offers.price`, `@graph.0.name`. Arrays are walked through. */
  | { type: 'json_ld'; path: string }
  /** JSONPath (RFC 9535) in a page or value that is JSON. Objects come out as JSON text. */
  | { type: 'jsonpath'; expression: string }
  /** RE2 syntax, in the source of the page or in the value: every match, or the numbered group of it (0: the whole match). */
  | { type: 'regex'; pattern: string; group: number };

/** Steps that take values and give values. */
export type Processor =
  | { type: 'trim' | 'lower' | 'upper' | 'boolean' }
  /** Without `decimal` currency and form decide, and where they do not, the whole column. */
  | { type: 'number' | 'integer'; decimal?: DecimalMark }
  /** The amount of a price; `currency` is that of amounts without one of their own. */
  | { type: 'price'; decimal?: DecimalMark; currency?: string }
  /** The ISO 4217 code of a price; `currency` where the text does not tell it. */
  | { type: 'currency'; currency?: string }
  /** Every occurrence of the text `find`. */
  | { type: 'replace'; find: string; with: string }
  /** Luxon tokens such as `yyyy-MM-dd HH:mm`; null reads ISO 8601. Gives `2026-11-21`, or `2026-11-21T09:30:00` when the format has a time. */
  | { type: 'date'; format: string | null; locale: string | null }
  | { type: 'split'; by: string }
  | { type: 'join'; by: string }
  | { type: 'first' }
  /** Keep every value as a JSON array. */
  | { type: 'all' }
  /** Stands in when no value is left. */
  | { type: 'default'; value: string | number | boolean }
  /** The absolute form of a link, by the page's own URL and its <base>. */
  | { type: 'url' };

export type Step = SelectStep | Processor;
export type StepType = Step['type'];

export const SELECT_STEPS = ['css', 'xpath', 'json_ld', 'jsonpath', 'regex'] as const;

export function isSelectStep(step: Step): step is SelectStep {
  return (SELECT_STEPS as readonly string[]).includes(step.type);
}

export interface Field {
  /** Column name: a letter, then letters, digits and underscores; at most 64 characters. */
  name: string;
  /** At least one; the first one selects. */
  steps: Step[];
  /** Without a value the product is not stored but failed(parse); with `rows`, the row is left out. */
  required: boolean;
}

/** A page that holds many records, one row of the result table each. */
export interface Rows {
  /** Selects the records (css, xpath or jsonpath); the css, xpath and jsonpath steps that begin a field look inside one record only. */
  each: SelectStep;
  /** The field whose value tells the records of one product apart: the column row_key. */
  key: string;
  /** Found only on pages that rightly have no record ("no reviews yet"). A page with neither records nor this is failed(parse): it may be a ban. */
  empty: SelectStep | null;
}

/** Gives addresses of further pages of the same product, such as the next page of its reviews. */
export interface UrlParser {
  description: string;
  steps: Step[];
}

export interface PageMapping {
  name: string;
  /** RE2 patterns found anywhere in the URL; the mapping is for URLs that one of them fits. None: for every URL. */
  urlPatterns: string[];
  urlParsers: UrlParser[];
  rows: Rows | null;
  fields: Field[];
}

export interface Mapping {
  /** The first one that fits the URL is used; a URL that none fits is failed(parse). Either all of them have `rows` or none. */
  pages: PageMapping[];
}

/** The type of a field's column in the result table. */
export type FieldType = 'text' | 'number' | 'integer' | 'boolean' | 'date' | 'datetime' | 'json' | 'currency';

export interface Column {
  name: string;
  type: FieldType;
}

export type Scalar = string | number | boolean;
/** What goes through a chain: a number may be one that only the whole column decides. */
export type ChainValue = Scalar | UnreadNumber;
/** What a page gives for a field: null where there is no value. */
export type FieldValue = ChainValue | null | ChainValue[];
export type Row = Record<string, FieldValue>;
/** By field: the decimal mark that the text of its number shows beyond doubt. */
export type ShownMarks = Record<string, DecimalMark>;

/** One row of the result table; `key` is null unless the mapping has `rows`. */
export interface KeyedRow {
  key: string | null;
  row: Row;
  /** Left out where no text shows one. */
  marks?: ShownMarks;
}

/** Columns every result table has; a field cannot take their names. */
export const RESERVED_COLUMNS = ['product_id', 'row_key', 'run_id', 'url', 'crawled_at'] as const;

/** The column type a field's chain leads to. */
export function fieldType(field: Pick<Field, 'steps'>): FieldType {
  if (field.steps.some((step) => step.type === 'all')) return 'json';
  let type: FieldType = 'text';
  for (const step of field.steps) {
    if (step.type === 'number' || step.type === 'integer' || step.type === 'boolean') type = step.type;
    else if (step.type === 'price') type = 'number';
    else if (step.type === 'currency') type = 'currency';
    else if (step.type === 'date') type = hasTime(step.format) ? 'datetime' : 'date';
    else if (isSelectStep(step) || ['lower', 'upper', 'replace', 'split', 'join', 'url'].includes(step.type))
      type = 'text';
  }
  return type;
}

/** Luxon's tokens for the time of day, outside quoted literals. */
function hasTime(format: string | null): boolean {
  return format !== null && /[HhmsSatTfF]/.test(format.replaceAll(/'[^']*'/g, ''));
}

/** The columns of all mappings together, each once, in the order in which they are first named. */
export function columnsOf(mapping: Mapping): Column[] {
  const columns = new Map<string, Column>();
  for (const { fields } of mapping.pages) {
    for (const field of fields) {
      const key = field.name.toLowerCase();
      if (!columns.has(key)) columns.set(key, { name: field.name, type: fieldType(field) });
    }
  }
  return [...columns.values()];
}

/** Whether the field reads numbers out of text: they may be unread until the whole column is known. */
export function readsNumbers({ steps }: Pick<Field, 'steps'>): boolean {
  return steps.some(({ type }) => type === 'number' || type === 'integer' || type === 'price');
}

/** True for values of attributes, JSON and JSON-LD, where a plain number has the point. By the last step that selects; what a pattern cuts out of a value is as its source is. */
export function isMachineRead(steps: readonly Step[]): boolean {
  const last = steps.filter(isSelectStep).findLast(({ type }) => type !== 'regex');
  switch (last?.type) {
    case 'json_ld':
    case 'jsonpath':
      return true;
    case 'css':
      return last.attribute !== undefined;
    case 'xpath':
      return /(?:@|attribute::)[\w:.-]+\s*$/.test(last.expression);
    default:
      return false;
  }
}

/** True when one product may have many rows, told apart by row_key. */
export function hasRows(mapping: Mapping): boolean {
  return mapping.pages.some((page) => page.rows !== null);
}
