/**
 * The one file that names AWS error codes: classifies a failed call of any service or endpoint.
 * The error code decides; the HTTP status counts only when the reply has no code.
 * https://docs.aws.amazon.com/AWSEC2/latest/APIReference/errors-overview.html
 */
import { AppError, type ErrorCode, firstLineOf } from '../../../shared/domain/errors.ts';
import type { LaunchFailure, RefusalCause } from './compute.ts';

interface ErrorKindRule {
  app: ErrorCode;
  /** AWS's codes for it, apart from those that a rule below covers; separated by blanks. */
  codes?: string;
  hint?: string;
  /** What it means for a launch; none: the call may have launched something. */
  refusal?: RefusalCause;
}

const KINDS = {
  /** The endpoint does not implement the call: an emulator without it. */
  'capability-missing': {
    app: 'aws-capability-missing',
    codes: 'InvalidAction NotImplemented UnknownOperation UnsupportedAction',
    hint: 'Use AWS, the built-in sandbox (leave aws.endpoint empty) or an emulator that knows this call.',
    refusal: 'invalid',
  },
  /** The keys have expired, are missing or are rejected. */
  credentials: {
    app: 'aws-denied',
    codes: `
      AuthFailure InvalidClientTokenId InvalidAccessKeyId SignatureDoesNotMatch UnrecognizedClient ExpiredToken
      InvalidToken RequestExpired RequestTimeTooSkewed MissingAuthenticationToken IncompleteSignature
      CredentialsProviderError TokenProviderError`,
    hint: 'Check the credentials that the AWS SDK finds here: aws sts get-caller-identity',
    refusal: 'credentials',
  },
  /** A policy does not allow it, or the policy has not taken effect yet. */
  denied: {
    app: 'aws-denied',
    codes: 'UnauthorizedOperation AccessDenied AllAccessDisabled OptInRequired Blocked TagPolicyViolation',
    hint: 'Check the credentials that the AWS SDK finds here, their region, and the policies in userdata/.',
    refusal: 'denied',
  },
  throttled: {
    app: 'aws-throttled',
    // The last: a new account is still being verified, which takes minutes to hours according to EC2.
    codes: `
      RequestLimitExceeded Throttling Throttled RequestThrottled EC2Throttled TooManyRequests BandwidthLimitExceeded
      PriorRequestNotComplete SlowDown PendingVerification`,
    hint: 'The call was repeated with pauses; wait some minutes before the next attempt.',
    refusal: 'throttled',
  },
  /** All other codes for missing resources end in NotFound. For a launch: a subnet, group, image or profile. */
  'not-found': {
    app: 'aws-not-found',
    // The second is a deregistered image.
    codes: 'ServerSideEncryptionConfigurationNotFoundError InvalidAMIID.Unavailable',
    refusal: 'invalid',
  },
  /** The target is not running yet. */
  'invalid-target': { app: 'aws-invalid', codes: 'InvalidTarget', refusal: 'invalid' },
  /** The resource is still in use by one that is being deleted. */
  'in-use': { app: 'aws-failed', codes: 'ResourceInUse OperationAborted', refusal: 'invalid' },
  /** It exists already: another process created it first. */
  exists: {
    app: 'aws-invalid',
    codes: `
      DuplicateLoadBalancerName DuplicateTargetGroupName DuplicateListener BucketAlreadyExists
      BucketAlreadyOwnedByYou`,
    refusal: 'invalid',
  },
  /** No capacity for this type in this zone. */
  pool: {
    app: 'capacity',
    codes: `
      InsufficientInstanceCapacity InsufficientHostCapacity InsufficientCapacity InsufficientFreeAddressesInSubnet
      InsufficientAddressCapacity InsufficientVolumeCapacity`,
    refusal: 'pool',
  },
  /** "Your requested instance type is not supported in your requested Availability Zone." */
  zone: { app: 'capacity', codes: 'Unsupported', refusal: 'zone' },
  /** The account may not launch this type. */
  type: { app: 'capacity', codes: 'InstanceTypeNotSupported UnsupportedInstanceType', refusal: 'type' },
  quota: {
    app: 'capacity',
    codes: `
      VcpuLimitExceeded InstanceLimitExceeded VolumeLimitExceeded NetworkInterfaceLimitExceeded TooManyLoadBalancers
      TooManyTargetGroups TooManyListeners TooManyTargets TooManyBuckets`,
    refusal: 'quota',
  },
  /**
   * The client token was used before with other parameters, so it has launched an instance. Find it by its tags before
   * launching under another token.
   */
  'token-mismatch': { app: 'aws-invalid', codes: 'IdempotentParameterMismatch' },
  /** The client token belongs to a terminated instance, and no other was launched. The next epoch has another token. */
  'token-spent': { app: 'aws-invalid', codes: 'IdempotentInstanceTerminated', refusal: 'spent' },
  invalid: { app: 'aws-invalid', refusal: 'invalid' },
  /** No reply, an unreadable reply, or a fault of AWS: the call may or may not have taken effect. */
  failed: {
    app: 'aws-failed',
    codes: 'InternalError InternalFailure ServiceUnavailable Unavailable RequestTimeout',
    hint: 'Check that the endpoint can be reached from here; the call may be repeated.',
  },
} as const satisfies Record<string, ErrorKindRule>;

