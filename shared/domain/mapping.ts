/**
 * A mapping defines which values of a page become which columns. This is the normalised form that both sides use: a
 * field is a chain of steps. Other files parse the YAML and JSON forms.
 *
 * A chain works on a list of values. Its first step selects from the page; each further one works on every value of the
 * list. A selecting step that is not the first reads each value's text as HTML (css, xpath, microdata) or JSON
 * (jsonpath, json_ld).
 *
 * How many values: a chain without `first`, `all`, `join` and `split` continues with only the first selected value,
 * even if it fails later. With one of them every selected value passes through the chain; values that a step cannot
 * process are dropped; at the end the first remaining value is the field's value, or with `all` the whole list.
 *
 * A field may have several sources, each with a chain. The first one that yields something gives the value. White space
 * is nothing, and so is a number that only the whole column decides; if all yield nothing, the first such number stays.
 */
import type { RequestTemplate } from './request-template.ts';
import type { DecimalMark } from './currencies.ts';
import type { AmbiguousNumber } from './ambiguous-number.ts';

/**
 * Number of the rules by which pages are read. Raise it with any change after which a page may give other values under
 * the same mapping: stored rows are then compared with pages that were read again, never with an answer 304.
 */
export const READING_RULES = 2;

/** Steps that select: from the page as the first step, from each value's text elsewhere. */
export type SelectStep =
  /** All elements matching the CSS selector; their text, or the named attribute of each. */
  | { type: 'css'; selector: string; attribute?: string }
  /** XPath 1.0: text of the nodes, or the string, number or boolean that the expression gives. */
  | { type: 'xpath'; expression: string }
  /**
   * Values at a dotted path in the JSON-LD or the microdata of the page: `offers.price`, `@graph.0.name`. Arrays are
   * traversed. Read from the page's product; `node` names another type.
   */
  | { type: 'json_ld' | 'microdata'; path: string; node?: string }
  /** JSONPath (RFC 9535) in a page or value that is JSON. Objects become JSON text. */
  | { type: 'jsonpath'; expression: string }
  /**
   * RE2 syntax, in the source of the page or in the value: every match, or the numbered group of it (0: the whole
   * match).
   */
  | { type: 'regex'; pattern: string; group: number };

/** Steps that transform values. */
export type Processor =
  | { type: 'trim' | 'lower' | 'upper' | 'boolean' }
  /** A number; without `decimal`, currency and format decide the decimal mark, and otherwise the whole column. */
  | { type: 'number' | 'integer'; decimal?: DecimalMark }
  /** The amount of a price; `currency` applies to amounts that show none. */
  | { type: 'price'; decimal?: DecimalMark; currency?: string }
  /** The ISO 4217 code of a price; `currency` where the text shows none. */
  | { type: 'currency'; currency?: string }
  /** Every occurrence of the text `find`. */
  | { type: 'replace'; find: string; with: string }
  /**
   * Luxon tokens such as `yyyy-MM-dd HH:mm`; null means ISO 8601. Yields `2026-11-21`, or `2026-11-21T09:30:00` when
   * the format has a time.
   */
  | { type: 'date'; format: string | null; locale: string | null }
  | { type: 'split'; by: string }
  | { type: 'join'; by: string }
  | { type: 'first' }
  /** Keep every value as a JSON array. */
  | { type: 'all' }
  /** The value that is used when none is left. */
  | { type: 'default'; value: string | number | boolean }
  /** The absolute form of a link, resolved against the page's URL and its <base>. */
  | { type: 'url' };

export type Step = SelectStep | Processor;

const SELECT_STEPS = ['css', 'xpath', 'json_ld', 'microdata', 'jsonpath', 'regex'] as const;

export function isSelectStep(step: Step): step is SelectStep {
  return (SELECT_STEPS as readonly string[]).includes(step.type);
}

/** What a field's value must be to be stored. A list holds when each of its values does; no value breaks nothing. */
export interface Assertion {
  /** Inclusive; of numbers. */
  min?: number;
  max?: number;
  /** RE2 pattern that matches somewhere in the text. */
  matches?: string;
  oneOf?: Scalar[];
  /** The largest change of a number, as a share of the one in the row that stands. Without one, or from zero, any. */
  maxChange?: number;
  /**
   * What becomes of a value that breaks it: it is left out, and of a required field the product fails; the product
   * fails; or the whole run is held.
   */
  else: 'empty' | 'fail' | 'hold';
}

