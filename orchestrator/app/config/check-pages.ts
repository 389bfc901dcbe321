/** The rules across the mappings of one file: they share one result table. */
import { fieldType } from '../../../shared/domain/mapping.ts';
import type { FaultList } from './faults.ts';
import type { PlacedField, PlacedPage } from './placed-page.ts';

export function checkPages(pages: readonly PlacedPage[], faults: FaultList): void {
  checkNames(pages, faults);
  checkRows(pages, faults);
  checkOrder(pages, faults);
  checkColumns(pages, faults);
}

/** Reports identify a mapping by its name. */
function checkNames(pages: readonly PlacedPage[], faults: FaultList): void {
  const seen = new Set<string>();
  for (const { name, path } of pages) {
    if (seen.has(name)) faults.report([...path, 'name'], `another mapping is called ${name}, too`);
    seen.add(name);
  }
}

/** With rows the result table has another key. */
function checkRows(pages: readonly PlacedPage[], faults: FaultList): void {
  const withRows = pages.find((page) => page.rows !== null);
  if (!withRows) return;
  for (const page of pages) {
    if (page.rows === null)
      faults.report(
        page.path,
        `must have rows, as ${withRows.name} has: one result table holds rows or products, not both`,
      );
  }
}

function checkOrder(pages: readonly PlacedPage[], faults: FaultList): void {
  const first = pages.findIndex((page) => page.urlPatterns.length === 0);
  if (first < 0) return;
  for (const page of pages.slice(first + 1))
    faults.report(
      page.path,
      `is never used: ${pages[first]!.name}, before it, has no url_patterns and takes every page`,
    );
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
  if (field.steps.length === 0 || first.field.steps.length === 0) return;
  const [type, expected] = [typeOf(field), typeOf(first.field)];
  if (type !== expected)
    faults.report(field.path, `gives ${type}, but in ${first.page.name} it gives ${expected}; a column has one type`);
}

const typeOf = (field: PlacedField) => fieldType({ steps: field.steps.map(({ step }) => step) });