export type AwsFailureKind = keyof typeof KINDS;

const factsOf = (kind: AwsFailureKind): ErrorKindRule => KINDS[kind];

const KIND_OF_CODE = new Map(
  (Object.keys(KINDS) as AwsFailureKind[]).flatMap((kind) =>
    (factsOf(kind).codes?.match(/\S+/g) ?? []).map((code) => [code, kind]),
  ),
);

export interface AwsFailure {
  kind: AwsFailureKind;
  /** AWS's own code; empty when the reply had none. */
  code: string;
  /** The HTTP status of the reply; undefined when there was none. */
  status: number | undefined;
  message: string;
}

/** True for EC2's reply to a `DryRun` call that would be allowed. */
export const wouldSucceed = (error: unknown): boolean => classifyAwsError(error).code === 'DryRunOperation';

/** The names the SDK gives to a reply that carries no code; the last one to a page where it expects JSON. */
const CODELESS = new Set(['', 'Error', 'Unknown', 'UnknownError', 'SyntaxError']);

/** Classifies a failed SDK call. Takes anything thrown; never throws. */
export function classifyAwsError(error: unknown): AwsFailure {
  const e = (typeof error === 'object' && error !== null ? error : {}) as {
    name?: string;
    Code?: string;
    $metadata?: { httpStatusCode?: number };
  };
  const status = e.$metadata?.httpStatusCode;
  // ELBv2 codes are `LoadBalancerNotFound` on the wire and `LoadBalancerNotFoundException` as the SDK's name.
  const name = (e.Code ?? e.name ?? '').replace(/Exception$/, '');
  const code = CODELESS.has(name) ? '' : name;
  const message = messageOf(error, code, status);
  return { kind: kindOfText(code, message) ?? kindOf(code, status), code, status, message };
}

/**
 * The kind of a failure by its message, where one AWS code covers several causes. The free plan (accounts since July
 * 2025) allows only a few types; IAM shows a new instance profile after some seconds.
 */
function kindOfText(code: string, message: string): AwsFailureKind | undefined {
  const notFree =
    code === 'InvalidParameterCombination' && /instance type is not eligible for free tier/i.test(message);
  if (notFree) return 'type';
  return code === 'InvalidParameterValue' && /invalid iam instance profile/i.test(message) ? 'denied' : undefined;
}

function kindOf(code: string, status: number | undefined): AwsFailureKind {
  // Emulators answer an unknown call with 501 and any code, with 405, or with 500 and an HTML page.
  if (status === 501 || status === 405) return 'capability-missing';
  const known = KIND_OF_CODE.get(code);
  if (known) return known;
  // `InvalidInstanceID.NotFound`, `LoadBalancerNotFound`, `NoSuchBucket`, and S3's plain `NotFound`.
  if (code.endsWith('NotFound') || code.startsWith('NoSuch')) return 'not-found';
  if (code === '') return KIND_OF_STATUS[status ?? 0] ?? 'failed';
  return status !== undefined && status >= 400 && status < 500 ? 'invalid' : 'failed';
}

/** The kind of a reply without a code, by its status. */
const KIND_OF_STATUS: Record<number, AwsFailureKind> = {
  400: 'invalid',
  401: 'denied',
  403: 'denied',
  404: 'not-found',
  429: 'throttled',
  500: 'capability-missing',
  503: 'throttled',
};

function messageOf(error: unknown, code: string, status: number | undefined): string {
  if (code === '' && status !== undefined) return `HTTP ${status} without an AWS error code`;
  // The SDK appends a paragraph about inspecting its internals, which would hide the cause.
  const text = firstLineOf(error).trim();
  return code === '' || text.includes(code) ? text : `${code}: ${text}`;
}

/**
 * The error shown to the user for a failed call.
 * @param call the failed call, such as `DescribeInstances` or `CreateBucket my-bucket`
 * @param endpoint where it was sent; null for AWS itself
 */
export function toAppError(error: unknown, call: string, endpoint: string | null): AppError {
  if (error instanceof AppError) return error;
  const { kind, message } = classifyAwsError(error);
  const { app, hint } = factsOf(kind);
  return new AppError(app, `${call} at ${endpoint ?? 'AWS'} failed: ${message}`, {
    cause: error,
    ...(hint ? { hint } : {}),
  });
}

/**
 * What a failed RunInstances means for its slot. Only a definite failure is `refused`; a call that may have launched
 * something is `unknown`: a 500 without a code too, though elsewhere it means a missing capability, because a proxy in
 * front of AWS sends it.
 */
export function launchFailure(error: unknown): LaunchFailure {
  const { kind, status, message } = classifyAwsError(error);
  const cause = factsOf(kind).refusal;
  if (cause === undefined || (kind === 'capability-missing' && status === 500))
    return { kind: 'unknown', message, ...(kind === 'token-mismatch' ? { tokenUsed: true } : {}) };
  return { kind: 'refused', cause, message };
}
