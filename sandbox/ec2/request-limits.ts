/**
 * EC2's request limits: token buckets per action for calls, and for some actions also for instances. All of an
 * account's calls in a region share them. https://docs.aws.amazon.com/ec2/latest/devguide/ec2-api-throttling.html
 */
import type { Clock } from '../../shared/ports/clock.ts';
import { AwsError } from '../aws-error.ts';
import type { Params } from '../query-protocol.ts';

interface Rate {
  burst: number;
  perSecond: number;
}

const DESCRIBE: Rate = { burst: 100, perSecond: 20 };
/** The stricter limit for calls without a filter, id or page size. */
const DESCRIBE_EVERYTHING: Rate = { burst: 50, perSecond: 10 };
const MUTATING: Rate = { burst: 50, perSecond: 5 };
const CALLS: Record<string, Rate> = {
  RunInstances: { burst: 5, perSecond: 2 },
  TerminateInstances: { burst: 100, perSecond: 5 },
  CreateTags: { burst: 100, perSecond: 10 },
};
const INSTANCES: Record<string, Rate> = {
  RunInstances: { burst: 1_000, perSecond: 2 },
  TerminateInstances: { burst: 1_000, perSecond: 20 },
};

interface Bucket {
  tokens: number;
  atMs: number;
}

export class RequestLimits {
  readonly #clock: Clock;
  readonly #buckets = new Map<string, Bucket>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Takes the call's tokens; when there are too few, throws RequestLimitExceeded and takes none. */
  take(action: string, params: Params, scale: number): void {
    const [name, rate] = callRate(action, params);
    const calls = this.#bucket(name, rate, scale);
    const instanceRate = INSTANCES[action];
    const instances = instanceRate ? this.#bucket(`${action} instances`, instanceRate, scale) : null;
    const wanted = action === 'RunInstances' ? (params.int('MinCount') ?? 1) : params.texts('InstanceId').length;
    if (calls.tokens < 1 || (instances && instances.tokens < wanted))
      throw new AwsError('RequestLimitExceeded', 'Request limit exceeded.', 503);
    calls.tokens -= 1;
    if (instances) instances.tokens -= wanted;
  }

  /** The bucket, refilled to the current time. */
  #bucket(name: string, rate: Rate, scale: number): Bucket {
    const nowMs = this.#clock.monotonic();
    // Less than one token would refuse every call forever.
    const burst = Math.max(1, rate.burst * scale);
    const known = this.#buckets.get(name) ?? { tokens: burst, atMs: nowMs };
    const gained = ((nowMs - known.atMs) / 1_000) * rate.perSecond * scale;
    const bucket = { tokens: Math.min(burst, known.tokens + gained), atMs: nowMs };
    this.#buckets.set(name, bucket);
    return bucket;
  }
}

/** The buckets' name and rate; describe calls share one, and so do mutating calls without their own. */
function callRate(action: string, params: Params): [string, Rate] {
  if (/^(Describe|Get|List)/.test(action)) {
    const narrowed = params.groups('Filter').length > 0 || params.text('MaxResults') || params.text('InstanceId.1');
    const everything = action === 'DescribeInstances' && !narrowed;
    return everything ? ['describe everything', DESCRIBE_EVERYTHING] : ['describe', DESCRIBE];
  }
  const own = CALLS[action];
  return own ? [action, own] : ['mutating', MUTATING];
}
