/** Counts the products of this instance that have no row, by kind of failure, for its heartbeats. */
import {
  failureKind,
  kindText,
  ledgerDetail,
  type MissCount,
  type MissReason,
  signOf,
} from '../../shared/domain/failure-kind.ts';
import { MAX_MISS_CHARS, MAX_MISS_KINDS } from '../../shared/wire/callbacks.ts';
import type { ItemResult } from '../../shared/wire/part.ts';

/** A result without a row. */
type Miss = Exclude<ItemResult, { outcome: 'stored' }>;

export const isMiss = (result: ItemResult): result is Miss => result.outcome !== 'stored';

/** A kind of failure with its counts; its key tells it from others. */
export type KindCount = MissCount & { key: string };

export class MissCounts {
  readonly #kinds = new Map<string, KindCount>();

  /** Counts a product that ended without a row. */
  add(result: Miss): void {
    this.#countOf(kindOf(result)).products++;
  }

  /**
   * Counts a product that waits with this result for a second try or for a proof, and returns where: pass it to
   * `endWait`. Null for a result with a row. Without any result it waits because the process died while crawling it.
   */
  await(result: ItemResult | null): KindCount | null {
    if (result !== null && !isMiss(result)) return null;
    const count = this.#countOf(result === null ? DEATH : kindOf(result));
    count.waiting++;
    return count;
  }

  endWait(count: KindCount): void {
    count.waiting--;
    if (count.waiting + count.products === 0) this.#kinds.delete(count.key);
  }

  /** The counts, bounded in number: at most MAX_MISS_KINDS and one more for each reason. */
  list(): MissCount[] {
    return Array.from(this.#kinds.values(), ({ reason, detail, products, waiting, url }) => ({
      reason,
      detail,
      products,
      waiting,
      url,
    }));
  }

  #countOf(kind: Kind): KindCount {
    const known = this.#kinds.get(kind.key);
    if (known) return known;
    // Kinds are few, but their names come from the site and the mapping.
    const isTooMany = this.#kinds.size >= MAX_MISS_KINDS;
    const { key } = kind;
    if (isTooMany && key !== kind.reason) return this.#countOf({ ...OTHERS, key: kind.reason, reason: kind.reason });
    const count = { ...kind, products: 0, waiting: 0 };
    this.#kinds.set(key, count);
    return count;
  }
}

type Kind = Omit<KindCount, 'products' | 'waiting'>;

const OTHERS = { detail: null, url: null };
const DEATH: Kind = { ...OTHERS, key: 'poison', reason: 'poison' };

function kindOf(result: Miss): Kind {
  const detail = ledgerDetail(result);
  const reason: MissReason = result.outcome === 'gone' ? 'gone' : result.reason;
  const facts = failureKind(reason, detail);
  const url = result.url.length > MAX_MISS_CHARS ? null : result.url;
  const key = `${reason} ${signOf(facts)} ${facts.isScriptBuilt}`;
  return { key, reason, detail: kindText(reason, detail).toWellFormed(), url };
}
