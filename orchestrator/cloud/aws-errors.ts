/**
 * The one file that names AWS error codes: classifies a failed call of any service or endpoint.
 * The error code decides; the HTTP status counts only when the reply has no code.
 * https://docs.aws.amazon.com/AWSEC2/latest/APIReference/errors-overview.html
 */
import { AppError, describeError, type ErrorCode } from '../../shared/domain/errors.ts';
import type { LaunchFailure } from './compute.ts';

export type AwsFailureKind =
  /** The endpoint does not implement the call: an emulator without it. */
  | 'capability-missing'
  /** The keys have expired, are missing or are rejected. */
  | 'credentials'
  /** A policy does not allow it, or the policy has not taken effect yet. */
  | 'denied'
  | 'throttled'
  | 'not-found'
  /** The target is not running yet. */
  | 'invalid-target'
  /** Still in use by a resource that is being deleted. */
  | 'in-use'
  /** It exists already: another process created it first. */
  | 'exists'
  /** No capacity for this type in this zone. */
  | 'pool'
  /** This type is not offered in this zone. */
  | 'zone'
  /** The account may not launch this type. */
  | 'type'
  /** The account's quota is used up. */
  | 'quota'
  /** The client token was used before with other parameters. */
  | 'token-mismatch'
  /** The client token belongs to an instance that has been terminated. */
  | 'token-spent'
  /** A parameter is invalid. */
  | 'invalid'
  /** No reply, an unreadable reply, or a fault of AWS: the call may or may not have taken effect. */
  | 'failed';

export interface AwsFailure {
  kind: AwsFailureKind;
  /** AWS's own code; empty when the reply had none. */
  code: string;
  /** Of the reply; undefined when there was none. */
  status: number | undefined;
  message: string;
}

const CODES: Partial<Record<AwsFailureKind, readonly string[]>> = {
  'capability-missing': ['InvalidAction', 'NotImplemented', 'UnknownOperation', 'UnsupportedAction'],
  credentials: [
    'AuthFailure',
    'InvalidClientTokenId',
    'InvalidAccessKeyId',
    'SignatureDoesNotMatch',
    'UnrecognizedClient',
    'ExpiredToken',
    'InvalidToken',
    'RequestExpired',
    'RequestTimeTooSkewed',
    'MissingAuthenticationToken',
    'IncompleteSignature',
    'CredentialsProviderError',
    'TokenProviderError',
  ],
  denied: ['UnauthorizedOperation', 'AccessDenied', 'AllAccessDisabled', 'OptInRequired', 'Blocked'],
  throttled: [
    'RequestLimitExceeded',
    'Throttling',
    'Throttled',
    'RequestThrottled',
    'EC2Throttled',
    'TooManyRequests',
    'BandwidthLimitExceeded',
    'PriorRequestNotComplete',
    'SlowDown',
    // A new account is still being verified, which takes minutes to hours according to EC2.
    'PendingVerification',
  ],
  'invalid-target': ['InvalidTarget'],
  // All other codes for missing resources end in NotFound.
  'not-found': [
    'ServerSideEncryptionConfigurationNotFoundError',
    // A deregistered image.
    'InvalidAMIID.Unavailable',
  ],
  'in-use': ['ResourceInUse', 'OperationAborted'],
  exists: [
    'DuplicateLoadBalancerName',
    'DuplicateTargetGroupName',
    'DuplicateListener',
    'BucketAlreadyExists',
    'BucketAlreadyOwnedByYou',
  ],
  pool: [
    'InsufficientInstanceCapacity',
    'InsufficientHostCapacity',
    'InsufficientCapacity',
    'InsufficientFreeAddressesInSubnet',
    'InsufficientAddressCapacity',
    'InsufficientVolumeCapacity',
  ],
  // "Your requested instance type is not supported in your requested Availability Zone."
  zone: ['Unsupported'],
  type: ['InstanceTypeNotSupported', 'UnsupportedInstanceType'],
  quota: [
    'VcpuLimitExceeded',
    'InstanceLimitExceeded',
    'VolumeLimitExceeded',
    'NetworkInterfaceLimitExceeded',
    'TooManyLoadBalancers',
    'TooManyTargetGroups',
    'TooManyListeners',
    'TooManyTargets',
    'TooManyBuckets',
  ],
  'token-mismatch': ['IdempotentParameterMismatch'],
  'token-spent': ['IdempotentInstanceTerminated'],
  failed: ['InternalError', 'InternalFailure', 'ServiceUnavailable', 'Unavailable', 'RequestTimeout'],
};

