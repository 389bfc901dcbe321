/** Resolves ambiguous numbers in values by a decimal mark. */
import type { DecimalMark } from '../../../shared/domain/currencies.ts';
import {
  type ChainValue,
  type FieldValue,
  type Mapping,
  readsNumbers,
  type Scalar,
} from '../../../shared/domain/mapping.ts';
import { isAmbiguous, type MarkCounts, readAs, type AmbiguousNumber } from '../../../shared/domain/ambiguous-number.ts';
import type { ItemResult } from '../../../shared/wire/part.ts';

/** The first ambiguous number in the value; null when there is none. */
export function findAmbiguous(value: FieldValue): AmbiguousNumber | null {
  if (!Array.isArray(value)) return isAmbiguous(value) ? value : null;
  return value.find(isAmbiguous) ?? null;
}

/** The value read with this decimal mark; `null` drops ambiguous numbers. */
export function resolveNumbers(value: FieldValue, mark: DecimalMark | null): Scalar | Scalar[] | null {
  const read = (one: ChainValue | null): Scalar | null => (isAmbiguous(one) ? readAs(one, mark) : one);
  // Every value of every row passes through here, and nearly all of them are single.
  if (!Array.isArray(value)) return read(value) ?? null;
  const list = value.map(read).filter((one) => one !== null);
  // A list without ambiguous numbers stays unchanged, as does an empty one.
  return list.length > 0 || value.length === 0 ? list : null;
}

/** Indexes of the mapping's columns whose fields read numbers. */
export function numberFields(mapping: Mapping): ReadonlySet<string> {
  const readers = mapping.pages.flatMap((page) => page.fields.filter(readsNumbers));
  return new Set(readers.map(({ name }) => name.toLowerCase()));
}

/** How many products show each decimal mark, by lower-case field name. */
export type ShownCounts = Record<string, MarkCounts>;

/** The decimal marks that a product's page shows, each before its field: `,price`. */
export function marksOf(result: ItemResult): string[] {
  if (result.outcome !== 'stored') return [];
  return [...new Set(result.rows.flatMap(({ marks = {} }) => Object.entries(marks).map(([field, m]) => m + field)))];
}

/** @param products the marks of each, as marksOf() gives them */
export function countMarks(products: readonly (readonly string[])[]): ShownCounts {
  const counts: ShownCounts = {};
  for (const shown of products) {
    for (const one of shown) {
      const field = one.slice(1).toLowerCase();
      counts[field] ??= { '.': 0, ',': 0 };
      counts[field][one[0] as DecimalMark]++;
    }
  }
  return counts;
}

export function sumMarks(all: Iterable<ShownCounts>): ShownCounts {
  const sum: ShownCounts = {};
  for (const counts of all) {
    for (const [field, { '.': points, ',': commas }] of Object.entries(counts)) {
      const own = (sum[field] ??= { '.': 0, ',': 0 });
      own['.'] += points;
      own[','] += commas;
    }
  }
  return sum;
}

export const NO_MARKS: MarkCounts = { '.': 0, ',': 0 };
