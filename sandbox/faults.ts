/**
 * What the sandbox has been told to do wrong. Rules come in through the control route, are used up in the order they came,
 * and each kind of fault is one member of the union below: a new kind is a new member and the place that asks for it.
 */
import { z } from 'zod';

const count = z.int().min(1).max(1_000_000);
/** An action of any service (`RunInstances`, `RegisterTargets`, `PutObject`), or `*` for all. */
const action = z.string().min(1).max(100);
/** Only calls whose path contains this text: for S3, where the path is bucket and key. */
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
  /** The call takes effect; its connection is reset in the middle of the object that it answers with. */
  z.strictObject({ what: z.literal('cut-reply'), action, path, count }),
  /** The call takes effect; one byte of the object that it answers with is wrong. */
  z.strictObject({ what: z.literal('wrong-byte'), action, path, count }),
  /** The call takes effect at once; its answer comes `ms` later. */
  z.strictObject({ what: z.literal('delay'), action, ms: z.int().min(1).max(3_600_000), path, count }),
  /** TerminateInstances is answered as always and changes nothing. */
  z.strictObject({ what: z.literal('ignored-terminate'), count }),
  /** A health check fails, whatever the target says; with `instance` only those of this one. */
  z.strictObject({ what: z.literal('failed-check'), instance: z.string().max(100).exactOptional(), count }),
  /** A balancer delivers the request and answers with this status instead of passing the target's answer on. */
  z.strictObject({
    what: z.literal('lost-delivery'),
    status: z.union([z.literal(502), z.literal(504)]).exactOptional(),
    path,
    count,
  }),
  /** The next listeners of balancers take no connection; the checks of their targets go on. */
  z.strictObject({ what: z.literal('unreachable-balancer'), count }),
  /** The bucket that the next S3 call names is gone, with all that is in it. */
  z.strictObject({ what: z.literal('lost-bucket'), count }),
  /** The next instances run, but nothing starts on them. */
  z.strictObject({ what: z.literal('silent-boot'), count }),
  /** On the next instances the program exits with 1 each time it is started. */
  z.strictObject({ what: z.literal('dead-boot'), count }),
  /** A launch of a type that the free plan does not have is refused. */
  z.strictObject({ what: z.literal('free-plan'), count }),
  /** The keys of the call have run out; with `action` only those calls. */
  z.strictObject({ what: z.literal('expired-credentials'), action: action.exactOptional(), count }),
  /** An instance ends while it is pending, by default because of the key for its volume. */
  z.strictObject({
    what: z.literal('dies-at-launch'),
    code: z.string().min(1).max(100).exactOptional(),
    message: z.string().max(1_000).exactOptional(),
    count,
  }),
]);
export type FaultRule = z.infer<typeof faultRuleSchema>;

/** What happens to one API call. */
export interface CallFaults {
  error: { code: string; message: string; status: number } | null;
  /** The call is not carried out, and nothing is answered. */
  lost: boolean;
  reply: 'whole' | 'lost' | 'cut' | 'wrong';
  delayMs: number;
}

/** https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/ec2-free-tier-usage.html, for accounts made since July 2025 */
const FREE_PLAN_TYPES: readonly string[] = [
  't3.micro',
  't3.small',
  't4g.micro',
  't4g.small',
  'c7i-flex.large',
  'm7i-flex.large',
];

const REPLY_FAULTS = { 'lost-reply': 'lost', 'cut-reply': 'cut', 'wrong-byte': 'wrong' } as const;
const NO_FAULTS: CallFaults = { error: null, lost: false, reply: 'whole', delayMs: 0 };

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
  PreconditionFailed: 412,
  ConditionalRequestConflict: 409,
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
  takeForCall(name: string, path = ''): CallFaults {
    const matches = (rule: { action?: string; path?: string }): boolean =>
      (rule.action === undefined || rule.action === '*' || rule.action === name) && path.includes(rule.path ?? '');
    const error = this.#take((rule) => rule.what === 'error' && matches(rule));
    if (error?.what === 'error') {
      const { code, message = `Fault injected: ${code}`, status = STATUS_OF_CODE[code] ?? 400 } = error;
      return { ...NO_FAULTS, error: { code, message, status } };
    }
    const expired = this.#take((rule) => rule.what === 'expired-credentials' && matches(rule));
    // S3 has another word for it.
    if (expired && path !== '')
      return { ...NO_FAULTS, error: { code: 'ExpiredToken', message: 'The provided token has expired.', status: 400 } };
    if (expired)
      return { ...NO_FAULTS, error: { code: 'RequestExpired', message: 'Request has expired.', status: 400 } };
    if (this.#take((rule) => rule.what === 'lost-request' && matches(rule))) return { ...NO_FAULTS, lost: true };
    const delay = this.#take((rule) => rule.what === 'delay' && matches(rule));
    const spoilt = this.#take((rule) => rule.what in REPLY_FAULTS && 'action' in rule && matches(rule));
    return {
      ...NO_FAULTS,
      reply: spoilt === null ? 'whole' : REPLY_FAULTS[spoilt.what as keyof typeof REPLY_FAULTS],
      delayMs: delay?.what === 'delay' ? delay.ms : 0,
    };
  }

  /** True when the TerminateInstances that is being made is to change nothing. */
  takeForTerminate(): boolean {
    return this.#take(({ what }) => what === 'ignored-terminate') !== null;
  }

  /** True when the health check that is being made fails, though the target may be well. */
  takeForCheck(instanceId: string): boolean {
    return this.#take((r) => r.what === 'failed-check' && (r.instance ?? instanceId) === instanceId) !== null;
  }

  /** What a balancer answers in place of its target's answer to this request; null to pass that on. */
  takeForDelivery(requestPath: string): 502 | 504 | null {
    const rule = this.#take((r) => r.what === 'lost-delivery' && requestPath.includes(r.path ?? ''));
    return rule?.what === 'lost-delivery' ? (rule.status ?? 502) : null;
  }

  /** True when the listener that is being made is to take no connection. */
  takeForListener(): boolean {
    return this.#take(({ what }) => what === 'unreachable-balancer') !== null;
  }

  /** True when the bucket of the S3 call that is being made is to be gone from now on. */
  takeForBucket(): boolean {
    return this.#take(({ what }) => what === 'lost-bucket') !== null;
  }

  /** True when the launch that is being made is refused because the account is on the free plan. */
  takeForType(instanceType: string): boolean {
    return !FREE_PLAN_TYPES.includes(instanceType) && this.#take(({ what }) => what === 'free-plan') !== null;
  }

  /** Why the instance that is being launched ends before it runs; null when it does not. */
  takeForLaunch(): { code: string; message: string } | null {
    const rule = this.#take(({ what }) => what === 'dies-at-launch');
    if (rule?.what !== 'dies-at-launch') return null;
    const { code = 'Client.InvalidKMSKey.InvalidState', message } = rule;
    return { code, message: message ?? `${code}: The KMS key provided is in an incorrect state` };
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
