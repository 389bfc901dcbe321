/**
 * How the shop bans addresses. A ban begins when an address sends a policy's nth request, which is already refused.
 * From then on every page request of the address is refused and counted: tests judge the crawler by that count.
 */
import { z } from 'zod';
import { type Behaviour, behaviourSchema } from './behaviour-schema.ts';

const banPolicySchema = z.strictObject({
  /** The address sends its request with this number; once per address. */
  when: z.strictObject({ request: z.int().positive() }),
  /** The response to every page request of a banned address. */
  answer: behaviourSchema,
  /** null: permanent. */
  coolDownMs: z.int().positive().nullable(),
  /** Maximum number of different addresses to ban: the first that get there. */
  atMost: z.int().positive().optional(),
});

/** The JSON that tests post to the shop. */
export type BanPolicy = z.input<typeof banPolicySchema>;

export interface BanStats {
  /** Bans begun. */
  bans: number;
  /** Pages refused, including those that triggered a ban. */
  refused: number;
  /** Maximum number of refusals in one ban: 1 means that the address stopped immediately. */
  mostRefused: number;
  /** Start of the latest ban, on the shop's clock. */
  bannedAtMs: number | null;
}

interface ActiveBan {
  answer: Behaviour;
  untilMs: number;
  refused: number;
}

type Policy = z.output<typeof banPolicySchema> & { requests: Map<string, number>; banned: Set<string> };

export class Bans {
  #policies: Policy[] = [];
  readonly #active = new Map<string, ActiveBan>();
  readonly #stats = new Map<string, BanStats>();

  /** Replaces all policies; active bans continue. Throws ZodError on an invalid policy. */
  setPolicies(value: unknown): void {
    this.#policies = z
      .array(banPolicySchema)
      .parse(value)
      .map((policy) => ({ ...policy, requests: new Map(), banned: new Set() }));
  }

  /** Forgets bans, policies and counts. */
  clear(): void {
    this.#policies = [];
    this.#active.clear();
    this.#stats.clear();
  }

  /** The response to this address instead of the page; null when it is not banned. Counts the request. */
  take(address: string, nowMs: number): Behaviour | null {
    const active = this.#active.get(address);
    if (active && nowMs < active.untilMs) return this.#refuse(address, active);
    this.#active.delete(address);
    const begun = this.#begin(address, nowMs);
    if (!begun) return null;
    this.#active.set(address, begun);
    const stats = this.#statsOf(address);
    stats.bans++;
    stats.bannedAtMs = nowMs;
    return this.#refuse(address, begun);
  }

  /** Like `take`, but without counting: for the parts of a page. */
  peek(address: string, nowMs: number): Behaviour | null {
    const active = this.#active.get(address);
    return active && nowMs < active.untilMs ? active.answer : null;
  }

  stats(): Record<string, BanStats> {
    return Object.fromEntries(this.#stats);
  }

  #refuse(address: string, ban: ActiveBan): Behaviour {
    ban.refused++;
    const stats = this.#statsOf(address);
    stats.refused++;
    stats.mostRefused = Math.max(stats.mostRefused, ban.refused);
    return ban.answer;
  }

  #statsOf(address: string): BanStats {
    let stats = this.#stats.get(address);
    if (!stats) this.#stats.set(address, (stats = { bans: 0, refused: 0, mostRefused: 0, bannedAtMs: null }));
    return stats;
  }

  /** Counts the request under every policy; the first whose number it has begins a ban. */
  #begin(address: string, nowMs: number): ActiveBan | null {
    let begun: ActiveBan | null = null;
    for (const { requests, banned, when, answer, coolDownMs, atMost = Infinity } of this.#policies) {
      const number = (requests.get(address) ?? 0) + 1;
      requests.set(address, number);
      if (begun || number < when.request || banned.has(address) || banned.size >= atMost) continue;
      banned.add(address);
      begun = { answer, untilMs: coolDownMs === null ? Infinity : nowMs + coolDownMs, refused: 0 };
    }
    return begun;
  }
}
