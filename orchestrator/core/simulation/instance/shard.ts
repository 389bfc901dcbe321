/**
 * The chunks, products and results of a modelled instance: what the journal of a real one says, so it survives the
 * crash of the process. Knows no time and no messages. The same rules as crawl-api/queue/queue-state.ts: the contract
 * of an instance tests both.
 */
import { domainOf, isAnyHost, type ProductUrl, templateAt, templatesOf } from '../../../../shared/domain/domains.ts';
import { isRetryable } from '../../../../shared/domain/outcome.ts';
import { type Product, productUrl } from '../../../../shared/domain/product.ts';
import type { Orders, PartRef } from '../../../../shared/wire/callbacks.ts';
import type { Offer } from '../../../../shared/wire/instance-api.ts';
import { type ItemResult, PART_PRODUCTS, SEQ_JUMP } from '../../../../shared/wire/part.ts';
import type { Pace } from './site.ts';

/** A granted product without an outcome, with the pace of its chunk. */
export interface Queued extends Pace {
  readonly product: Product;
  readonly chunk: string;
  readonly domain: number;
  /** Of its domain. */
  readonly line: Line;
  /** A request was sent for it: its chunk is not returned. */
  asked: boolean;
  /** This is its second try. */
  again: boolean;
  /** The failure of its first try, which stands if there is no second one. */
  first: ItemResult | null;
  /** How often the process died while crawling it. */
  deaths: number;
  /** Of many hosts: the requests for it that were answered, while it takes more. */
  answered: number;
}

interface Chunk {
  readonly size: number;
  /** The products of the chunk; null once granted. */
  products: readonly Product[] | null;
}

/** The products of one domain without an outcome. */
interface Line {
  waiting: Queued[];
  /** What waits begins here. */
  head: number;
  /** The products that are tried again when nothing waits. */
  postponed: Queued[];
}

/** A part as it was cut: every retry stores the same bytes. */
export interface Cut {
  readonly seq: number;
  readonly results: readonly ItemResult[];
}

const KEPT_HEAD = 1_024;

/** The host of a URL, as the simulation spells them. */
const hostOf = (url: string): string => url.slice(url.indexOf('//') + 2, url.indexOf('/', url.indexOf('//') + 2));

export class Shard {
  readonly #productUrl: ProductUrl;
  readonly #paceOf: (products: number) => Pace;
  readonly #chunks = new Map<string, Chunk>();
  /** Chunks without a grant. */
  readonly #offered = new Set<string>();
  /** Chunks to be confirmed before anything is crawled: lost records may have returned them. */
  readonly #doubtful = new Set<string>();
  readonly #returned = new Set<string>();
  /** Products granted to it, also those with an outcome. */
  readonly #known = new Set<number>();
  readonly #lines: Line[];
  /** The hosts of a run of many, by their place among the lines. */
  readonly #keys = new Map<string, number>();
  readonly #hostKeys: string[] = [];
  /** Places of lines that have got products since they were last looked at. */
  readonly fresh = new Set<number>();
  /** Products that were under way together when the process died: each is tried alone, in this order. */
  readonly doubted: Queued[] = [];
  readonly #parts: PartRef[] = [];
  /** Parts that the main server has not acknowledged begin here. */
  #unacknowledged = 0;
  #nextSeq = 0;
  #results: { result: ItemResult; queued: Queued }[] = [];
  /** Products held, whatever their outcome. */
  held = 0;
  /** Granted products without an outcome. */
  open = 0;
  readonly counts = { stored: 0, gone: 0, failed: 0 };
  requests = 0;
  cut: Cut | null = null;
  /** Records were lost. */
  damaged = false;

  /** @param paceOf the pace of the products of a chunk */
  constructor(productUrl: ProductUrl, paceOf: (products: number) => Pace) {
    this.#productUrl = productUrl;
    this.#paceOf = paceOf;
    this.#lines = templatesOf(productUrl).map(() => ({ waiting: [], head: 0, postponed: [] }));
  }

  get assigned(): number {
    return this.#known.size;
  }

  /** Results that no part has. */
  get uncut(): number {
    return this.#results.length;
  }

  get parts(): readonly PartRef[] {
    return this.#parts;
  }

  get returned(): ReadonlySet<string> {
    return this.#returned;
  }

  has(chunk: string): boolean {
    return this.#chunks.has(chunk);
  }

  take({ chunk, products }: Offer): void {
    this.#chunks.set(chunk, { size: products.length, products });
    this.#offered.add(chunk);
    this.held += products.length;
  }

