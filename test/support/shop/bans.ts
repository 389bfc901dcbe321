/**
 * How the shop bans addresses: permanently, starting with the request that a policy names. Tests judge
 * the crawler by the number of pages that a banned address has requested.
 */
import { z } from 'zod';
import { type Behaviour, behaviourSchema } from './behaviour-schema.ts';

const banPolicySchema = z.strictObject({
  /** The address sends its request with this number, counted from when the policy was set. */
  when: z.strictObject({ request: z.int().positive() }),
  /** The response to every page request of a banned address. */
  answer: behaviourSchema,
  /** Maximum number of different addresses to ban: the first that get there. */
  atMost: z.int().positive().default(Infinity),
});

/** The JSON that tests post to the shop. */
export type BanPolicy = z.input<typeof banPolicySchema>;

export class Bans {
  #policies: (z.output<typeof banPolicySchema> & { banned: number })[] = [];
  #requests = new Map<string, number>();
  readonly #active = new Map<string, { answer: Behaviour; refused: number }>();

  /** Replaces all policies; bans continue. Throws ZodError on an invalid policy. */
  setPolicies(value: unknown): void {
    this.#policies = z
      .array(banPolicySchema)
      .parse(value)
      .map((policy) => ({ ...policy, banned: 0 }));
    this.#requests = new Map();
  }

  /** Forgets bans, policies and counts. */
  clear(): void {
    this.setPolicies([]);
    this.#active.clear();
  }

  /** The response to this address instead of the page; null when it is not banned. Counts the request. */
  take(address: string): Behaviour | null {
    if (!this.#active.has(address)) this.#judge(address);
    const ban = this.#active.get(address);
    if (!ban) return null;
    ban.refused++;
    return ban.answer;
  }

  /** Like `take`, but without counting: for the parts of a page. */
  peek(address: string): Behaviour | null {
    return this.#active.get(address)?.answer ?? null;
  }

  /** Refused pages by banned address; 1 means that it stopped immediately. */
  refused(): Record<string, number> {
    return Object.fromEntries([...this.#active].map(([address, { refused }]) => [address, refused]));
  }

  #judge(address: string): void {
    const number = (this.#requests.get(address) ?? 0) + 1;
    this.#requests.set(address, number);
    const policy = this.#policies.find(({ when, banned, atMost }) => number >= when.request && banned < atMost);
    if (!policy) return;
    policy.banned++;
    this.#active.set(address, { answer: policy.answer, refused: 0 });
  }
}
