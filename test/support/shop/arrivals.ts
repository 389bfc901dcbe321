/**
 * The referee's notebook: when which address asked for what. Gaps are between the arrivals of two requests from one
 * address, whatever they ask for: that is what a site would count.
 */

export interface Arrival {
  seq: number;
  address: string;
  method: string;
  /** As sent: percent-encoded, with the query. */
  path: string;
  /** Product ID, decoded; null when the path is no product page. */
  id: string | null;
  userAgent: string;
  /** Milliseconds on a clock that never goes back, since the shop's start. */
  atMs: number;
  wallMs: number;
  /** Requests of this address under way, this one included. */
  concurrency: number;
  /** null until the answer was sent; 0 when the connection ended without one. */
  status: number | null;
}

export interface AddressStats {
  requests: number;
  /** null with fewer than two requests. */
  minGapMs: number | null;
  maxConcurrency: number;
}

export interface ShopStats {
  requests: number;
  /** Smallest gap of any address; null when none has sent two requests. */
  minGapMs: number | null;
  addresses: Record<string, AddressStats>;
  /** Requests by path, as sent. */
  paths: Record<string, number>;
}

export class Arrivals {
  #entries: Arrival[] = [];
  #underWay = new Map<string, number>();

  /** Notes an arrival; the result is completed by `end` when the exchange is over. */
  add(arrival: Omit<Arrival, 'seq' | 'concurrency' | 'status'>): Arrival {
    const concurrency = (this.#underWay.get(arrival.address) ?? 0) + 1;
    this.#underWay.set(arrival.address, concurrency);
    const entry: Arrival = { seq: this.#entries.length + 1, ...arrival, concurrency, status: null };
    this.#entries.push(entry);
    return entry;
  }

  end(entry: Arrival, status: number): void {
    entry.status = status;
    this.#underWay.set(entry.address, (this.#underWay.get(entry.address) ?? 1) - 1);
  }

  list(): readonly Arrival[] {
    return this.#entries;
  }

  /** Forgets what has arrived; what is under way still counts for concurrency. */
  clear(): void {
    this.#entries = [];
  }

  stats(): ShopStats {
    const addresses = new Map<string, AddressStats>();
    const lastMs = new Map<string, number>();
    const paths = new Map<string, number>();
    let minGapMs: number | null = null;
    for (const { address, atMs, path, concurrency } of this.#entries) {
      paths.set(path, (paths.get(path) ?? 0) + 1);
      const known = addresses.get(address);
      if (!known) {
        addresses.set(address, { requests: 1, minGapMs: null, maxConcurrency: concurrency });
        lastMs.set(address, atMs);
        continue;
      }
      const gapMs = atMs - lastMs.get(address)!;
      known.requests++;
      known.minGapMs = Math.min(known.minGapMs ?? Infinity, gapMs);
      known.maxConcurrency = Math.max(known.maxConcurrency, concurrency);
      lastMs.set(address, atMs);
      minGapMs = Math.min(minGapMs ?? Infinity, gapMs);
    }
    return {
      requests: this.#entries.length,
      minGapMs,
      addresses: Object.fromEntries(addresses),
      paths: Object.fromEntries(paths),
    };
  }
}
