/**
 * Identifies the server at `aws.endpoint` and what it really does. Runs once, before anything else. The requests to our
 * own sandbox are no AWS calls, so they use up none of the faults that a test has set.
 */
import { systemClock } from '../../../shared/adapters/system-clock.ts';
import { AppError, describeError } from '../../../shared/domain/errors.ts';
import type { Clock } from '../../../shared/ports/clock.ts';
import { classifyAwsError, toAppError } from './aws-errors.ts';
import { type AwsOptions, type LazyClient, lazyEc2, lazyElbv2, lazyS3, withClient } from './sdk-clients.ts';

type EndpointName = 'sandbox' | 'localstack' | 'moto' | 'unknown';

export interface EndpointProfile {
  endpoint: string;
  name: EndpointName;
  /** The version as reported by the server; null when it reports none. */
  version: string | null;
  /** `mock`: an instance is only a record, without a machine that runs its user data. */
  instances: 'real' | 'mock';
  /** `mock`: it can be described, but forwards nothing. */
  balancer: 'real' | 'mock' | 'missing';
}

export interface ProfileOptions extends AwsOptions {
  endpoint: string;
  /** Default: the system's. */
  clock?: Clock;
}

/** The time limit of a request; a local endpoint that needs longer is of no use for a run. */
const TIMEOUT_MS = 5_000;
/** The endpoint may be starting, or reset a connection: four attempts in about two seconds. */
const PAUSES_MS = [250, 500, 1_000];

/**
 * Throws `endpoint-unreachable` when nothing answers, and `aws-capability-missing` when the endpoint lacks EC2 or S3,
 * which the sandbox cannot replace.
 */
export async function profileEndpoint(options: ProfileOptions): Promise<EndpointProfile> {
  const { endpoint } = options;
  const known = await recognize(endpoint, options.clock ?? systemClock);
  if (known.name === 'sandbox') return { endpoint, ...known, instances: 'real', balancer: 'real' };
  const limited = { ...options, timeoutMs: TIMEOUT_MS, maxAttempts: 3 };
  const [hasEc2, hasS3, hasElbv2] = await Promise.all([
    knows('DescribeSubnets', limited, lazyEc2, async (ec2) => (await ec2.describeSubnets()).Subnets),
    knows('ListBuckets', limited, lazyS3, async (s3) => (await s3.listBuckets()).Buckets),
    knows(
      'DescribeLoadBalancers',
      limited,
      lazyElbv2,
      async (elb) => (await elb.describeLoadBalancers()).LoadBalancers,
    ),
  ]);
  const missing = [...(hasEc2 ? [] : ['EC2']), ...(hasS3 ? [] : ['S3'])];
  if (missing.length > 0) {
    throw new AppError('aws-capability-missing', `aws.endpoint ${endpoint} has no ${missing.join(' and no ')}`, {
      hint: 'Point aws.endpoint at an endpoint that speaks EC2 and S3 (LocalStack with both services on, or moto_server), or leave it out to use the built-in sandbox.',
    });
  }
  return { endpoint, ...known, instances: 'mock', balancer: hasElbv2 ? 'mock' : 'missing' };
}

/** Recognizes each emulator by what it serves beside AWS's calls. */
async function recognize(endpoint: string, clock: Clock): Promise<Pick<EndpointProfile, 'name' | 'version'>> {
  // Only the sandbox sends a 401 that names the token; any other server takes the path for a bucket that does not
  // exist.
  const sandbox = await ask(endpoint, '/_crawlfleet/status', clock);
  if (sandbox.status === 401 && sandbox.text.includes('control token')) return { name: 'sandbox', version: null };
  const [localstack, moto] = await Promise.all([
    ask(endpoint, '/_localstack/health', clock),
    ask(endpoint, '/moto-api/', clock),
  ]);
  if (localstack.status === 200) {
    const health = parseObject(localstack.text);
    if (typeof health?.services === 'object')
      return { name: 'localstack', version: typeof health.version === 'string' ? health.version : null };
  }
  if (moto.status === 200 && /\bmoto\b/i.test(moto.text)) return { name: 'moto', version: null };
  return { name: 'unknown', version: null };
}

function parseObject(text: string): { services?: unknown; version?: unknown } | null {
  try {
    return JSON.parse(text) as { services?: unknown; version?: unknown } | null;
  } catch {
    return null;
  }
}

async function ask(endpoint: string, path: string, clock: Clock): Promise<{ status: number; text: string }> {
  const url = new URL(path, endpoint);
  for (let attempt = 0; ; attempt++) {
    try {
      const response = await fetch(url, { redirect: 'manual', signal: AbortSignal.timeout(TIMEOUT_MS) });
      return { status: response.status, text: await response.text() };
    } catch (error) {
      const pauseMs = PAUSES_MS[attempt];
      if (pauseMs === undefined) throw unreachable(endpoint, error);
      await clock.sleep(pauseMs);
    }
  }
}

function unreachable(endpoint: string, error: unknown): AppError {
  // The error of fetch says only that it failed; its cause says why.
  const cause = error instanceof Error && error.cause !== undefined ? error.cause : error;
  return new AppError('endpoint-unreachable', `nothing answers at aws.endpoint ${endpoint}: ${describeError(cause)}`, {
    cause: error,
    hint: 'Start the endpoint first, correct aws.endpoint, or leave it out to use the built-in sandbox.',
  });
}

/** False for any answer of a missing service; a call that fails for another reason throws. */
async function knows<T>(
  name: string,
  options: AwsOptions,
  open: (options: AwsOptions) => LazyClient<T>,
  call: (service: T) => Promise<unknown[] | undefined>,
): Promise<boolean> {
  try {
    // A reply without a list is not AWS's, although the SDK could parse it.
    return (await withClient(open(options), call)) !== undefined;
  } catch (error) {
    const { kind, status, code } = classifyAwsError(error);
    if (kind === 'capability-missing' || kind === 'not-found' || kind === 'invalid') return false;
    // LocalStack: 501 for what it lacks, 500 InternalFailure for a disabled service. An HTML page with 200 is not AWS
    // at all.
    if (code === 'InternalFailure' || (kind === 'failed' && status === 200)) return false;
    throw toAppError(error, name, options.endpoint);
  }
}

/** True when a sandbox has to provide machines and load balancer. */
export const needsStandIn = ({ instances }: EndpointProfile): boolean => instances === 'mock';

/** Which server provides which service, for the first lines of a run. */
export function renderParts(profile: EndpointProfile): string[] {
  const { name, endpoint, version, balancer } = profile;
  if (name === 'sandbox') return [`The sandbox at ${endpoint} provides EC2, ELBv2 and S3.`];
  const who = { localstack: 'LocalStack', moto: 'moto', unknown: 'the endpoint' }[name];
  const why = balancer === 'missing' ? `${who} has none` : `that of ${who} forwards nothing`;
  return [
    `EC2 and S3: ${who}${version === null ? '' : ` ${version}`} at ${endpoint}.`,
    `Instances: those of ${who} are mock, so the sandbox's host boots each of them here.`,
    `ELBv2: the sandbox's balancer; ${why}.`,
  ];
}
