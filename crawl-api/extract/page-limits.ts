/** What one page may cost. A page beyond it is given up as too large: half of its values would be worse than none. */

export class PageLimitError extends Error {}

/** Deeper pages are refused: the parser searches its stack for every stray end tag, so depth costs quadratic time. */
export const MAX_DEPTH = 4_000;
/** Elements, texts and comments of a page that is kept as a tree. */
export const MAX_NODES = 200_000;
/** Steps from node to node that XPath and selectors over the tree may take on one page; a second or two of work. */
const MAX_WALK = 10_000_000;
/** Blocks of JSON-LD on one page; shops have up to one for each product of a list. */
export const MAX_JSON_BLOCKS = 1_000;
/** Arrays and objects of all of them. */
const MAX_KEPT_CONTAINERS = 200_000;
/** Characters of text taken for one page, over all values. */
const MAX_TAKEN_CHARS = 32_000_000;
/** Kept of the source for `regex`, and of a JSON page, in characters. */
export const MAX_SOURCE_CHARS = 5_000_000;
/** Rows of one page. */
export const MAX_ROWS = 10_000;
/** All rows of one product, in bytes of JSON: they are one record of the journal and one line of a part. */
export const MAX_ROWS_BYTES = 8_000_000;
/** Processor time that the patterns of the mapping may take on one page, in milliseconds. */
const MAX_SEARCH_MS = 3_000;
/** Records that stand one inside the other. */
export const MAX_NESTED_RECORDS = 16;
/** Addresses that one page gives. */
export const MAX_LINKS = 100;

/** Counts down what a page costs; throws PageLimitError when it is used up. */
export class PageBudget {
  #walk: number;
  #chars = MAX_TAKEN_CHARS;
  #rowBytes = MAX_ROWS_BYTES;
  #jsonBlocks = MAX_JSON_BLOCKS;
  #containers = MAX_KEPT_CONTAINERS;
  readonly #cpuMs: () => number;
  #searchEndMs: number | null = null;

  /** `cpuMs`: processor time of the process. Time on the wall would give up pages where a small machine is throttled. */
  constructor(walk = MAX_WALK, cpuMs = processCpuMs) {
    this.#walk = walk;
    this.#cpuMs = cpuMs;
  }

  /** Call for every node looked at, or with their number. */
  walk(nodes = 1): void {
    this.#walk -= nodes;
    if (this.#walk < 0) throw new PageLimitError('the XPaths or selectors of the mapping take too long on this page');
  }

  take(chars: number): void {
    this.#chars -= chars;
    if (this.#chars < 0) throw new PageLimitError('the values that the mapping takes from this page are too large');
  }

  /** Call for every block of JSON-LD, also for those that turn out to be broken. */
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

  /** Call with what is put into a row, in bytes of JSON. */
  keep(bytes: number): void {
    this.#rowBytes -= bytes;
    if (this.#rowBytes < 0) throw new PageLimitError(TOO_MANY_BYTES);
  }

  /**
   * Call before each search for a pattern. One search takes time linear in the text, but thousands of them that each look through to its end
   * do not; all of them run without a break, so what they take counts from the first one.
   */
  search(): void {
    const nowMs = this.#cpuMs();
    this.#searchEndMs ??= nowMs + MAX_SEARCH_MS;
    if (nowMs > this.#searchEndMs) throw new PageLimitError('the patterns of the mapping take too long on this page');
  }
}

/** What a product is told whose rows are beyond MAX_ROWS_BYTES. */
export const TOO_MANY_BYTES = `the rows have more than ${MAX_ROWS_BYTES} bytes of JSON`;
/** What a page is told that has more records than MAX_ROWS. To leave some out would delete rows that an earlier crawl has stored. */
export const TOO_MANY_ROWS = `the page has more than ${MAX_ROWS} records`;

function processCpuMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1_000;
}
