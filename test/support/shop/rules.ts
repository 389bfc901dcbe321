/**
 * Which products misbehave, how, and how often: rules set by a test take precedence over the prefix of the ID
 * (prefixes.ts).
 */
import { z } from 'zod';
import { type Behaviour, behaviourSchema } from './behaviour-schema.ts';
import { behaviourOfPrefix } from './prefixes.ts';

export const rulesSchema = z.array(
  z
    .strictObject({
      /** Exactly this product. */
      id: z.string().optional(),
      /** Every product whose ID starts with this; '' matches every product. */
      prefix: z.string().optional(),
      /** Only requests with exactly this query, such as `page=2`; default: with any. */
      query: z.string().optional(),
      /** Maximum number of requests the rule applies to; default: no limit. */
      times: z.int().positive().optional(),
      do: behaviourSchema,
    })
    .refine((rule) => (rule.id === undefined) !== (rule.prefix === undefined), 'must have one of id and prefix'),
);

/** The JSON that tests post to the shop. */
export type Rule = z.input<typeof rulesSchema>[number];

export class Rules {
  #rules: z.output<typeof rulesSchema> = [];
  #used: number[] = [];
  readonly #misbehavedOnce = new Set<string>();

  /** Replaces all rules. Throws ZodError on an invalid rule. */
  set(rules: unknown): void {
    this.#rules = rulesSchema.parse(rules);
    this.#used = this.#rules.map(() => 0);
  }

  /** Forgets rules and counts. */
  clear(): void {
    this.set([]);
    this.#misbehavedOnce.clear();
  }

  /** The behaviour for this request for the product; counts it. null: a normal page. */
  take(id: string, query = ''): Behaviour | null {
    for (const [index, rule] of this.#rules.entries()) {
      const fits = rule.id === undefined ? id.startsWith(rule.prefix!) : rule.id === id;
      if (!fits || (rule.query ?? query) !== query || this.#used[index]! >= (rule.times ?? Infinity)) continue;
      this.#used[index]!++;
      return rule.do;
    }
    const own = behaviourOfPrefix(id);
    if (!own || (own.once && this.#misbehavedOnce.has(id))) return null;
    if (own.once) this.#misbehavedOnce.add(id);
    return own.behaviour;
  }
}