  /** Chunks that wait for a grant; during an incident nothing is granted, so doubtful ones wait. */
  offered(hasIncident: boolean): string[] {
    return hasIncident ? [...this.#offered] : [...this.#offered, ...this.#doubtful];
  }

  /** Carries out grants, drops and the seal, after which nothing is granted; returns the number of chunks granted. */
  follow({ grants, drops, sealed }: Pick<Orders, 'grants' | 'drops' | 'sealed'>, hasIncident: boolean): number {
    if (this.#offered.size + this.#doubtful.size === 0) return 0;
    const offered = new Set(this.offered(hasIncident));
    const granted = grants.filter((id) => offered.delete(id));
    for (const id of sealed ? offered : drops.filter((id) => offered.has(id))) this.#drop(id);
    for (const id of granted) this.#grant(id);
    return granted.length;
  }

  #grant(id: string): void {
    this.#doubtful.delete(id);
    this.#offered.delete(id);
    const chunk = this.#chunks.get(id);
    const products = chunk?.products ?? null;
    if (chunk === undefined || products === null) return;
    chunk.products = null;
    const pace = this.#paceOf(products.length);
    for (const product of products) {
      if (this.#known.has(product.n)) {
        // The same product under an older generation of its chunk.
        this.held--;
        continue;
      }
      this.#known.add(product.n);
      this.open++;
      const domain = this.#domainOf(product.id);
      const line = this.#lineOf(domain);
      this.fresh.add(domain);
      const { gapMs, pageMs } = pace;
      const fresh = { asked: false, again: false, first: null, deaths: 0, answered: 0 };
      line.waiting.push({ ...fresh, product, chunk: id, domain, line, gapMs, pageMs });
    }
  }

  #drop(id: string): void {
    if (this.#doubtful.delete(id)) this.#forgetOpen(new Set([id]));
    if (!this.#offered.delete(id)) return;
    this.held -= this.#chunks.get(id)?.size ?? 0;
    this.#chunks.delete(id);
  }

  /** The place of a product's line: its domain; of many hosts the place of its own. */
  #domainOf(id: string): number {
    if (!isAnyHost(this.#productUrl)) return domainOf(this.#productUrl, id);
    const key = hostOf(id);
    const known = this.#keys.get(key);
    if (known !== undefined) return known;
    this.#keys.set(key, this.#lines.length);
    this.#hostKeys.push(key);
    return this.#lines.push({ waiting: [], head: 0, postponed: [] }) - 1;
  }

  /** The host of a line, in a run of many hosts. */
  hostKeyOf(domain: number): string {
    return this.#hostKeys[domain] ?? '';
  }

  /** The chunks that have products without an outcome in a line. */
  chunksAt(domain: number): string[] {
    const { waiting, head, postponed } = this.#lineOf(domain);
    return [...waiting.slice(head), ...postponed].map(({ chunk }) => chunk);
  }

  /** Something is to be confirmed before anything is crawled. */
  get isDoubtful(): boolean {
    return this.#doubtful.size > 0;
  }

  #lineOf(domain: number): Line {
    const line = this.#lines[domain];
    if (line === undefined) throw new RangeError(`the site has no domain ${domain}`);
    return line;
  }

  /** Another instance owns the open products of these chunks now. */
  #forgetOpen(ids: ReadonlySet<string>): void {
    const stays = ({ chunk, product }: Queued): boolean => {
      if (!ids.has(chunk)) return true;
      this.#known.delete(product.n);
      this.#endDoubt(product.n);
      this.open--;
      this.held--;
      return false;
    };
    for (const line of this.#lines) {
      line.waiting = line.waiting.slice(line.head).filter(stays);
      line.head = 0;
      line.postponed = line.postponed.filter(stays);
    }
    for (const id of ids) this.#chunks.delete(id);
  }

  /** Returns those chunks of which nothing was begun, and none of the visited ones; true if there are any. */
  return(ids: readonly string[], visited: ReadonlySet<string>): boolean {
    const returned = ids.filter((id) => !visited.has(id) && !this.#returned.has(id) && this.#isUntouched(id));
    for (const id of returned) {
      this.#drop(id);
      this.#forgetOpen(new Set([id]));
      this.#returned.add(id);
    }
    return returned.length > 0;
  }

  #isUntouched(id: string): boolean {
    const chunk = this.#chunks.get(id);
    if (chunk === undefined || chunk.products !== null) return true;
    let untouched = 0;
    for (const { waiting, head } of this.#lines)
      for (let i = head, queued = waiting[i]; queued !== undefined; queued = waiting[++i])
        if (queued.chunk === id && !queued.asked) untouched++;
    return untouched === chunk.size;
  }

  /** The main server has recorded that they were returned. */
  forgetReturned(ids: readonly string[]): void {
    for (const id of ids) this.#returned.delete(id);
  }

  /** Drops what is not crawled, as a banned instance does; false when there is nothing. */
  release(): boolean {
    if (this.open === 0 && this.#offered.size === 0) return false;
    for (const id of this.#offered) this.#drop(id);
    this.#doubtful.clear();
    this.#forgetOpen(new Set(this.#allOpen().map(({ chunk }) => chunk)));
    return true;
  }

  /** Products that wait for their first try, or with `again` for the second one, at a domain. */
  count(domain: number, again: boolean): number {
    const { waiting, head, postponed } = this.#lineOf(domain);
    if (this.#doubtful.size > 0) return 0;
    return again ? postponed.length : waiting.length - head;
  }

  /** True for a product to be crawled while no other one is: the process died while it was under way. */
  isDoubted(queued: Queued): boolean {
    return queued.deaths > 0 || this.doubted.includes(queued);
  }

  #endDoubt(n: number): void {
    const at = this.doubted.findIndex(({ product }) => product.n === n);
    if (at !== -1) this.doubted.splice(at, 1);
  }

  /** The domain's next product: one to be tried alone, one that waits, or with `retry` a postponed one. */
  next(domain: number, retry: boolean): Queued | null {
    if (this.#doubtful.size > 0) return null;
    const { waiting, head, postponed } = this.#lineOf(domain);
    const doubted = this.doubted.length === 0 ? undefined : this.doubted.find((queued) => queued.domain === domain);
    return doubted ?? waiting[head] ?? (retry ? (postponed[0] ?? null) : null);
  }

  /** What a page came to: an outcome, or a temporary failure that leads to a second try. */
  settle(queued: Queued, result: ItemResult): void {
    // A page without a field is proved by a canary page, and then a second try would prove nothing new.
    const isTemporary = result.outcome === 'failed' && result.reason !== 'parse' && isRetryable(result.reason);
    if (isTemporary && !queued.again) this.#postpone(queued, result);
    else this.#finish(queued, queued.again ? { ...result, attempts: 2 } : result);
  }

  /** It fails for good, without a second try. */
  fail(queued: Queued, result: ItemResult): void {
    this.#finish(queued, result);
  }

  #postpone(queued: Queued, first: ItemResult | null): void {
    this.#remove(queued);
    queued.again = true;
    queued.first = first;
    queued.line.postponed.push(queued);
  }

  #finish(queued: Queued, result: ItemResult): void {
    this.#remove(queued);
    this.open--;
    this.counts[result.outcome]++;
    this.#results.push({ result, queued });
  }

  /** It is the first of its line. */
  #remove(queued: Queued): void {
    const { line } = queued;
    this.#endDoubt(queued.product.n);
    if (queued.again) line.postponed.shift();
    else if (++line.head === line.waiting.length || line.head > KEPT_HEAD) {
      line.waiting = line.waiting.slice(line.head);
      line.head = 0;
    }
  }

  /** The process died while the pages of these products were under way: only of a single one it may be the cause. */
  die(dying: readonly Queued[], at: string): void {
    const [queued, ...others] = dying;
    if (queued === undefined) return;
    if (others.length > 0) {
      for (const one of dying) if (!this.doubted.includes(one)) this.doubted.push(one);
      return;
    }
    queued.deaths++;
    this.#postpone(queued, queued.first);
    if (queued.deaths < 2) return;
    const { n, id } = queued.product;
    const detail = `the crawler died ${queued.deaths} times while crawling this product`;
    // From the end of its line to the front: only that can be finished.
    const { postponed } = queued.line;
    postponed.pop();
    postponed.unshift(queued);
    const url = productUrl(templateAt(this.#productUrl, queued.domain), id);
    this.#finish(queued, { n, id, url, at, attempts: 2, outcome: 'failed', reason: 'poison', detail });
  }

  /**
   * The last `count` results, and all records after the first of them, did not reach the disk. Returns the product
   * under way at that point; null when nothing was lost.
   */
  lose(count: number): Queued | null {
    const lost = this.#results.splice(Math.max(0, this.#results.length - count));
    for (const { result, queued } of lost.toReversed()) {
      const { line } = queued;
      this.counts[result.outcome]--;
      this.open++;
      queued.asked = false;
      if (queued.again) line.postponed.unshift(queued);
      else line.waiting.splice(line.head, 0, queued);
      this.fresh.add(queued.domain);
    }
    const first = lost[0]?.queued ?? null;
    if (first === null) return null;
    first.asked = true;
    this.requests -= lost.length - 1;
    this.damaged = true;
    this.#nextSeq += SEQ_JUMP;
    for (const { chunk } of this.#allOpen()) this.#doubtful.add(chunk);
    return first;
  }

  /** No request follows: failures of first tries are final. */
  stopCrawling(): void {
    for (const line of this.#lines) {
      const all = line.postponed;
      line.postponed = all.filter(({ first }) => first !== null);
      for (const queued of all) if (queued.first !== null) this.#finish(queued, queued.first);
      line.postponed = all.filter(({ first }) => first === null);
    }
  }

  /** Cuts the next part from the oldest results, with what an attacker has made up. */
  cutPart(forged: readonly ItemResult[]): Cut {
    const results = [...forged, ...this.#results.splice(0, PART_PRODUCTS).map(({ result }) => result)];
    return (this.cut = { seq: this.#nextSeq++, results });
  }

  /** The part that was cut is in the bucket. */
  noteStored(part: PartRef): void {
    this.cut = null;
    this.#parts.push(part);
  }

  /** The main server has every part up to this one. */
  acknowledge(seq: number): void {
    while ((this.#parts[this.#unacknowledged]?.seq ?? Infinity) <= seq) this.#unacknowledged++;
  }

  unacknowledged(limit: number): PartRef[] {
    return this.#parts.slice(this.#unacknowledged, this.#unacknowledged + limit);
  }

  #allOpen(): Queued[] {
    return this.#lines.flatMap(({ waiting, head, postponed }) => [...waiting.slice(head), ...postponed]);
  }
}
