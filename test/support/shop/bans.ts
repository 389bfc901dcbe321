/**
 * How the shop bans addresses, and how they react. A ban begins when an address passes a policy's limit or when a test
 * orders it; the request that triggers it is already refused. From then on every page request of the address is refused
 * and counted: tests judge the crawler's behaviour by that count.
 */
import { z } from 'zod';
import { behaviourSchema } from './behaviour-schema.ts';
import type { Behaviour } from './behaviour-schema.ts';

const addresses = z.union([z.literal('all'), z.array(z.string().min(1)).min(1)]);

const banSchema = z.strictObject({
  addresses,
  /** The response to every page request of a banned address. */
  answer: behaviourSchema,
  /** null: until `unban` is called. */
  forMs: z.int().positive().nullable(),
});

const banPolicySchema = z.strictObject({
  addresses: addresses.default('all'),
  when: z.union([
    /** An address sends this many requests within the window. */
    z.strictObject({ requests: z.int().positive(), withinMs: z.int().positive() }),
    /** The gap to the previous request is shorter than this. */
    z.strictObject({ gapMs: z.int().positive() }),
    /** The address sends its request with this number; once per address. */
    z.strictObject({ request: z.int().positive() }),
    /** The shop has received this many requests in total; once per address. */
    z.strictObject({ total: z.int().positive() }),
  ]),
  answer: behaviourSchema,
  /** null: permanent. */
  coolDownMs: z.int().positive().nullable(),
  /** A request during the ban restarts it. */
  renew: z.boolean().default(false),
  /** Maximum number of different addresses to ban: the first that pass the limit. */
  atMost: z.int().positive().optional(),
});

/** The JSON that tests post to the shop. */
export type Ban = z.input<typeof banSchema>;
export type BanPolicy = z.input<typeof banPolicySchema>;

export interface BanStats {
  /** Bans begun. */
  bans: number;
  /** Pages refused, including those that triggered a ban. */
  refused: number;
  /** Maximum number of refusals in one ban: 1 means that the address stopped immediately. */
  mostRefused: number;
  /** Start of the latest ban and time of the latest refusal, on the shop's clock. */
  bannedAtMs: number | null;
  lastRefusedAtMs: number | null;
}

interface ActiveBan {
  answer: Behaviour;
  untilMs: number;
  /** null: requests do not extend the ban. */
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

  /** Bans addresses from now on. Throws ZodError on an invalid ban. */
  ban(value: unknown, nowMs: number): void {
    const ban = banSchema.parse(value);
    this.#told.push({ ...ban, untilMs: ban.forMs === null ? Infinity : nowMs + ban.forMs, seen: new Set() });
  }

  /** Replaces all policies; active bans continue. Throws ZodError on an invalid policy. */
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

  /** The response to this address instead of the page; null when it is not banned. Counts the request. */
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

  /** Like `take`, but without counting: for the parts of a page. */
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

/** Counts the request under the policy; true when it passes the limit. */
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
