/** Limits for one page. A page beyond them fails as too large: half of its values would be worse than none. */
import { MAX_ROWS_BYTES } from '../../shared/wire/part.ts';

export class PageLimitError extends Error {}

/** Maximum nesting depth: the parser searches its stack for every stray end tag, so depth costs quadratic time. */
export const MAX_DEPTH = 4_000;
/** Maximum elements, texts and comments of a page that is kept as a tree. */
export const MAX_NODES = 200_000;
/** Maximum blocks of JSON-LD on one page; shops have up to one for each product of a list. */
export const MAX_JSON_BLOCKS = 1_000;
/** Maximum characters kept of the source for `regex`, and of a JSON page. */
export const MAX_SOURCE_CHARS = 5_000_000;
/** Maximum rows of one page. */
export const MAX_ROWS = 10_000;
/** Maximum processor time for the patterns of the mapping on one page, in milliseconds. */
const MAX_SEARCH_MS = 3_000;
/** Maximum nesting of records. */
export const MAX_NESTED_RECORDS = 16;

/** Message for a product whose rows exceed MAX_ROWS_BYTES. */
export const TOO_MANY_BYTES = `the rows have more than ${MAX_ROWS_BYTES} bytes of JSON`;

/** What a page may use up, and the error beyond it. */
const BUDGET = {
  /** Node visits by XPath and tree selectors; a second or two of work. */
  visits: { max: 10_000_000, fault: 'the XPaths or selectors of the mapping take too long on this page' },
  /** Characters of text extracted, over all values. */
  chars: { max: 32_000_000, fault: 'the values that the mapping takes from this page are too large' },
  rowBytes: { max: MAX_ROWS_BYTES, fault: TOO_MANY_BYTES },
  /** Blocks of JSON-LD, including broken ones. */
  jsonBlocks: { max: MAX_JSON_BLOCKS, fault: `the page has more than ${MAX_JSON_BLOCKS} blocks of JSON-LD` },
  /** Elements of microdata, each time that an item has it. */
  parts: { max: 500_000, fault: 'the microdata of the page has more than 500000 elements' },
  /**
   * All that stays in memory while the page is read, in units of some 120 bytes: a node or an attribute of the tree is
   * one. Each kind alone fits an instance, but not all of them on one page.
   */
  kept: {
    max: 400_000,
    fault: 'the elements, attributes, JSON-LD and microdata of the page take too much memory together',
  },
};

/** How much of `kept` others use, with what is made of them: an array or object of JSON-LD, an element of microdata. */
export const KEPT_BY_CONTAINER = 4;
export const KEPT_BY_PART = 6;

/** Counts what a page uses; throws PageLimitError when it exceeds the budget. */
export class PageBudget {
  readonly #spent: Record<keyof typeof BUDGET, number>;
  readonly #cpuMs: () => number;
  #searchEndMs: number | null = null;

  /** `cpuMs`: processor time of the process. Wall-clock time would fail pages where a small machine is throttled. */
  constructor(visits = BUDGET.visits.max, cpuMs = processCpuMs) {
    this.#spent = {
      visits: BUDGET.visits.max - visits,
      chars: 0,
      rowBytes: 0,
      jsonBlocks: 0,
      parts: 0,
      kept: 0,
    };
    this.#cpuMs = cpuMs;
  }

  spend(what: keyof typeof BUDGET, amount = 1): void {
    this.#spent[what] += amount;
    if (this.#spent[what] > BUDGET[what].max) throw new PageLimitError(BUDGET[what].fault);
  }

  /**
   * Call before each search for a pattern. One search takes time linear in the text, but thousands of searches to its
   * end do not; all of them run without a break, so their time counts from the first one.
   */
  search(): void {
    const nowMs = this.#cpuMs();
    this.#searchEndMs ??= nowMs + MAX_SEARCH_MS;
    if (nowMs > this.#searchEndMs) throw new PageLimitError('the patterns of the mapping take too long on this page');
  }
}

/**
 * Message for a page with more records than MAX_ROWS. Omitting some would delete rows that an earlier crawl has stored.
 */
export const TOO_MANY_ROWS = `the page has more than ${MAX_ROWS} records`;

function processCpuMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1_000;
}
