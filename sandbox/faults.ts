/**
 * Injected faults. Rules are added through the control route and used up in order. Each kind of fault is one member of
 * the union below: a new kind needs a new member and a check at the place where it applies.
 */
import { z } from 'zod';

const count = z.int().min(1).max(1_000_000);
/** An action of any service (`RunInstances`, `RegisterTargets`, `PutObject`), or `*` for all. */
const action = z.string().min(1).max(100);
/** A text that the path of a call must contain: for S3, where the path is bucket and key. */
const path = z.string().min(1).max(1_000).exactOptional();

export const faultRuleSchema = z.discriminatedUnion('what', [
  /** The call is refused with this code and has no effect. */
  z.strictObject({
    what: z.literal('error'),
    action,
    code: z.string().min(1).max(100),
    message: z.string().max(1_000).exactOptional(),
    status: z.int().min(400).max(599).exactOptional(),
    path,
    count,
  }),
  /** The call has no effect: its connection is reset. */
  z.strictObject({ what: z.literal('lost-request'), action, path, count }),
  /** The call takes effect and its connection is reset instead of answered. */
  z.strictObject({ what: z.literal('lost-reply'), action, path, count }),
  /** The call takes effect; its connection is reset in the middle of the returned object. */
  z.strictObject({ what: z.literal('cut-reply'), action, path, count }),
  /** The call takes effect; one byte of the returned object is wrong. */
  z.strictObject({ what: z.literal('wrong-byte'), action, path, count }),
  /** The call takes effect at once; its answer is sent `ms` later. */
  z.strictObject({ what: z.literal('delay'), action, ms: z.int().min(1).max(3_600_000), path, count }),
  /** TerminateInstances is answered as usual but has no effect. */
  z.strictObject({ what: z.literal('ignored-terminate'), count }),
  /** A health check fails, whatever the target answers; with `instance` only checks of that instance. */
  z.strictObject({ what: z.literal('failed-check'), instance: z.string().max(100).exactOptional(), count }),
  /** A load balancer delivers the request and answers with this status instead of forwarding the target's answer. */
  z.strictObject({
    what: z.literal('lost-delivery'),
    status: z.union([z.literal(502), z.literal(504)]).exactOptional(),
    path,
    count,
  }),
  /** The next load balancer listeners accept no connection; health checks continue. */
  z.strictObject({ what: z.literal('unreachable-balancer'), count }),
  /** The bucket of the next S3 call is gone, with all its objects. */
  z.strictObject({ what: z.literal('lost-bucket'), count }),
  /** The next instances run, but nothing starts on them. */
  z.strictObject({ what: z.literal('silent-boot'), count }),
  /** The program of the next instances exits with 1 each time it is started. */
  z.strictObject({ what: z.literal('dead-boot'), count }),
  /** A launch of a type outside the free plan is refused. */
  z.strictObject({ what: z.literal('free-plan'), count }),
  /** The keys of the call have expired; with `action` only for those calls. */
  z.strictObject({ what: z.literal('expired-credentials'), action: action.exactOptional(), count }),
  /** An instance ends while pending, by default because of its volume's KMS key. */
  z.strictObject({
    what: z.literal('dies-at-launch'),
    code: z.string().min(1).max(100).exactOptional(),
    message: z.string().max(1_000).exactOptional(),
    count,
  }),
]);
export type FaultRule = z.infer<typeof faultRuleSchema>;
type RuleOf<W> = Extract<FaultRule, { what: W }>;

/** The faults of one API call. */
export interface CallFaults {
  error: { code: string; message: string; status: number } | null;
  /** The call has no effect and gets no answer. */
  lost: boolean;
  reply: 'whole' | 'lost' | 'cut' | 'wrong';
  delayMs: number;
}

/** https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/ec2-free-tier-usage.html, for accounts made since July 2025 */
const FREE_PLAN_TYPES = ['t3.micro', 't3.small', 't4g.micro', 't4g.small', 'c7i-flex.large', 'm7i-flex.large'];

const REPLY_FAULTS = { 'lost-reply': 'lost', 'cut-reply': 'cut', 'wrong-byte': 'wrong' } as const;
const NO_FAULTS: CallFaults = { error: null, lost: false, reply: 'whole', delayMs: 0 };

/** Codes that AWS sends with a status other than 400. */
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
  PreconditionFailed: 412,
  ConditionalRequestConflict: 409,
};

export class FaultBook {
  #rules: FaultRule[] = [];

  /** Rules that are not used up, with their remaining counts. */
  get rules(): readonly FaultRule[] {
    return this.#rules;
  }

  add(rules: readonly FaultRule[]): void {
    this.#rules.push(...rules.map((rule) => ({ ...rule })));
  }

  clear(): void {
    this.#rules = [];
  }

  /** Faults of the current call; uses up one of each matching kind. An error excludes all others. */
  takeForCall(name: string, path = ''): CallFaults {
    const matches = (rule: { action?: string; path?: string }): boolean =>
      (rule.action === undefined || rule.action === '*' || rule.action === name) && path.includes(rule.path ?? '');
    const error = this.take('error', matches);
    if (error) {
      const { code, message = `Fault injected: ${code}`, status = STATUS_OF_CODE[code] ?? 400 } = error;
      return { ...NO_FAULTS, error: { code, message, status } };
    }
    if (this.take('expired-credentials', matches)) {
      // S3 uses another code.
      const [code, message] =
        path === '' ? ['RequestExpired', 'Request has expired.'] : ['ExpiredToken', 'The provided token has expired.'];
      return { ...NO_FAULTS, error: { code, message, status: 400 } };
    }
    if (this.take('lost-request', matches)) return { ...NO_FAULTS, lost: true };
    const delayMs = this.take('delay', matches)?.ms ?? 0;
    const spoilt = this.#take((rule) => rule.what in REPLY_FAULTS && 'action' in rule && matches(rule));
    return {
      ...NO_FAULTS,
      reply: spoilt === null ? 'whole' : REPLY_FAULTS[spoilt.what as keyof typeof REPLY_FAULTS],
      delayMs,
    };
  }

  /** Uses up one of the oldest rule of this kind for which `fits` is true; null when there is none. */
  take<W extends FaultRule['what']>(what: W, fits: (rule: RuleOf<W>) => boolean = () => true): RuleOf<W> | null {
    return this.#take((rule) => rule.what === what && fits(rule as RuleOf<W>)) as RuleOf<W> | null;
  }

  /** True when the current launch is refused because of the free plan. */
  takeForType(instanceType: string): boolean {
    return !FREE_PLAN_TYPES.includes(instanceType) && this.take('free-plan') !== null;
  }

  /** Why the new instance ends before it runs; null when it does not. */
  takeForLaunch(): { code: string; message: string } | null {
    const rule = this.take('dies-at-launch');
    if (!rule) return null;
    const { code = 'Client.InvalidKMSKey.InvalidState', message } = rule;
    return { code, message: message ?? `${code}: The KMS key provided is in an incorrect state` };
  }

  /** The fault of the instance that boots now; null for none. */
  takeForBoot(): 'silent-boot' | 'dead-boot' | null {
    const rule = this.#take(({ what }) => what === 'silent-boot' || what === 'dead-boot');
    return rule && (rule.what as 'silent-boot' | 'dead-boot');
  }

  #take(wanted: (rule: FaultRule) => boolean): FaultRule | null {
    const rule = this.#rules.find(wanted);
    if (!rule) return null;
    rule.count -= 1;
    if (rule.count === 0) this.#rules = this.#rules.filter((other) => other !== rule);
    return rule;
  }
}
