/** Learns, with `render: auto`, whether this site's pages need a browser. */

/** Pages in a row that only the browser could read before HTTP is skipped. */
const LEARN_AFTER = 5;
/** Once HTTP is skipped, it is tried again on every page of this number. */
const RECHECK_EVERY = 50;

export class RenderChoice {
  readonly #mode: 'http' | 'browser' | 'auto';
  #neededInRow = 0;
  #direct = 0;

  constructor(mode: 'http' | 'browser' | 'auto') {
    this.#mode = mode;
  }

  /** How to get the next page first. */
  first(): 'http' | 'browser' {
    if (this.#mode !== 'auto') return this.#mode;
    if (this.#neededInRow < LEARN_AFTER) return 'http';
    return ++this.#direct % RECHECK_EVERY === 0 ? 'http' : 'browser';
  }

  /** True when the browser may try a page that HTTP could not read. */
  get mayRender(): boolean {
    return this.#mode === 'auto';
  }

  /** HTTP alone yielded the required values. */
  httpSufficed(): void {
    this.#neededInRow = 0;
    this.#direct = 0;
  }

  /** HTTP failed, the browser succeeded. */
  browserNeeded(): void {
    this.#neededInRow++;
  }
}
