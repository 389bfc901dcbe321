/**
 * How the shop bans addresses, and what they do about it. A ban begins when a policy's limit is passed or when a test
 * says so; the request that begins it is refused already. From then on every page the address asks for is refused, and
 * counted: that count is what a crawler's manners are judged by.
 */
import { z } from 'zod';
import { behaviourSchema } from './behaviour-schema.ts';
import type { Behaviour } from './behaviour-schema.ts';

const addresses = z.union([z.literal('all'), z.array(z.string().min(1)).min(1)]);

const banSchema = z.strictObject({
  addresses,
  /** What a banned address gets instead of any page. */
  answer: behaviourSchema,
  /** null: until `unban`. */
  forMs: z.int().positive().nullable(),
});

const banPolicySchema = z.strictObject({
  addresses: addresses.default('all'),
  when: z.union([
    /** The so many-th request within the window. */
    z.strictObject({ requests: z.int().positive(), withinMs: z.int().positive() }),
    /** A request so soon after the one before. */
    z.strictObject({ gapMs: z.int().positive() }),
    /** The address's request of that number, once. */
    z.strictObject({ request: z.int().positive() }),
    /** The shop has had so many requests from everybody: each address once. */
    z.strictObject({ total: z.int().positive() }),
  ]),
  answer: behaviourSchema,
  /** null: for ever. */
  coolDownMs: z.int().positive().nullable(),
  /** A request during the ban makes it begin again. */
  renew: z.boolean().default(false),
  /** Bans at most so many different addresses: the first that pass the limit. */
  atMost: z.int().positive().optional(),
});

/** As posted to the shop. */
export type Ban = z.input<typeof banSchema>;
export type BanPolicy = z.input<typeof banPolicySchema>;

export interface BanStats {
  /** Bans begun. */
  bans: number;
  /** Pages refused, those that began a ban included. */
  refused: number;
  /** Most refusals in one ban: 1 is an address that stopped at once. */
  mostRefused: number;
  /** When the latest ban began and the latest request was refused, on the shop's clock. */
  bannedAtMs: number | null;
  lastRefusedAtMs: number | null;
}

interface ActiveBan {
  answer: Behaviour;
  untilMs: number;
  /** null: requests do not lengthen it. */
  renewMs: number | null;
  refused: number;
}

type Told = z.output<typeof banSchema> & { untilMs: number; seen: Set<string> };
type Policy = z.output<typeof banPolicySchema> & {
  done: Set<string>;
  seen: Map<string, number[]>;
  sinceTotal: number;
  banned: Set<string>;
};

export class Bans {
  #told: Told[] = [];
  #policies: Policy[] = [];
  readonly #active = new Map<string, ActiveBan>();
  readonly #stats = new Map<string, BanStats>();

  /** Bans addresses from now on. Throws ZodError on a ban that is none. */
  ban(value: unknown, nowMs: number): void {
    const ban = banSchema.parse(value);
    this.#told.push({ ...ban, untilMs: ban.forMs === null ? Infinity : nowMs + ban.forMs, seen: new Set() });
  }

  /** Replaces all policies; bans under way go on. Throws ZodError on a policy that is none. */
  setPolicies(value: unknown): void {
    this.#policies = z
      .array(banPolicySchema)
      .parse(value)
      .map((policy) => ({ ...policy, done: new Set(), seen: new Map(), sinceTotal: 0, banned: new Set() }));
  }