export interface Field {
  /** Column name: a letter, then letters, digits and underscores; at most 64 characters. */
  name: string;
  /** The chain of the first source: at least one step; the first one selects. */
  steps: Step[];
  /** The chains of further sources, in order, all of the same type; only the last one may have a default. */
  fallbacks?: Step[][];
  /** Name of an earlier field: this one is read from the source that gave the other's value, as a currency is. */
  sourceOf?: string;
  /** True where a product without a value becomes failed(parse); with `rows`, the row is dropped. */
  required: boolean;
  /** The assertion, which the main server judges. */
  assert?: Assertion;
}

/** The chain of each source, in order. */
export function chainsOf({ steps, fallbacks = [] }: Pick<Field, 'steps' | 'fallbacks'>): Step[][] {
  return [steps, ...fallbacks];
}

/** True for a field that has a value on every page. */
export function hasDefault(field: Pick<Field, 'steps' | 'fallbacks'>): boolean {
  return chainsOf(field).some((steps) => steps.some(({ type }) => type === 'default'));
}

/** A page with many records, each a row of the result table. */
export interface Rows {
  /**
   * Selects the records (css, xpath or jsonpath); css, xpath and jsonpath steps that begin a field search only inside
   * one record.
   */
  each: SelectStep;
  /** The field whose value identifies a record within its product: the column row_key. */
  key: string;
  /**
   * Matches only pages that legitimately have no record ("no reviews yet"). A page with neither is failed(parse): it
   * may be a ban.
   */
  empty: SelectStep | null;
}

/** Maximum links of one page. */
export const MAX_LINKS = 1_000;

/**
 * Yields URLs of further pages of the same product, such as the next page of its reviews; in a discovery, what to
 * crawl.
 */
interface UrlParser {
  description: string;
  steps: Step[];
}

export interface PageMapping {
  name: string;
  /**
   * RE2 patterns matched anywhere in the URL; the mapping applies to URLs that match one of them. None: to every URL.
   */
  urlPatterns: string[];
  /** How its pages are requested; omitted: products as `site.request` says, further pages by GET. */
  request?: RequestTemplate;
  urlParsers: UrlParser[];
  rows: Rows | null;
  fields: Field[];
}

export interface Mapping {
  /**
   * The first match for the URL is used; without a match the product is failed(parse). Either all have `rows` or none.
   */
  pages: PageMapping[];
}

/** The type of a field's column in the result table. */
export type FieldType = 'text' | 'number' | 'integer' | 'boolean' | 'date' | 'datetime' | 'json' | 'currency';

export interface Column {
  name: string;
  type: FieldType;
}

export type Scalar = string | number | boolean;
/** A value in a chain; a number may be one that only the whole column decides. */
export type ChainValue = Scalar | AmbiguousNumber;
/** A page's value for a field; null where there is none. */
export type FieldValue = ChainValue | null | ChainValue[];
export type Row = Record<string, FieldValue>;
/** The decimal mark that the text of a number shows unambiguously, by field. */
export type ShownMarks = Record<string, DecimalMark>;

/** One row of the result table; `key` is null unless the mapping has `rows`. */
export interface KeyedRow {
  key: string | null;
  row: Row;
  /** The marks that texts show; left out where none does. */
  marks?: ShownMarks;
}

/** Columns every result table has; a field cannot take their names. */
export const RESERVED_COLUMNS = ['product_id', 'row_key', 'run_id', 'url', 'crawled_at'] as const;

/** The column type that results from a field's chain. */
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

/** Whether the field parses numbers from text: they may be ambiguous until the whole column is known. */
export function readsNumbers({ steps }: Pick<Field, 'steps'>): boolean {
  return steps.some(({ type }) => type === 'number' || type === 'integer' || type === 'price');
}

/**
 * True for values of attributes, JSON and JSON-LD, where a plain number uses the point. Decided by the last selecting
 * step; a pattern's match is treated like its source. Of microdata each value shows it: this is false.
 */
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

/** True when one product may have many rows, identified by row_key. */
export function hasRows(mapping: Mapping): boolean {
  return mapping.pages.some((page) => page.rows !== null);
}
