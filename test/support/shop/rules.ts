/**
 * How the shop misbehaves, and for which products. A product whose ID begins with a known prefix misbehaves by itself
 * (`500-a`, `hang-b`; `once-500-c` does so on its first request only); rules that a test sets come before that.
 */
import { z } from 'zod';
import type { Exchange } from './behaviours/behaviour.ts';
import { answerConnection, connectionShapes } from './behaviours/connection.ts';
import { answerContent, contentShapes } from './behaviours/content.ts';
import { answerStatus, statusShapes } from './behaviours/status.ts';

const behaviourSchema = z.discriminatedUnion('type', [...statusShapes, ...connectionShapes, ...contentShapes]);
export type Behaviour = z.output<typeof behaviourSchema>;

export const rulesSchema = z.array(
  z
    .strictObject({
      /** Exactly this product. */
      id: z.string().optional(),
      /** Every product whose ID begins so; '' is every product. */
      prefix: z.string().optional(),
      /** Only the first so many requests that the rule applies to; without it all. */
      times: z.int().positive().optional(),
      do: behaviourSchema,
    })
    .refine((rule) => (rule.id === undefined) !== (rule.prefix === undefined), 'must have one of id and prefix'),
);

/** As posted to the shop. */
export type Rule = z.input<typeof rulesSchema>[number];

const PREFIXES: Record<string, Behaviour> = {
  '403-': { type: 'status', status: 403 },
  '404-': { type: 'status', status: 404 },
  '410-': { type: 'status', status: 410 },
  '429-': { type: 'status', status: 429, retryAfter: '5' },
  '500-': { type: 'status', status: 500 },
  '503-': { type: 'status', status: 503 },
  'redirect-': { type: 'redirect', to: '/verify', status: 302 },
  'hang-': { type: 'hang', afterBytes: 0 },
  'stall-': { type: 'hang', afterBytes: 2_000 },
  'reset-': { type: 'reset', afterBytes: 0 },
  'cut-': { type: 'reset', afterBytes: 2_000 },
  'slow-': { type: 'slow', ms: 1_000 },
  'untitled-': { type: 'missing-field', fields: ['title'] },
  'unpriced-': { type: 'missing-field', fields: ['price'] },
  'pdf-': { type: 'content-type', value: 'application/pdf' },
  'huge-': { type: 'huge', bytes: 20_000_000 },
  'empty-': { type: 'empty' },
};

const ONCE = 'once-';

/** What the prefix of the ID alone makes of the product; null when the ID has no such prefix. */
export function behaviourOfPrefix(id: string): { behaviour: Behaviour; once: boolean } | null {
  const once = id.startsWith(ONCE);
  const rest = once ? id.slice(ONCE.length) : id;
  const prefix = /^[a-z0-9]+-/.exec(rest)?.[0];
  const behaviour = prefix === undefined ? undefined : PREFIXES[prefix];
  return behaviour ? { behaviour, once } : null;
}

export class Rules {
  #rules: z.output<typeof rulesSchema> = [];
  #used: number[] = [];
  readonly #misbehavedOnce = new Set<string>();

  /** Replaces all rules. Throws ZodError on a rule that is none. */
  set(rules: unknown): void {
    this.#rules = rulesSchema.parse(rules);
    this.#used = this.#rules.map(() => 0);
  }

  /** Forgets rules and counts. */
  clear(): void {
    this.set([]);
    this.#misbehavedOnce.clear();
  }

  /** How to treat this request for the product; counts it. null: as a good shop does. */
  take(id: string): Behaviour | null {
    for (const [index, rule] of this.#rules.entries()) {
      const fits = rule.id === undefined ? id.startsWith(rule.prefix!) : rule.id === id;
      if (!fits || this.#used[index]! >= (rule.times ?? Infinity)) continue;
      this.#used[index]!++;
      return rule.do;
    }
    const own = behaviourOfPrefix(id);
    if (!own || (own.once && this.#misbehavedOnce.has(id))) return null;
    if (own.once) this.#misbehavedOnce.add(id);
    return own.behaviour;
  }
}

/** Answers the request as the behaviour says. */
export function misbehave(exchange: Exchange, behaviour: Behaviour): void {
  switch (behaviour.type) {
    case 'status':
    case 'redirect':
      return answerStatus(exchange, behaviour);
    case 'hang':
    case 'reset':
    case 'slow':
      return answerConnection(exchange, behaviour);
    case 'missing-field':
    case 'content-type':
    case 'huge':
    case 'empty':
      return answerContent(exchange, behaviour);
  }
}
