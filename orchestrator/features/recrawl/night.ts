/** Which products a night crawls: those that are most overdue by their own measure, up to what it can crawl. Pure. */
import { type CrawledProduct, dueAtMs, importanceOf, intervalMs, ownIntervalMs, type RecrawlPolicy } from './due.ts';
import type { ListedProduct } from '../../core/db/product-source.ts';

const DAY_MS = 86_400_000;

/** How far the catalogue is behind. */
export interface Backlog {
  listed: number;
  /** Products that no run which remembers them has crawled. */
  unseen: number;
  due: number;
  /**
   * Products a day that would have to be crawled to crawl each one when it is due: one for each that has changed within
   * the last day, the others by their intervals.
   */
  productsPerDay: number;
}

export interface NightChoice {
  /** The products in the order to crawl. */
  ids: string[];
  carriedOver: {
    products: number;
    /** How many of them the share of their category holds back. */
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
  /** How late a product is that was crawled before; the score of one never crawled. */
  readonly #urgency: number[] = [];
  readonly #isUnseen: boolean[] = [];
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
    const perDay = DAY_MS / Math.max(1, ownMs);
    const hasChangedToday = (listed.changedAtMs ?? -Infinity) > this.#nowMs - DAY_MS;
    backlog.listed++;
    backlog.productsPerDay += hasChangedToday ? Math.max(1, perDay) : perDay;
    if (crawled === null) backlog.unseen++;
    if (due > this.#nowMs) return;
    backlog.due++;
    this.#ids.push(listed.id);
    this.#priorities.push(listed.priority);
    this.#categories.push(listed.category);
    this.#dueAtMs.push(due);
    this.#isUnseen.push(crawled === null);
    this.#urgency.push(crawled ? lateness(crawled, ownMs, due, this.#nowMs) : importanceOf(listed));
  }

  /**
   * The due products, at most `capacity`, those of the highest priority first. Among equals, products crawled before
   * and products never crawled take turns while both wait: the former by how late they are, so that with too little
   * capacity all wait longer by the same factor; the latter by score. The same list gives the same night, and a smaller
   * capacity its beginning, apart from the shares of categories.
   */
  choose(capacity: number): NightChoice {
    const [urgency, priority] = [this.#urgency, this.#priorities];
    const due = Uint32Array.from(this.#ids.keys()).sort(
      (a, b) => priority[b]! - priority[a]! || urgency[b]! - urgency[a]! || a - b,
    );
    const unseen = due.filter((i) => this.#isUnseen[i]);
    const seen = due.filter((i) => !this.#isUnseen[i]);
    const most = Math.max(1, Math.floor(capacity * this.#policy.maxShare));
    const taken = new Map<string | null, number>();
    const ids: string[] = [];
    const carriedOver: NightChoice['carriedOver'] = { products: 0, byCategory: 0, dueSinceMs: null };
    let [nextUnseen, nextSeen, isTurnOfUnseen] = [0, 0, true];
    while (nextUnseen < unseen.length || nextSeen < seen.length) {
      const ahead = (priority[unseen[nextUnseen]!] ?? -Infinity) - (priority[seen[nextSeen]!] ?? -Infinity);
      const isUnseen = ahead > 0 || (ahead === 0 && isTurnOfUnseen);
      const i = isUnseen ? unseen[nextUnseen++]! : seen[nextSeen++]!;
      const category = this.#categories[i]!;
      const count = taken.get(category) ?? 0;
      const isHeld = category !== null && count >= most;
      if (ids.length < capacity && !isHeld) {
        ids.push(this.#ids[i]!);
        taken.set(category, count + 1);
        isTurnOfUnseen = !isUnseen;
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

/**
 * How many of its own intervals a product has waited since its last crawl. Having changed counts as one more: it is due
 * without having waited, and stays so however often it changes.
 */
const lateness = ({ atMs }: CrawledProduct, ownMs: number, dueAt: number, nowMs: number): number =>
  (nowMs - atMs) / ownMs + (dueAt === -Infinity ? 1 : 0);
