/**
 * Knows which fields the pages of this site usually fill. A ban page may have the one field that is required, a heading say; it hardly has
 * the others too.
 */
import type { KeyedRow } from '../../shared/domain/mapping.ts';

/** Right pages before there is a habit. */
const LEAST_PAGES = 10;
/** Then the older half counts for half as much. */
const MOST_PAGES = 100;
/** A field is usual when so many of the pages fill it. */
const USUAL = 0.9;

export class PageBaseline {
  #pages = 0;
  readonly #filled = new Map<string, number>();

  /** A page that was right. */
  note(rows: readonly KeyedRow[]): void {
    if (rows.length === 0) return;
    if (this.#pages >= MOST_PAGES) this.#halve();
    this.#pages++;
    for (const name of filledFields(rows)) this.#filled.set(name, (this.#filled.get(name) ?? 0) + 1);
  }

  /** True when half of the usual fields, or more, have no value. A page that rightly has no records is not meant. */
  isThin(rows: readonly KeyedRow[]): boolean {
    if (this.#pages < LEAST_PAGES || rows.length === 0) return false;
    const present = filledFields(rows);
    const usual = [...this.#filled].filter(([, pages]) => pages >= this.#pages * USUAL);
    const empty = usual.filter(([name]) => !present.has(name));
    return empty.length > 0 && empty.length * 2 >= usual.length;
  }

  /** Thin pages were proven to be fine: what is usual is learned anew. */
  reset(): void {
    this.#pages = 0;
    this.#filled.clear();
  }

  #halve(): void {
    this.#pages /= 2;
    for (const [name, pages] of this.#filled) this.#filled.set(name, pages / 2);
  }
}

/** Fields with a value in any of the rows. */
function filledFields(rows: readonly KeyedRow[]): Set<string> {
  const names = new Set<string>();
  for (const { row } of rows) {
    for (const [name, value] of Object.entries(row)) {
      if (value !== null && !(Array.isArray(value) && value.length === 0)) names.add(name);
    }
  }
  return names;
}
