/**
 * Cuts the products of a run into chunks of whole hosts, or of slices of one: no two instances ask one host at the same
 * time. Pure; docs/decisions/0053-many-hosts.md.
 */
import { hostGapMs } from '../../../shared/domain/host-policy.ts';
import { type ChunkRange, MAX_CHUNK } from '../../../shared/domain/sharing.ts';
import { type HostLoad, nightOfHost, type NightRules } from './host-sums.ts';

/** The products of one host. */
export interface HostProducts {
  products: number;
  /** The time of one product at the pace of the host: its gap, times its requests. Milliseconds. */
  gapMs: number;
}

/** The slices of a long host, as a share of the window, and at most. */
const SLICE_OF_WINDOW = 1 / 20;
const MOST_SLICE_MS = 20 * 60_000;

const lengthMs = ({ products, gapMs }: HostProducts): number => products * gapMs;

/**
 * The order in which hosts are crawled, and their products are numbered: the longest first, because no instance can
 * make up for what begins late there.
 */
export const inCrawlOrder = <T extends HostProducts>(hosts: readonly T[]): T[] =>
  hosts.toSorted((a, b) => lengthMs(b) - lengthMs(a));

/**
 * What a night crawls of these hosts, in the order in which it does, and its chunks.
 *
 * @param size maximum requests of a chunk of whole hosts
 */
export function cutNight<T extends HostLoad>(
  loads: readonly T[],
  rules: NightRules,
  { deadlineMs, size }: { deadlineMs: number; size: number },
): { hosts: (T & HostProducts)[]; chunks: ChunkRange[] } {
  const hosts = inCrawlOrder(
    loads.map((load) => ({
      ...load,
      products: nightOfHost(load, rules).records,
      gapMs: load.isDenied ? 0 : hostGapMs(rules.intervalMs, load.delayMs) * rules.requestsEach,
    })),
  );
  return { hosts, chunks: cutByHost(hosts, deadlineMs, size) };
}

/**
 * The chunks of hosts whose products are numbered in this order. A host that takes longer than a slice is cut into
 * chunks of its own. The others go whole into chunks of `size` requests at most, each with one more request than its
 * products: its robots.txt.
 *
 * @param windowMs the time from the start of the run to its deadline
 * @param size maximum requests of a chunk, but for those of a single host
 */
export function cutByHost(hosts: readonly HostProducts[], windowMs: number, size: number): ChunkRange[] {
  const sliceMs = Math.min(windowMs * SLICE_OF_WINDOW, MOST_SLICE_MS);
  const chunks: ChunkRange[] = [];
  let first = 1;
  let open = { products: 0, hosts: 0, longestMs: 0 };
  const add = (products: number, chunkHosts: NonNullable<ChunkRange['hosts']>): void => {
    chunks.push({ index: chunks.length + 1, first, last: first + products - 1, hosts: chunkHosts });
    first += products;
  };
  const close = (): void => {
    if (open.products > 0) add(open.products, { sliceOf: null, leftMs: Math.round(open.longestMs) });
    open = { products: 0, hosts: 0, longestMs: 0 };
  };
  for (const host of hosts) {
    const { products, gapMs } = host;
    const each = Math.min(MAX_CHUNK, Math.max(1, Math.floor(sliceMs / Math.max(1, gapMs))));
    if (products > each) {
      close();
      const sliceOf = chunks.length + 1;
      for (let left = products; left > 0; left -= each)
        add(Math.min(each, left), { sliceOf, leftMs: Math.round(left * gapMs) });
      continue;
    }
    if (products === 0) continue;
    const isFull = open.products + open.hosts + products + 1 > size || open.products + products > MAX_CHUNK;
    if (isFull) close();
    open = {
      products: open.products + products,
      hosts: open.hosts + 1,
      longestMs: Math.max(open.longestMs, lengthMs(host)),
    };
  }
  close();
  return chunks;
}