  /** Ends the bans of these addresses, or all of them. Policies stay. */
  unban(value: unknown): void {
    const which = addresses.parse(value);
    if (which === 'all') {
      this.#told = [];
      this.#active.clear();
      return;
    }
    for (const address of which) {
      this.#active.delete(address);
      for (const told of this.#told) told.seen.add(address);
    }
  }

  /** Forgets bans, policies and counts. */
  clear(): void {
    this.#told = [];
    this.#policies = [];
    this.#active.clear();
    this.#stats.clear();
  }

  /** What this address gets instead of the page it asks for; null when it is welcome. Counts the request. */
  take(address: string, nowMs: number): Behaviour | null {
    const active = this.#active.get(address);
    if (active && nowMs < active.untilMs) return this.#refuse(address, active, nowMs);
    this.#active.delete(address);
    const begun = this.#fromTold(address, nowMs) ?? this.#fromPolicies(address, nowMs);
    if (!begun) return null;
    this.#active.set(address, begun);
    const stats = this.#statsOf(address);
    stats.bans++;
    stats.bannedAtMs = nowMs;
    return this.#refuse(address, begun, nowMs);
  }

  /** What the address would get, without counting anything: for the parts of a page. */
  peek(address: string, nowMs: number): Behaviour | null {
    const active = this.#active.get(address);
    return active && nowMs < active.untilMs ? active.answer : null;
  }

  stats(): Record<string, BanStats> {
    return Object.fromEntries(this.#stats);
  }

  #refuse(address: string, ban: ActiveBan, nowMs: number): Behaviour {
    if (ban.renewMs !== null) ban.untilMs = nowMs + ban.renewMs;
    ban.refused++;
    const stats = this.#statsOf(address);
    stats.refused++;
    stats.mostRefused = Math.max(stats.mostRefused, ban.refused);
    stats.lastRefusedAtMs = nowMs;
    return ban.answer;
  }

  #statsOf(address: string): BanStats {
    let stats = this.#stats.get(address);
    if (!stats) {
      stats = { bans: 0, refused: 0, mostRefused: 0, bannedAtMs: null, lastRefusedAtMs: null };
      this.#stats.set(address, stats);
    }
    return stats;
  }

  #fromTold(address: string, nowMs: number): ActiveBan | null {
    const told = this.#told.find((ban) => concerns(ban, address) && nowMs < ban.untilMs && !ban.seen.has(address));
    if (!told) return null;
    told.seen.add(address);
    return { answer: told.answer, untilMs: told.untilMs, renewMs: null, refused: 0 };
  }

  #fromPolicies(address: string, nowMs: number): ActiveBan | null {
    let begun: ActiveBan | null = null;
    for (const policy of this.#policies) {
      if (!passes(policy, address, nowMs) || begun) continue;
      if (!policy.banned.has(address) && policy.banned.size >= (policy.atMost ?? Infinity)) continue;
      policy.banned.add(address);
      const { answer, coolDownMs, renew } = policy;
      const untilMs = coolDownMs === null ? Infinity : nowMs + coolDownMs;
      begun = { answer, untilMs, renewMs: renew ? coolDownMs : null, refused: 0 };
    }
    return begun;
  }
}

function concerns(ban: { addresses: 'all' | string[] }, address: string): boolean {
  return ban.addresses === 'all' || ban.addresses.includes(address);
}

/** Counts the request for the policy; true when it passes the limit. */
function passes(policy: Policy, address: string, nowMs: number): boolean {
  policy.sinceTotal++;
  if (!concerns(policy, address)) return false;
  const { when } = policy;
  const seen = policy.seen.get(address) ?? [];
  policy.seen.set(address, seen);
  if ('gapMs' in when) {
    const lastMs = seen[0];
    seen[0] = nowMs;
    return lastMs !== undefined && nowMs - lastMs < when.gapMs;
  }
  if ('requests' in when) {
    while (seen.length > 0 && nowMs - seen[0]! >= when.withinMs) seen.shift();
    seen.push(nowMs);
    if (seen.length < when.requests) return false;
    seen.length = 0;
    return true;
  }
  seen[0] = (seen[0] ?? 0) + 1;
  const reached = 'request' in when ? seen[0] >= when.request : policy.sinceTotal >= when.total;
  if (!reached || policy.done.has(address)) return false;
  policy.done.add(address);
  return true;
}
