/** Tests whether a page yielded any values. */
import type { Extraction } from './page-extractor.ts';

/** True when at least one value was found on the page, or its list of records is rightly empty. */
export function hasValues(extraction: Extraction): boolean {
  return (
    extraction.rows !== null &&
    extraction.onlyDefaults !== true &&
    (extraction.rows.length === 0 || extraction.rows.some(({ row }) => Object.values(row).some(isValue)))
  );
}

const isValue = (value: unknown): boolean =>
  value !== null && value !== undefined && !(Array.isArray(value) && value.length === 0);
