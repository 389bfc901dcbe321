/**
 * A mapping says which values of a page become which columns. This is the normalised form that both sides use: a field
 * is a chain of steps, the first of which selects and the rest of which process. The YAML forms are read elsewhere.
 */

/** Steps that take the page and give values. */
export type Selector =
  /** All elements matching the CSS selector; their text, or the named attribute of each. */
  | { type: 'css'; selector: string; attribute?: string }
  /** Values at a dotted path in any JSON-LD block: `offers.price`, `@graph.0.name`. Arrays are walked through. */
  | { type: 'json_ld'; path: string };

/** Steps that take values and give values. */
export type Processor = { type: 'trim' } | { type: 'number' } | { type: 'integer' };

/** The type of a field's column in the result table. */
export type FieldType = 'text' | 'number' | 'integer' | 'json';

export interface Field {
  /** Column name: a letter, then letters, digits and underscores; at most 64 characters. */
  name: string;
  select: Selector;
  process: Processor[];
  /** Keep every value as a JSON array instead of the first. */
  all: boolean;
  /** Without a value the product is not stored but failed(parse). */
  required: boolean;
}

export interface Mapping {
  fields: Field[];
}

/** What a page gives for a mapping: one value per field, null where there is none. */
export type FieldValue = string | number | null | (string | number)[];
export type Row = Record<string, FieldValue>;

/** Columns every result table has; a field cannot take their names. */
export const RESERVED_COLUMNS = ['product_id', 'row_key', 'run_id', 'url', 'crawled_at'] as const;

/** The column type a field's chain leads to. */
export function fieldType(field: Field): FieldType {
  if (field.all) return 'json';
  let type: FieldType = 'text';
  for (const step of field.process) {
    if (step.type === 'number') type = 'number';
    else if (step.type === 'integer') type = 'integer';
  }
  return type;
}
