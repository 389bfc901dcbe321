/** Limits for one page. A page beyond them fails as too large: half of its values would be worse than none. */

export class PageLimitError extends Error {}

/** Maximum nesting depth: the parser searches its stack for every stray end tag, so depth costs quadratic time. */
export const MAX_DEPTH = 4_000;
/** Maximum elements, texts and comments of a page that is kept as a tree. */
export const MAX_NODES = 200_000;
/** Maximum node visits by XPath and tree selectors on one page; a second or two of work. */
const MAX_WALK = 10_000_000;
/** Maximum blocks of JSON-LD on one page; shops have up to one for each product of a list. */
export const MAX_JSON_BLOCKS = 1_000;
/** Maximum arrays and objects of all JSON-LD blocks. */
const MAX_KEPT_CONTAINERS = 200_000;
/** Maximum characters of text extracted from one page, over all values. */
const MAX_TAKEN_CHARS = 32_000_000;
/** Maximum characters kept of the source for `regex`, and of a JSON page. */
export const MAX_SOURCE_CHARS = 5_000_000;
/** Maximum rows of one page. */
export const MAX_ROWS = 10_000;
/** Maximum bytes of JSON for all rows of one product: they are one record of the journal and one line of a part. */
export const MAX_ROWS_BYTES = 8_000_000;
/** Maximum processor time for the patterns of the mapping on one page, in milliseconds. */
const MAX_SEARCH_MS = 3_000;
/** Maximum nesting of records. */
export const MAX_NESTED_RECORDS = 16;

/** Counts down the budget of a page; throws PageLimitError when it is used up. */
export class PageBudget {
  #walk: number;
  #chars = MAX_TAKEN_CHARS;
  #rowBytes = MAX_ROWS_BYTES;
  #jsonBlocks = MAX_JSON_BLOCKS;
  #containers = MAX_KEPT_CONTAINERS;
  readonly #cpuMs: () => number;
  #searchEndMs: number | null = null;

  /** `cpuMs`: processor time of the process. Wall-clock time would fail pages where a small machine is throttled. */
  constructor(walk = MAX_WALK, cpuMs = processCpuMs) {
    this.#walk = walk;
    this.#cpuMs = cpuMs;
  }

  /** Call for every node visited, or with their number. */
  walk(nodes = 1): void {
    this.#walk -= nodes;
    if (this.#walk < 0) throw new PageLimitError('the XPaths or selectors of the mapping take too long on this page');
  }

  take(chars: number): void {
    this.#chars -= chars;
    if (this.#chars < 0) throw new PageLimitError('the values that the mapping takes from this page are too large');
  }

  /** Call for every block of JSON-LD, including broken ones. */
  jsonBlock(): void {
    this.#jsonBlocks--;
    if (this.#jsonBlocks < 0) throw new PageLimitError(`the page has more than ${MAX_JSON_BLOCKS} blocks of JSON-LD`);
  }

  /** Call with the arrays and objects of JSON that stays in memory while the page is read. */
  keepJson(containers: number): void {
    this.#containers -= containers;
    if (this.#containers < 0)
      throw new PageLimitError(`the JSON-LD of the page has more than ${MAX_KEPT_CONTAINERS} arrays and objects`);
  }

  /** Call with the bytes of JSON added to a row. */
  keep(bytes: number): void {
    this.#rowBytes -= bytes;
    if (this.#rowBytes < 0) throw new PageLimitError(TOO_MANY_BYTES);
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

/** Message for a product whose rows exceed MAX_ROWS_BYTES. */
export const TOO_MANY_BYTES = `the rows have more than ${MAX_ROWS_BYTES} bytes of JSON`;
/**
 * Message for a page with more records than MAX_ROWS. Omitting some would delete rows that an earlier crawl has stored.
 */
export const TOO_MANY_ROWS = `the page has more than ${MAX_ROWS} records`;

function processCpuMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1_000;
}
