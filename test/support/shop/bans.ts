/**
 * How the shop bans addresses, starting with the request that a policy names. Tests judge the crawler by the number of
 * pages that a banned address has requested.
 */
import { z } from 'zod';
import { type Behaviour, behaviourSchema } from './behaviour-schema.ts';

const banPolicySchema = z.strictObject({
  /**
   * The address sends its request with this number, counted from when the policy was set, or from the end of a ban.
   * With `underMs` only those count that come sooner than this after the one before.
   */
  when: z.strictObject({ request: z.int().positive(), underMs: z.number().positive().default(Infinity) }),
  /** The response to every page request of a banned address. */
  answer: behaviourSchema,
  /** Maximum number of different addresses to ban: the first that get there. */
  atMost: z.int().positive().default(Infinity),
  /** How long a ban lasts, whatever the address sends; default: forever. */
  forMs: z.number().positive().default(Infinity),
});

/** The JSON that tests post to the shop. */
export type BanPolicy = z.input<typeof banPolicySchema>;

/** The requests of one address that a policy counts. */
interface Count {
  requests: number;
  lastMs: number;
}

export class Bans {
  #policies: (z.output<typeof banPolicySchema> & { banned: number; counts: Map<string, Count> })[] = [];
  readonly #active = new Map<string, { answer: Behaviour; refused: number; untilMs: number }>();
  readonly #now: () => number;

  /** `now`: monotonic, in milliseconds. */
  constructor(now = (): number => performance.now()) {
    this.#now = now;
  }

  /** Replaces all policies; bans continue. Throws ZodError on an invalid policy. */
  setPolicies(value: unknown): void {
    this.#policies = z
      .array(banPolicySchema)
      .parse(value)
      .map((policy) => ({ ...policy, banned: 0, counts: new Map() }));
  }

  /** Forgets bans, policies and counts. */
  clear(): void {
    this.setPolicies([]);
    this.#active.clear();
  }

  /** The response to this address instead of the page; null when it is not banned. Counts the request. */
  take(address: string): Behaviour | null {
    if (!this.#isBanned(address)) this.#judge(address);
    if (!this.#isBanned(address)) return null;
    const ban = this.#active.get(address)!;
    ban.refused++;
    return ban.answer;
  }

  /** Like `take`, but without counting: for the parts of a page. */
  peek(address: string): Behaviour | null {
    return this.#isBanned(address) ? this.#active.get(address)!.answer : null;
  }

  /** Refused pages by banned address; 1 means that it stopped immediately. */
  refused(): Record<string, number> {
    return Object.fromEntries([...this.#active].map(([address, { refused }]) => [address, refused]));
  }

  #isBanned(address: string): boolean {
    return (this.#active.get(address)?.untilMs ?? 0) > this.#now();
  }

  #judge(address: string): void {
    const nowMs = this.#now();
    for (const { when, counts } of this.#policies) {
      const { requests, lastMs } = counts.get(address) ?? { requests: 0, lastMs: -Infinity };
      const isCounted = when.underMs === Infinity || nowMs - lastMs < when.underMs;
      counts.set(address, { requests: isCounted ? requests + 1 : requests, lastMs: nowMs });
    }
    const policy = this.#policies.find(
      ({ when, banned, atMost, counts }) => counts.get(address)!.requests >= when.request && banned < atMost,
    );
    if (!policy) return;
    policy.banned++;
    const refused = this.#active.get(address)?.refused ?? 0;
    this.#active.set(address, { answer: policy.answer, refused, untilMs: nowMs + policy.forMs });
    for (const { counts } of this.#policies) counts.delete(address);
  }
}
