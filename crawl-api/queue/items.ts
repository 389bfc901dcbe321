/** The products granted to an instance: by number, and those without an outcome by state and domain. */
import type { FailureReason } from '../../shared/domain/outcome.ts';
import type { Product } from '../../shared/domain/product.ts';
import type { ItemResult } from '../../shared/wire/part.ts';
import type { KindCount } from './miss-counts.ts';
import { NumberSet } from './number-set.ts';

export const ITEM_STATES = ['pending', 'postponed', 'held', 'stored', 'gone', 'failed'] as const;
export type ItemState = (typeof ITEM_STATES)[number];
export type OpenState = Extract<ItemState, 'pending' | 'postponed' | 'held'>;

export const isOpen = (state: ItemState): state is OpenState =>
  state === 'pending' || state === 'postponed' || state === 'held';

export interface Item extends Product {
  chunk: string;
  /** The domain where it is read (shared/domain/domains.ts). */
  domain: number;
  state: ItemState;
  reason: FailureReason | null;
  /** The result of a failed first try: it stands if there is no time for a second one. */
  first: ItemResult | null;
  /** The result that waits for a proof. */
  held: ItemResult | null;
  /** True when this is, or was, its second try. */
  again: boolean;
  /** True once a request was sent for it, or it has had another state than `pending`. */
  touched: boolean;
  /** Number of times that the site asked for a pause instead of answering. */
  pauses: number;
  /** Number of times that the process died while crawling it. */
  deaths: number;
  /** Where it is counted while it waits without a row; null: nowhere. */
  countedAs: KindCount | null;
  /** Its neighbours in the list of its state. */
  before: Item | null;
  after: Item | null;
}

/** Items in the order in which they came. Each is in one list at a time, so the links are in the items. */
class ItemList {
  first: Item | null = null;
  size = 0;
  #last: Item | null = null;

  push(item: Item): void {
    item.before = this.#last;
    item.after = null;
    if (this.#last === null) this.first = item;
    else this.#last.after = item;
    this.#last = item;
    this.size++;
  }

  remove(item: Item): void {
    const { before, after } = item;
    if (before === null) this.first = after;
    else before.after = after;
    if (after === null) this.#last = before;
    else after.before = before;
    item.before = item.after = null;
    this.size--;
  }

  *[Symbol.iterator](): Generator<Item, undefined> {
    for (let item = this.first; item !== null; item = item.after) yield item;
  }
}

/** Products with an outcome that stay in memory for the list of products on this machine. */
const KEPT_ENDED = 10_000;

export class Items {
  readonly #byNumber = new Map<number, Item>();
  readonly #domains: Readonly<Record<OpenState, ItemList>>[] = [];
  readonly #counts: Record<OpenState, number> = { pending: 0, postponed: 0, held: 0 };
  /** Those with an outcome that are still in memory, in the order of their results. */
  readonly #ended = new ItemList();
  /** Those that have left memory. */
  readonly #released = new NumberSet();
  /** Products granted to this instance that it has not returned, whatever their outcome. */
  assigned = 0;
  /** The domains that have had an open product more since this was last cleared. */
  readonly fresh = new Set<number>();

  /** Those in memory, in the order in which they were granted. */
  values(): Iterable<Item> {
    return this.#byNumber.values();
  }

  /** Undefined for one that is not here, or has left memory. */
  get(n: number): Item | undefined {
    return this.#byNumber.get(n);
  }

  /** True for a product that was granted and not returned, also if it has left memory. */
  has(n: number): boolean {
    return this.#byNumber.has(n) || this.#released.has(n);
  }

  count(state: OpenState): number {
    return this.#counts[state];
  }

  /** Those without an outcome. */
  get openCount(): number {
    const { pending, postponed, held } = this.#counts;
    return pending + postponed + held;
  }

  /** The items of a domain in this state, oldest first. */
  at(state: OpenState, domain: number): Iterable<Item> & Readonly<Pick<ItemList, 'first' | 'size'>> {
    return this.#listOf(state, domain);
  }

  /** The result of a product of the domain that is held as `gone`; null when there is none. */
  firstHeldGone(domain: number): Extract<ItemResult, { outcome: 'gone' }> | null {
    for (const { held } of this.at('held', domain)) if (held?.outcome === 'gone') return held;
    return null;
  }

  isOpenAt(domain: number): boolean {
    const lists = this.#domains[domain];
    return lists !== undefined && lists.pending.size + lists.postponed.size + lists.held.size > 0;
  }

  /** The domains with an open product. */
  *openDomains(): Generator<number> {
    for (const domain of this.#domains.keys()) if (this.isOpenAt(domain)) yield domain;
  }

  /** The items of all domains in these states. */
  *in(...states: readonly OpenState[]): Generator<Item, undefined> {
    for (const lists of this.#domains) for (const state of states) if (lists !== undefined) yield* lists[state];
  }

  add(product: Product, chunk: string, domain: number): void {
    const item: Item = {
      ...product,
      chunk,
      domain,
      state: 'pending',
      reason: null,
      first: null,
      held: null,
      again: false,
      touched: false,
      pauses: 0,
      deaths: 0,
      countedAs: null,
      before: null,
      after: null,
    };
    this.#byNumber.set(item.n, item);
    this.#enter(item);
    this.assigned++;
  }

  move(item: Item, to: ItemState): void {
    this.#leave(item);
    item.state = to;
    this.#enter(item);
  }

  /** Another instance owns this one now. */
  forget(item: Item): void {
    this.#leave(item);
    this.#byNumber.delete(item.n);
    this.assigned--;
  }

  /**
   * Removes those with an outcome from memory that are among the first `results`, but keeps the last ones of all.
   *
   * @param results that many results are safe elsewhere, from the first one on
   */
  release(results: number): void {
    const last = Math.min(results, this.#released.size + this.#ended.size - KEPT_ENDED);
    while (this.#released.size < last && this.#ended.first !== null) {
      const item = this.#ended.first;
      this.#ended.remove(item);
      this.#byNumber.delete(item.n);
      this.#released.add(item.n);
    }
  }

  #enter(item: Item): void {
    const { state, domain } = item;
    if (!isOpen(state)) return this.#ended.push(item);
    this.#counts[state]++;
    this.fresh.add(domain);
    this.#listOf(state, domain).push(item);
  }

  #leave(item: Item): void {
    const { state, domain } = item;
    if (!isOpen(state)) return this.#ended.remove(item);
    this.#counts[state]--;
    this.#listOf(state, domain).remove(item);
  }

  #listOf(state: OpenState, domain: number): ItemList {
    const lists = (this.#domains[domain] ??= {
      pending: new ItemList(),
      postponed: new ItemList(),
      held: new ItemList(),
    });
    return lists[state];
  }
}
