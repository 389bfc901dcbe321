/**
 * Learns which fields the pages of this site usually fill. A ban page may have the one required field, such as a
 * heading, but hardly the others too.
 */
import type { KeyedRow } from '../../shared/domain/mapping.ts';

/** Minimum right pages before fields count as usual. */
export const MIN_PAGES = 10;
/** Number of pages at which all counts are halved. */
const MAX_PAGES = 100;
/** Minimum share of pages that fill a usual field. */
const USUAL = 0.9;

export class PageBaseline {
  #pages = 0;
  readonly #filled = new Map<string, number>();

  /** Counts a page that was right. */
  note(rows: readonly KeyedRow[]): void {
    if (rows.length === 0) return;
    if (this.#pages >= MAX_PAGES) this.#halve();
    this.#pages++;
    for (const name of filledFields(rows)) this.#filled.set(name, (this.#filled.get(name) ?? 0) + 1);
  }

  /** True when half or more of the usual fields have no value. False for a page that rightly has no records. */
  isThin(rows: readonly KeyedRow[]): boolean {
    if (this.#pages < MIN_PAGES || rows.length === 0) return false;
    const usual = this.#usual();
    const empty = this.missing(rows, usual);
    return empty.length > 0 && empty.length * 2 >= usual.length;
  }

  /**
   * The usual ones of the fields that have no value here; each of `fields` counts as usual before MIN_PAGES. None for a
   * page that rightly has no records.
   */
  missing(rows: readonly KeyedRow[], fields: readonly string[]): string[] {
    if (rows.length === 0) return [];
    const present = filledFields(rows);
    const usual = this.#pages < MIN_PAGES ? fields : this.#usual();
    return usual.filter((name) => !present.has(name) && fields.includes(name));
  }

  #usual(): string[] {
    return [...this.#filled].filter(([, pages]) => pages >= this.#pages * USUAL).map(([name]) => name);
  }

  /** Thin pages were proven right: learn the usual fields again. */
  reset(): void {
    this.#pages = 0;
    this.#filled.clear();
  }

  #halve(): void {
    this.#pages /= 2;
    for (const [name, pages] of this.#filled) this.#filled.set(name, pages / 2);
  }
}

function filledFields(rows: readonly KeyedRow[]): Set<string> {
  const names = new Set<string>();
  for (const { row } of rows) {
    for (const [name, value] of Object.entries(row)) {
      if (value !== null && !(Array.isArray(value) && value.length === 0)) names.add(name);
    }
  }
  return names;
}
