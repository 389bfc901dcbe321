/** Small test doubles for the parts around the queue. */
import { domainsOf } from '../../../crawl-api/queue/open-queue.ts';
import type { Log } from '../../../crawl-api/process/retry.ts';
import { type Domains, QueueState } from '../../../crawl-api/queue/queue-state.ts';
import { Queue } from '../../../crawl-api/queue/queue.ts';
import type { Reserve } from '../../../crawl-api/queue/reserve-file.ts';
import type { JournalRecord } from '../../../crawl-api/queue/records.ts';
import { domainOf, isAnyHost, type ProductUrl } from '../../../shared/domain/domains.ts';
import type { HostKey } from '../../../shared/domain/host-key.ts';
import type { Product } from '../../../shared/domain/product.ts';
import { VirtualClock } from '../../support/virtual-clock.ts';
import type { RobotsPolicy } from '../../../shared/domain/robots-matcher.ts';
import type { Orders } from '../../../shared/wire/callbacks.ts';
import type { ItemResult } from '../../../shared/wire/part.ts';

export const START_MS = Date.UTC(2026, 0, 1);

/** A journal in memory; `full` makes it refuse like a full disk. */
export class MemoryJournal {
  records: JournalRecord[] = [];
  full = false;
  syncs = 0;

  append(records: readonly JournalRecord[]): void {
    if (this.full) throw new Error('ENOSPC: no space left on device');
    // A copy, as on disk: later reads must not return the same object.
    this.records.push(...(JSON.parse(JSON.stringify(records)) as JournalRecord[]));
  }

  async sync(): Promise<void> {
    if (this.full) throw new Error('ENOSPC: no space left on device');
    this.syncs++;
  }

  /** The state of a restarted process. */
  replay(productUrl: ProductUrl = 'http://shop/{id}', hostKey?: HostKey): QueueState {
    const state = new QueueState(isAnyHost(productUrl) ? domainsOf(productUrl, hostKey) : ofSite(productUrl));
    for (const record of this.records) state.apply(record);
    return state;
  }
}

/** The domains of a site, whose hosts have one name. */
const ofSite = (productUrl: ProductUrl): Domains => ({
  of: (id) => domainOf(productUrl, id),
  hostOf: () => 'site',
});

export function createQueue(
  options: {
    clock?: VirtualClock;
    journal?: MemoryJournal;
    reserve?: Reserve;
    intervalMs?: number;
    deadlineMs?: number;
    productUrl?: ProductUrl;
    hostKey?: HostKey;
    leaseMs?: number;
  } = {},
): { queue: Queue; journal: MemoryJournal; clock: VirtualClock } {
  const clock = options.clock ?? new VirtualClock(START_MS);
  const journal = options.journal ?? new MemoryJournal();
  const { intervalMs = 1_000, deadlineMs = START_MS + 3_600_000, productUrl = 'http://shop/{id}', reserve } = options;
  const { leaseMs } = options;
  const defaults = { intervalMs, deadlineMs, productUrl, leaseMs, reserve };
  const queue = new Queue(journal.replay(productUrl, options.hostKey), journal, clock, defaults);
  return { queue, journal, clock };
}

export function products(first: number, last: number): Product[] {
  return Array.from({ length: last - first + 1 }, (_, i) => ({ n: first + i, id: `p${first + i}` }));
}

export function orders(changes: Partial<Orders> = {}): Orders {
  return {
    grants: [],
    drops: [],
    transfer: [],
    transferredAck: [],
    maxProducts: null,
    sealed: false,
    drain: false,
    fenced: false,
    partsAck: -1,
    intervalMs: 1_000,
    deadline: new Date(START_MS + 3_600_000).toISOString(),
    robots: null,
    returnProducts: false,
    verdict: null,
    canaryPage: null,
    ...changes,
  };
}

export function robots(changes: Partial<RobotsPolicy> = {}): RobotsPolicy {
  return { version: 'v1', access: 'all', rules: [], crawlDelayMs: null, source: 'a test', ...changes };
}

export function stored(n: number, text = 'x'): ItemResult {
  return {
    n,
    id: `p${n}`,
    url: `http://shop/${n}`,
    at: '2026-01-01T00:00:00.000Z',
    attempts: 1,
    outcome: 'stored',
    rows: [{ key: null, row: { text } }],
  };
}

export function failed(n: number, reason: 'http-status' | 'redirect' = 'http-status', attempts = 1): ItemResult {
  return {
    n,
    id: `p${n}`,
    url: `http://shop/${n}`,
    at: '2026-01-01T00:00:00.000Z',
    attempts,
    outcome: 'failed',
    reason,
    detail: 'd',
  };
}

/** Offers and grants products first … last as one chunk. */
export async function give(
  queue: Queue,
  chunk: string,
  [first, last]: [number, number],
  changes: Partial<Orders> = {},
): Promise<void> {
  await queue.offer({ chunk, share: 100_000, products: products(first, last) });
  await queue.follow(orders({ grants: [chunk], ...changes }));
}

/** A queue with the granted products 1 to `last`. */
export async function createGranted(last: number, changes: Partial<Orders> = {}, productUrl?: ProductUrl) {
  const world = createQueue(productUrl === undefined ? {} : { productUrl });
  await give(world.queue, '1-1', [1, last], changes);
  return world;
}

export const refusal = (refused: string, room = 0) => ({ taken: false, refused, room });

export const silentLog: Log = { info: () => undefined, warn: () => undefined, error: () => undefined };
