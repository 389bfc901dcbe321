/** Which products a night crawls: those that are most overdue by their own measure, up to what it can crawl. Pure. */
import {
  type CrawledProduct,
  dueAtMs,
  intervalMs,
  type ListedProduct,
  ownIntervalMs,
  type RecrawlPolicy,
} from './due.ts';

const DAY_MS = 86_400_000;

/** How far the catalogue is behind. */
export interface Backlog {
  listed: number;
  /** Never crawled by a run that remembers it. */
  unseen: number;
  due: number;
  /** Requests for pages a day that would crawl every product when it is due. */
  productsPerDay: number;
}

export interface NightChoice {
  /** In the order to crawl. */
  ids: string[];
  carriedOver: {
    products: number;
    /** Of them held back by the share of their category. */
    byCategory: number;
    /** Since when the longest overdue is due; null when none is, or it was never crawled. */
    dueSinceMs: number | null;
  };
}

/** Collects the list product by product, so that a million needs no object each. */
export class Night {
  readonly #policy: RecrawlPolicy;
  readonly #nowMs: number;
  readonly #ids: string[] = [];
  readonly #priorities: number[] = [];
  /** Time since the last crawl by the interval; Infinity: at once. */
  readonly #lateness: number[] = [];
  readonly #dueAtMs: number[] = [];
  readonly #categories: (string | null)[] = [];
  readonly backlog: Backlog = { listed: 0, unseen: 0, due: 0, productsPerDay: 0 };

  constructor(policy: RecrawlPolicy, nowMs: number) {
    this.#policy = policy;
    this.#nowMs = nowMs;
  }

  add(listed: ListedProduct, crawled: CrawledProduct | null): void {
    const { backlog } = this;
    const ownMs = crawled ? ownIntervalMs(listed, crawled, this.#policy) : intervalMs(listed, this.#policy);
    const due = dueAtMs(listed, crawled, this.#policy);
    backlog.listed++;
    backlog.productsPerDay += DAY_MS / Math.max(1, ownMs);
    if (crawled === null) backlog.unseen++;
    if (due > this.#nowMs) return;
    backlog.due++;
    this.#ids.push(listed.id);
    this.#priorities.push(listed.priority);
    this.#categories.push(listed.category);
    this.#dueAtMs.push(due);
    this.#lateness.push(due === -Infinity ? Infinity : (this.#nowMs - crawled!.atMs) / ownMs);
  }

  /**
   * The due products, at most `capacity`, by priority and then by how many of their own intervals they have waited:
   * with too little capacity every product then waits longer by the same factor. The same list gives the same night.
   */
  choose(capacity: number): NightChoice {
    const [late, priority] = [this.#lateness, this.#priorities];
    const order = Uint32Array.from(this.#ids.keys()).sort(
      (a, b) => priority[b]! - priority[a]! || (late[a] === late[b] ? a - b : late[b]! - late[a]!),
    );
    const most = Math.max(1, Math.floor(capacity * this.#policy.maxShare));
    const taken = new Map<string | null, number>();
    const ids: string[] = [];
    const carriedOver: NightChoice['carriedOver'] = { products: 0, byCategory: 0, dueSinceMs: null };
    for (const i of order) {
      const category = this.#categories[i]!;
      const count = taken.get(category) ?? 0;
      const isHeld = category !== null && count >= most;
      if (ids.length < capacity && !isHeld) {
        ids.push(this.#ids[i]!);
        taken.set(category, count + 1);
        continue;
      }
      carriedOver.products++;
      if (isHeld && ids.length < capacity) carriedOver.byCategory++;
      const dueAt = this.#dueAtMs[i]!;
      if (dueAt !== -Infinity) carriedOver.dueSinceMs = Math.min(carriedOver.dueSinceMs ?? Infinity, dueAt);
    }
    return { ids, carriedOver };
  }
}
