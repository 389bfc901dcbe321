/**
 * Whether a request has credentials, and whether a presigned URL is still valid. Signatures themselves are not checked.
 */
import { AwsError } from '../aws-error.ts';

const MAX_EXPIRES_S = 604_800;

/** Throws S3's error for a request without credentials and for an expired presigned URL. */
export function checkCaller(query: URLSearchParams, authorization: string | undefined, nowMs: number): void {
  if (query.has('X-Amz-Signature')) return checkV4(query, nowMs);
  // The older form of presigned URL, which some SDKs still create.
  if (query.has('Signature') && query.has('Expires')) {
    if (Number(query.get('Expires')) * 1_000 < nowMs) throw expired();
    return;
  }
  if (authorization === undefined) throw new AwsError('AccessDenied', 'Access Denied', 403);
}

function checkV4(query: URLSearchParams, nowMs: number): void {
  const date = /^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/.exec(query.get('X-Amz-Date') ?? '');
  const expires = query.get('X-Amz-Expires') ?? '';
  if (!date || !/^\d{1,7}$/.test(expires) || !query.has('X-Amz-Credential')) {
    throw new AwsError(
      'AuthorizationQueryParametersError',
      'Query-string authentication version 4 requires the X-Amz-Algorithm, X-Amz-Credential, X-Amz-Signature, X-Amz-Date, X-Amz-SignedHeaders, and X-Amz-Expires parameters.',
    );
  }
  if (Number(expires) > MAX_EXPIRES_S) {
    throw new AwsError(
      'AuthorizationQueryParametersError',
      'X-Amz-Expires must be less than a week (in seconds); that is, the given X-Amz-Expires must be less than 604800 seconds',
    );
  }
  const [, year, month, day, hour, minute, second] = date.map(Number) as [number, ...number[]];
  const signedMs = Date.UTC(year!, month! - 1, day, hour, minute, second);
  if (nowMs > signedMs + Number(expires) * 1_000) throw expired();
}

const expired = (): AwsError => new AwsError('AccessDenied', 'Request has expired', 403);
