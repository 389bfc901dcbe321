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

export class MissCounts {
  readonly #kinds = new Map<string, MissCount>();

  copy(): MissCounts {
    const copy = new MissCounts();
    for (const [key, kind] of this.#kinds) copy.#kinds.set(key, { ...kind });
    return copy;
  }

  add(result: Miss, as: 'products' | 'waiting'): void {
    const kind = kindOf(result);
    // Kinds are few, but their names come from the site and the mapping.
    const isTooMany = !this.#kinds.has(kind.key) && this.#kinds.size >= MAX_MISS_KINDS;
    this.#countOf(isTooMany ? { ...OTHERS, key: kind.reason, reason: kind.reason } : kind)[as]++;
  }

  /** A product that waits because the process died while crawling it. */
  addDeath(): void {
    this.#countOf({ ...OTHERS, key: 'poison', reason: 'poison' }).waiting++;
  }

  /** The counts, bounded in number: at most MAX_MISS_KINDS and one more for each reason. */
  list(): MissCount[] {
    return [...this.#kinds.values()];
  }

  #countOf({ key, ...kind }: Kind): MissCount {
    const known = this.#kinds.get(key);
    if (known) return known;
    const count = { ...kind, products: 0, waiting: 0 };
    this.#kinds.set(key, count);
    return count;
  }
}

type Kind = Omit<MissCount, 'products' | 'waiting'> & { key: string };

const OTHERS = { detail: null, url: null };

/** Read once: each heartbeat counts thousands that wait. */
const kinds = new WeakMap<Miss, Kind>();

function kindOf(result: Miss): Kind {
  let kind = kinds.get(result);
  if (kind === undefined) {
    const detail = ledgerDetail(result);
    const reason: MissReason = result.outcome === 'gone' ? 'gone' : result.reason;
    const facts = failureKind(reason, detail);
    const url = result.url.length > MAX_MISS_CHARS ? null : result.url;
    const key = `${reason} ${signOf(facts)} ${facts.isScriptBuilt}`;
    kinds.set(result, (kind = { key, reason, detail: kindText(reason, detail).toWellFormed(), url }));
  }
  return kind;
}
