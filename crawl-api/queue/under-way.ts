/**
 * The products whose requests may be under way by the journal: one of them may have been the death of the process.
 * Those of which that is in doubt are each tried alone.
 */
import type { Item, Items } from './items.ts';

export class UnderWay {
  readonly #items: Pick<Items, 'get'>;
  /** Oldest first. */
  #numbers: number[] = [];
  /** Products that were under way together when the process died, in the order in which they are tried. */
  readonly #doubted = new Set<number>();

  constructor(items: Pick<Items, 'get'>) {
    this.#items = items;
  }

  /** Their numbers, oldest first. */
  get numbers(): readonly number[] {
    return this.#numbers;
  }

  /** True while a request for a product of the domain may be under way. */
  isAt(domain: number): boolean {
    return this.#numbers.some((n) => this.#isOf(n, domain));
  }

  /** True for a product to be crawled while no other one is: the process died while it was under way. */
  isDoubted({ n, deaths }: Item): boolean {
    return deaths > 0 || this.#doubted.has(n);
  }

  /** The product of the domain that was under way with others at a death, and is tried next; null: none. */
  firstDoubted(domain: number): Item | null {
    for (const n of this.#doubted) {
      const item = this.#items.get(n);
      if (item?.domain === domain) return item;
    }
    return null;
  }

  begin(n: number): void {
    this.#numbers.push(n);
  }

  /** The request of a product has ended, if that was the last one, and nothing is in doubt about it. */
  end(n: number): void {
    this.#numbers = this.#numbers.filter((other) => other !== n);
    this.#doubted.delete(n);
  }

  /** The domain's request has ended; requests to other domains may still be under way. */
  endAt(domain: number): void {
    this.#numbers = this.#numbers.filter((n) => !this.#isOf(n, domain));
  }

  /** No request is under way. */
  clear(): void {
    this.#numbers = [];
  }

  /** The process died with these under way: which of them was its death is in doubt. */
  doubt(ns: readonly number[]): void {
    this.clear();
    for (const n of ns) this.#doubted.add(n);
  }

  /** Nothing is in doubt about this one. */
  clearDoubt(n: number): void {
    this.#doubted.delete(n);
  }

  /** One that is not here any more may have been of any domain. */
  #isOf(n: number, domain: number): boolean {
    return (this.#items.get(n)?.domain ?? domain) === domain;
  }
}
