/** Builds mappings and runs pages through the extractor, for the tables in these tests. */
import type { Field, FieldValue, Mapping, Processor } from '../../../shared/domain/mapping.ts';
import { compileMapping } from '../../../crawl-api/extract/compile-mapping.ts';
import type { Extraction, PageKind } from '../../../crawl-api/extract/page-extractor.ts';
import { PageExtractor } from '../../../crawl-api/extract/page-extractor.ts';

export function cssField(selector: string, changes: Partial<Field> & { attribute?: string } = {}): Field {
  const { attribute, ...rest } = changes;
  const select = { type: 'css' as const, selector, ...(attribute === undefined ? {} : { attribute }) };
  return { name: 'value', select, process: [{ type: 'trim' }], all: false, required: false, ...rest };
}

export function jsonField(path: string, changes: Partial<Field> = {}): Field {
  return { name: 'value', select: { type: 'json_ld', path }, process: [], all: false, required: false, ...changes };
}

/** The extraction of a page, given to the extractor in pieces of `piece` characters. */
export function extract(fields: Field[], page: string, kind: PageKind = 'html', piece = 100_000): Extraction {
  const mapping: Mapping = { fields };
  const extractor = new PageExtractor(compileMapping(mapping), kind);
  for (let at = 0; at < page.length; at += piece) extractor.write(page.slice(at, at + piece));
  return extractor.end();
}

/** The value of one field. */
export function valueOf(field: Field, page: string, kind: PageKind = 'html', piece?: number): FieldValue | undefined {
  return extract([field], page, kind, piece).row?.[field.name];
}

export const numberStep: Processor[] = [{ type: 'number' }];
export const integerStep: Processor[] = [{ type: 'integer' }];
