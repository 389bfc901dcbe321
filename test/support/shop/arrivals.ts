/**
 * The referee's notebook: when which address asked for what. Gaps are between the arrivals of two requests for pages
 * from one address, whichever pages they are: that is what a site would count. robots.txt, and the parts that a browser
 * fetches for a page, have counters of their own.
 */
import type { BanStats } from './bans.ts';

/** data: what a page's script asks for; asset: pictures, fonts, films and the like. */
export type ArrivalKind = 'page' | 'robots' | 'data' | 'asset';

export interface Arrival {
  seq: number;
  kind: ArrivalKind;
  address: string;
  method: string;
  /** As sent: percent-encoded, with the query. */
  path: string;
  /** Product ID, decoded; null when the path is no page of a product. */
  id: string | null;
  userAgent: string;
  /** Milliseconds on a monotonic clock, since the shop's start. */
  atMs: number;
  wallMs: number;
  /** Requests of this address for pages under way, this one included. */
  concurrency: number;
  /** null until the answer was sent; 0 when the connection ended without one. */
  status: number | null;
}

interface AddressStats {
  requests: number;
  /** null with fewer than two requests. */
  minGapMs: number | null;
  maxConcurrency: number;
}

export interface ShopStats {
  /** For pages. */
  requests: number;
  /** Smallest gap of any address; null when none has sent two requests. */
  minGapMs: number | null;
  addresses: Record<string, AddressStats>;
  /** Requests for pages by path, as sent. */
  paths: Record<string, number>;
  robotsRequests: number;
  dataRequests: number;
  /** Requests for assets by path, as sent. */
  assets: Record<string, number>;
  /** Addresses that were banned, and what they did about it. */
  bans: Record<string, BanStats>;
}

export class Arrivals {
  #entries: Arrival[] = [];
  #underWay = new Map<string, number>();

  /** Notes an arrival; the result is completed by `end` when the exchange is over. */
  add(arrival: Omit<Arrival, 'seq' | 'concurrency' | 'status'>): Arrival {
    const concurrency = (this.#underWay.get(arrival.address) ?? 0) + (arrival.kind === 'page' ? 1 : 0);
    this.#underWay.set(arrival.address, concurrency);
    const entry: Arrival = { seq: this.#entries.length + 1, ...arrival, concurrency, status: null };
    this.#entries.push(entry);
    return entry;
  }

  end(entry: Arrival, status: number): void {
    entry.status = status;
    if (entry.kind === 'page') this.#underWay.set(entry.address, (this.#underWay.get(entry.address) ?? 1) - 1);
  }

  list(): readonly Arrival[] {
    return this.#entries;
  }

  /** Forgets what has arrived; what is under way still counts for concurrency. */
  clear(): void {
    this.#entries = [];
  }

  /** The sums so far; bans are counted elsewhere. */
  stats(): Omit<ShopStats, 'bans'> {
    const addresses = new Map<string, AddressStats>();
    const lastMs = new Map<string, number>();
    const paths = new Map<string, number>();
    const assets = new Map<string, number>();
    const counts = { page: 0, robots: 0, data: 0, asset: 0 };
    let minGapMs: number | null = null;
    for (const { kind, address, atMs, path, concurrency } of this.#entries) {
      counts[kind]++;
      if (kind === 'asset') assets.set(path, (assets.get(path) ?? 0) + 1);
      if (kind !== 'page') continue;
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
      requests: counts.page,
      minGapMs,
      addresses: Object.fromEntries(addresses),
      paths: Object.fromEntries(paths),
      robotsRequests: counts.robots,
      dataRequests: counts.data,
      assets: Object.fromEntries(assets),
    };
  }
}