const KIND_OF_CODE = new Map(
  Object.entries(CODES).flatMap(([kind, codes]) => codes.map((code) => [code, kind as AwsFailureKind])),
);

/** True for EC2's reply to a `DryRun` call that would be allowed. */
export const wouldSucceed = (error: unknown): boolean => classifyAwsError(error).code === 'DryRunOperation';

/** The names the SDK gives to a reply that carries no code. */
const CODELESS = new Set(['', 'Error', 'Unknown', 'UnknownError']);

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
 * Where one AWS code covers several causes, the message tells them apart.
 * The free plan (accounts since July 2025) allows only a few types; IAM shows a new instance profile after some
 * seconds.
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

/** Of a reply without a code. */
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
  const text = describeError(error).split('\n')[0]!.trim();
  return code === '' || text.includes(code) ? text : `${code}: ${text}`;
}

const APP_CODE: Record<AwsFailureKind, ErrorCode> = {
  'capability-missing': 'aws-capability-missing',
  credentials: 'aws-denied',
  denied: 'aws-denied',
  throttled: 'aws-throttled',
  'not-found': 'aws-not-found',
  'invalid-target': 'aws-invalid',
  'in-use': 'aws-failed',
  exists: 'aws-invalid',
  pool: 'capacity',
  zone: 'capacity',
  type: 'capacity',
  quota: 'capacity',
  'token-mismatch': 'aws-invalid',
  'token-spent': 'aws-invalid',
  invalid: 'aws-invalid',
  failed: 'aws-failed',
};

const HINTS: Partial<Record<AwsFailureKind, string>> = {
  'capability-missing': 'Use AWS, the built-in sandbox (leave aws.endpoint empty) or an emulator that knows this call.',
  credentials: 'Check the credentials that the AWS SDK finds here: aws sts get-caller-identity',
  denied: 'Check the credentials that the AWS SDK finds here, their region, and the policies in userdata/.',
  throttled: 'The call was repeated with pauses; wait some minutes before the next attempt.',
  failed: 'Check that the endpoint can be reached from here; the call may be repeated.',
};

/**
 * The error shown to the user for a failed call.
 * @param call the failed call, such as `DescribeInstances` or `CreateBucket my-bucket`
 * @param endpoint where it was sent; null for AWS itself
 */
export function toAppError(error: unknown, call: string, endpoint: string | null): AppError {
  if (error instanceof AppError) return error;
  const { kind, message } = classifyAwsError(error);
  const hint = HINTS[kind];
  return new AppError(APP_CODE[kind], `${call} at ${endpoint ?? 'AWS'} failed: ${message}`, {
    cause: error,
    ...(hint ? { hint } : {}),
  });
}

/**
 * What a failed RunInstances means for its slot. Only a definite failure is `refused`; a call that may have launched
 * something is `unknown`.
 *
 * - `IdempotentParameterMismatch` → `unknown`, token used: the token has already launched an instance. Find it by its
 *   tags before launching under another token.
 * - `IdempotentInstanceTerminated` → `refused: spent`: the instance of this token is dead and no other was launched.
 *   The next epoch has another token.
 * - A 500 without a code → `unknown`, though elsewhere it means a missing capability: a proxy in front of AWS sends it
 *   too.
 */
export function launchFailure(error: unknown): LaunchFailure {
  const { kind, status, message } = classifyAwsError(error);
  switch (kind) {
    case 'pool':
    case 'zone':
    case 'type':
    case 'quota':
    case 'throttled':
    case 'credentials':
    case 'denied':
      return { kind: 'refused', cause: kind, message };
    case 'token-spent':
      return { kind: 'refused', cause: 'spent', message };
    case 'capability-missing':
      return status === 500 ? { kind: 'unknown', message } : { kind: 'refused', cause: 'invalid', message };
    case 'invalid':
    // A subnet, group, image or profile that does not exist.
    case 'not-found':
    case 'invalid-target':
    case 'in-use':
    case 'exists':
      return { kind: 'refused', cause: 'invalid', message };
    case 'token-mismatch':
      return { kind: 'unknown', message, tokenUsed: true };
    case 'failed':
      return { kind: 'unknown', message };
  }
}
