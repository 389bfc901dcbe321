/** The many hosts of a simulated run: how many records each has, which never answer, and what each of them saw. */
import type { Random } from '../../../shared/ports/random.ts';
import { epochKey } from '../../../shared/domain/epoch-id.ts';
import type { Product } from '../../../shared/domain/product.ts';
import { cutNight } from '../plan/cut-hosts.ts';
import type { HostLoad, NightRules } from '../plan/host-sums.ts';
import type { ChunkRange } from '../../../shared/domain/sharing.ts';
import type { ManyHosts, Visitor } from './instance/site.ts';

/**
 * How records fall on hosts by Zipf's law: the n-th host has the n-th part of the first one's, to the power of
 * `exponent`; each at least one.
 */
export function zipfLoads(hosts: number, records: number, exponent: number): HostLoad[] {
  const weights = Array.from({ length: hosts }, (_, i) => (i + 1) ** -exponent);
  const spare = Math.max(0, records - hosts);
  const sum = weights.reduce((total, weight) => total + weight, 0);
  let before = 0;
  let given = 0;
  return weights.map((weight) => {
    before += weight;
    const until = Math.round((spare * before) / sum);
    const own = until - given;
    given = until;
    return { records: own + 1, delayMs: 0 };
  });
}

/** The list of a run, as its main server stores it. */
export interface HostList {
  /** In the order of their numbers. */
  productIds: string[];
  chunks: ChunkRange[];
  /** In the order in which they are crawled. */
  hosts: string[];
}

/**
 * The records of a night, host by host in the order in which they are crawled, and their chunks.
 *
 * @param size maximum requests of a chunk of whole hosts
 */
export function listOf(
  loads: readonly HostLoad[],
  rules: NightRules,
  { deadlineMs, size }: { deadlineMs: number; size: number },
): HostList {
  const named = loads.map((load, i) => ({ ...load, host: `host${i + 1}.simulation` }));
  const { hosts, chunks } = cutNight(named, rules, { deadlineMs, size });
  return {
    productIds: hosts.flatMap(({ host, products }) =>
      Array.from({ length: products }, (_, i) => `https://${host}/${i + 1}`),
    ),
    chunks,
    hosts: hosts.map(({ host }) => host),
  };
}

/** What all hosts of a run saw together. */
export interface HostsSeen {
  requests: number;
  /** The shortest time between two requests to one host, from any instance; null before any second one. */
  minGapMs: number | null;
  /** Requests of an instance to a host that another one had taken over from it. */
  twoOwners: number;
}

interface Seen {
  lastMs: number;
  owner: string;
  /** Those that had it before. */
  earlier: string[];
}

/** Hosts with a ledger: when each was asked, and by which instance. */
export class SimulatedHosts implements ManyHosts {
  readonly seen: HostsSeen = { requests: 0, minGapMs: null, twoOwners: 0 };
  readonly #now: () => number;
  readonly #silent: ReadonlySet<string>;
  readonly #requestsEach: number;
  readonly #hosts = new Map<string, Seen>();

  /** @param requestsEach requests of a record on average */
  constructor(now: () => number, silent: ReadonlySet<string>, requestsEach: number) {
    this.#now = now;
    this.#silent = silent;
    this.#requestsEach = requestsEach;
  }

  /** Spread evenly over each host too, as its records have successive numbers. */
  requestsOf({ n }: Product): number {
    return Math.floor(n * this.#requestsEach) - Math.floor((n - 1) * this.#requestsEach);
  }

  isSilent(host: string): boolean {
    return this.#silent.has(host);
  }

  onRequest(instance: Visitor, host: string): void {
    const nowMs = this.#now();
    const owner = epochKey(instance);
    const { seen } = this;
    seen.requests++;
    const known = this.#hosts.get(host);
    if (known === undefined) return void this.#hosts.set(host, { lastMs: nowMs, owner, earlier: [] });
    seen.minGapMs = Math.min(seen.minGapMs ?? Infinity, nowMs - known.lastMs);
    known.lastMs = nowMs;
    if (known.owner === owner) return;
    if (known.earlier.includes(owner)) seen.twoOwners++;
    known.earlier.push(known.owner);
    known.owner = owner;
  }
}

/** Draws which of these hosts never answer. */
export const drawSilent = (hosts: readonly string[], share: number, random: Random): Set<string> =>
  new Set(hosts.filter(() => random.next() < share));
