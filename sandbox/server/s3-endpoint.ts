/** One S3 request, from path to answer. */
import { textBefore } from '../../shared/domain/text-before.ts';
import type { IncomingMessage } from 'node:http';
import { AwsError } from '../aws-error.ts';
import type { ConditionBoard } from '../conditions.ts';
import type { FaultBook } from '../faults.ts';
import { demandInstanceRole, signingInstance } from '../instance-role.ts';
import type { Log } from '../log.ts';
import type { Regions } from '../region.ts';
import { readS3Call, routeS3Call } from '../s3/router.ts';
import { errorReply, type S3Context } from '../s3/s3-call.ts';
import { type Answer, toAwsError } from './answer.ts';

export interface S3Endpoint {
  s3: S3Context;
  regions: Regions;
  faults: FaultBook;
  conditions: ConditionBoard;
  log: Log;
}

export async function answerS3(request: IncomingMessage, requestId: string, endpoint: S3Endpoint): Promise<Answer> {
  const { s3, log } = endpoint;
  const resource = textBefore(request.url ?? '/', '?');
  let action = request.method ?? '';
  try {
    const call = readS3Call(request);
    const route = routeS3Call(call);
    action = route.action;
    checkCaller(call.query, request.headers.authorization, s3.clock.now());
    endpoint.regions.refuseOutage(s3.buckets.find(call.bucket)?.about.region ?? '');
    if (call.bucket !== '' && endpoint.faults.take('lost-bucket')) s3.buckets.lose(call.bucket);
    const faults = endpoint.faults.takeForCall(action, resource);
    if (faults.lost) return { status: 503, headers: {}, body: null, faults };
    if (faults.error) throw new AwsError(faults.error.code, faults.error.message, faults.error.status);
    const instanceId = signingInstance(request.headers.authorization ?? call.query.get('X-Amz-Credential') ?? '');
    if (instanceId !== null) {
      const onlyIfAbsent = request.headers['if-none-match'] !== undefined;
      demandInstanceRole(instanceId, { ...call, action, onlyIfAbsent }, endpoint.conditions.now.instanceRole);
    }
    const reply = await route.handler(call, s3);
    log.write('call', { service: 's3', action, resource, requestId, status: reply.status });
    return { ...reply, headers: withIds(reply.headers, requestId), faults };
  } catch (thrown) {
    const error = toAwsError(thrown, 'InternalError', log);
    log.write('call', { service: 's3', action, resource, requestId, error: error.code });
    const reply = errorReply(error, decodeSafely(resource), requestId);
    return { ...reply, headers: withIds(reply.headers, requestId), faults: null };
  }
}

const withIds = (headers: Record<string, string>, requestId: string): Record<string, string> => ({
  ...headers,
  'x-amz-request-id': requestId,
  'x-amz-id-2': 'crawlfleet-sandbox',
});

function decodeSafely(path: string): string {
  try {
    return decodeURIComponent(path);
  } catch {
    return path;
  }
}

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
  if (!date || !/^\d{1,7}$/.test(expires) || !query.has('X-Amz-Credential'))
    throw new AwsError(
      'AuthorizationQueryParametersError',
      'Query-string authentication version 4 requires the X-Amz-Algorithm, X-Amz-Credential, X-Amz-Signature, X-Amz-Date, X-Amz-SignedHeaders, and X-Amz-Expires parameters.',
    );
  if (Number(expires) > MAX_EXPIRES_S)
    throw new AwsError(
      'AuthorizationQueryParametersError',
      'X-Amz-Expires must be less than a week (in seconds); that is, the given X-Amz-Expires must be less than 604800 seconds',
    );
  const [, year, month, day, hour, minute, second] = date.map(Number) as [number, ...number[]];
  const signedMs = Date.UTC(year!, month! - 1, day, hour, minute, second);
  if (nowMs > signedMs + Number(expires) * 1_000) throw expired();
}

const expired = (): AwsError => new AwsError('AccessDenied', 'Request has expired', 403);
