/** Builds mappings and runs pages through the extractor, for table tests. */
import type { Field, FieldValue, Mapping, PageMapping, Processor, Step } from '../../../shared/domain/mapping.ts';
import { compileMapping, type CompileOptions } from '../../../crawl-api/extract/compile-mapping.ts';
import { type Extraction, PageExtractor, type PageKind } from '../../../crawl-api/extract/page-extractor.ts';

export const PAGE_URL = 'https://shop.example/p/1?x=1';

export interface FieldChanges {
  name?: string;
  required?: boolean;
  attribute?: string;
  /** Default: [{ type: 'trim' }] for css, none for others. */
  process?: Processor[];
}

export function field(steps: Step[], changes: Pick<Field, 'name'> | object = {}): Field {
  return { name: 'value', required: false, ...changes, steps };
}

export function cssField(selector: string, changes: FieldChanges = {}): Field {
  const { attribute, process = [{ type: 'trim' }], ...rest } = changes;
  const first = { type: 'css' as const, selector, ...(attribute === undefined ? {} : { attribute }) };
  return field([first, ...process], rest);
}

export function jsonField(path: string, changes: FieldChanges = {}): Field {
  const { process = [], name = 'value', required = false } = changes;
  return { name, required, steps: [{ type: 'json_ld', path }, ...process] };
}

export function pageMapping(changes: Partial<PageMapping>): PageMapping {
  return { name: 'page', urlPatterns: [], urlParsers: [], rows: null, fields: [], ...changes };
}

export interface ExtractOptions extends CompileOptions {
  kind?: PageKind;
  url?: string;
  /** Length of the pieces in which the page is fed, in characters. */
  piece?: number;
}

/** The extraction of a page by a whole mapping. */
export async function extractBy(mapping: Mapping, page: string, options: ExtractOptions = {}): Promise<Extraction> {
  const { kind = 'html', url = PAGE_URL, piece = 100_000, ...compileOptions } = options;
  const extractor = new PageExtractor(await compileMapping(mapping, compileOptions), kind, url);
  for (let at = 0; at < page.length; at += piece) extractor.write(page.slice(at, at + piece));
  return extractor.end();
}

/** The extraction of a page by a plain mapping of these fields. */
export async function extract(fields: Field[], page: string, options: ExtractOptions = {}): Promise<Extraction> {
  return extractBy({ pages: [pageMapping({ fields })] }, page, options);
}

/** The value of one field. */
export async function valueOf(one: Field, page: string, options: ExtractOptions = {}): Promise<FieldValue | undefined> {
  return (await extract([one], page, options)).rows?.[0]?.row[one.name];
}

/** The value of a chain. */
export async function valueBy(
  steps: Step[],
  page: string,
  options: ExtractOptions = {},
): Promise<FieldValue | undefined> {
  return valueOf(field(steps), page, options);
}

export const ALL: Processor[] = [{ type: 'trim' }, { type: 'all' }];
export const numberStep: Processor[] = [{ type: 'number' }];
export const integerStep: Processor[] = [{ type: 'integer' }];

export const css = (selector: string, attribute?: string) => ({
  type: 'css' as const,
  selector,
  ...(attribute === undefined ? {} : { attribute }),
});
export const xpath = (expression: string) => ({ type: 'xpath' as const, expression });
export const jsonpath = (expression: string) => ({ type: 'jsonpath' as const, expression });
export const regex = (pattern: string, group: number) => ({ type: 'regex' as const, pattern, group });
export const split = (by: string) => ({ type: 'split' as const, by });
export const join = (by: string) => ({ type: 'join' as const, by });
/** Steps without settings. */
export const step = {
  all: { type: 'all' },
  trim: { type: 'trim' },
  first: { type: 'first' },
  integer: { type: 'integer' },
  number: { type: 'number' },
  boolean: { type: 'boolean' },
  lower: { type: 'lower' },
  upper: { type: 'upper' },
} as const;
