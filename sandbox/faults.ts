/**
 * What the sandbox has been told to do wrong. Rules come in through the control route, are used up in the order they came,
 * and each kind of fault is one member of the union below: a new kind is a new member and the place that asks for it.
 */
import { z } from 'zod';

const count = z.int().min(1).max(1_000_000);
/** An action of any service (`RunInstances`, `RegisterTargets`, `PutObject`), or `*` for all. */
const action = z.string().min(1).max(100);

export const faultRuleSchema = z.discriminatedUnion('what', [
  /** The call is refused with this code and has no effect. */
  z.strictObject({
    what: z.literal('error'),
    action,
    code: z.string().min(1).max(100),
    message: z.string().max(1_000).exactOptional(),
    status: z.int().min(400).max(599).exactOptional(),
    count,
  }),
  /** The call takes effect and its connection is reset instead of answered. */
  z.strictObject({ what: z.literal('lost-reply'), action, count }),
  /** The call takes effect at once; its answer comes `ms` later. */
  z.strictObject({ what: z.literal('delay'), action, ms: z.int().min(1).max(3_600_000), count }),
  /** The next instances run, but nothing starts on them. */
  z.strictObject({ what: z.literal('silent-boot'), count }),
  /** On the next instances the program exits with 1 each time it is started. */
  z.strictObject({ what: z.literal('dead-boot'), count }),
]);
export type FaultRule = z.infer<typeof faultRuleSchema>;

/** What happens to one API call. */
export interface CallFaults {
  error: { code: string; message: string; status: number } | null;
  loseReply: boolean;
  delayMs: number;
}

/** Codes that AWS does not answer with 400. */
const STATUS_OF_CODE: Record<string, number> = {
  InternalError: 500,
  InternalFailure: 500,
  Unavailable: 503,
  ServiceUnavailable: 503,
  SlowDown: 503,
  RequestLimitExceeded: 503,
  InsufficientInstanceCapacity: 500,
  UnauthorizedOperation: 403,
  AccessDenied: 403,
  ExpiredToken: 400,
};

export class FaultBook {
  #rules: FaultRule[] = [];

  /** Rules that are not used up, with what is left of their counts. */
  get rules(): readonly FaultRule[] {
    return this.#rules;
  }

  add(rules: readonly FaultRule[]): void {
    this.#rules.push(...rules.map((rule) => ({ ...rule })));
  }

  clear(): void {
    this.#rules = [];
  }

  /** Faults of the call that is being made; uses one of each matching kind up. An error stands alone. */
  takeForCall(name: string): CallFaults {
    const matches = (rule: { action: string }): boolean => rule.action === '*' || rule.action === name;
    const error = this.#take((rule) => rule.what === 'error' && matches(rule));
    if (error?.what === 'error') {
      return {
        error: {
          code: error.code,
          message: error.message ?? `Fault injected: ${error.code}`,
          status: error.status ?? STATUS_OF_CODE[error.code] ?? 400,
        },
        loseReply: false,
        delayMs: 0,
      };
    }
    const delay = this.#take((rule) => rule.what === 'delay' && matches(rule));
    const lost = this.#take((rule) => rule.what === 'lost-reply' && matches(rule));
    return { error: null, loseReply: lost !== null, delayMs: delay?.what === 'delay' ? delay.ms : 0 };
  }

  /** How the instance that boots now goes wrong; null for not at all. */
  takeForBoot(): 'silent-boot' | 'dead-boot' | null {
    const rule = this.#take(({ what }) => what === 'silent-boot' || what === 'dead-boot');
    return rule?.what === 'silent-boot' || rule?.what === 'dead-boot' ? rule.what : null;
  }

  #take(wanted: (rule: FaultRule) => boolean): FaultRule | null {
    const rule = this.#rules.find(wanted);
    if (!rule) return null;
    rule.count -= 1;
    if (rule.count === 0) this.#rules = this.#rules.filter((other) => other !== rule);
    return rule;
  }
}
