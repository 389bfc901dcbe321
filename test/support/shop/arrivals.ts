/**
 * The shop's request log: when each address requested what. A gap is the time between the arrivals of two page requests
 * from one address, whichever pages they are: that is what a site would measure. robots.txt, and the parts that a
 * browser fetches for a page, are counted separately; so are sitemaps.
 */

/** data: requests by a page's script; asset: pictures, fonts, films and the like. */
export type ArrivalKind = 'page' | 'robots' | 'sitemap' | 'data' | 'asset';

export interface Arrival {
  seq: number;
  kind: ArrivalKind;
  address: string;
  method: string;
  /** As sent: percent-encoded, with the query. */
  path: string;
  /** Product ID, decoded; null when the path is not a product page. Of a POST, the one that its body names. */
  id: string | null;
  /** What a POST has sent; omitted until it has arrived. */
  body?: string;
  userAgent: string;
  /** By name, in lower case. */
  headers: NodeJS.Dict<string | string[]>;
  /** Monotonic ms since the shop's start. */
  atMs: number;
  wallMs: number;
  /** Page requests of this address in progress, including this one. */
  concurrency: number;
  /** null until the response was sent; 0 when the connection ended without one. */
  status: number | null;
}

/** The gaps between these arrivals, of all addresses, in milliseconds. */
export const gapsOf = (arrivals: readonly Arrival[]): number[] =>
  [...Map.groupBy(arrivals, ({ address }) => address).values()].flatMap((own) =>
    own.slice(1).map(({ atMs }, i) => atMs - own[i]!.atMs),
  );

interface AddressStats {
  requests: number;
  /** null with fewer than two page requests. */
  minGapMs: number | null;
  maxConcurrency: number;
}

export interface ShopStats {
  /** Page requests. */
  requests: number;
  /** Smallest gap of any address; null when no address has sent two page requests. */
  minGapMs: number | null;
  addresses: Record<string, AddressStats>;
  /** Page requests by path, as sent. */
  paths: Record<string, number>;
  robotsRequests: number;
  sitemapRequests: number;
  dataRequests: number;
  /** Asset requests by path, as sent. */
  assets: Record<string, number>;
  /** Pages refused to each banned address; 1 means that it stopped immediately. */
  refused: Record<string, number>;
}

export class Arrivals {
  #entries: Arrival[] = [];
  #underWay = new Map<string, number>();

  /** Records an arrival; `end` completes the entry when the exchange is over. */
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

  /** Forgets the arrivals; requests in progress still count for concurrency. */
  clear(): void {
    this.#entries = [];
  }

  /** The totals so far, without the refused pages (bans.ts). */
  stats(): Omit<ShopStats, 'refused'> {
    const addresses = new Map<string, AddressStats>();
    const lastMs = new Map<string, number>();
    const paths = new Map<string, number>();
    const assets = new Map<string, number>();
    const counts = { page: 0, robots: 0, sitemap: 0, data: 0, asset: 0 };
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
      sitemapRequests: counts.sitemap,
      dataRequests: counts.data,
      assets: Object.fromEntries(assets),
    };
  }
}
