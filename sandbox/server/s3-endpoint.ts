/** One S3 request, from path to answer. */
import type { IncomingMessage } from 'node:http';
import { AwsError } from '../aws-error.ts';
import type { FaultBook } from '../faults.ts';
import type { Log } from '../log.ts';
import type { S3Context } from '../s3/context.ts';
import { checkCaller } from '../s3/presigned.ts';
import { readS3Call, runS3Action, s3ActionOf } from '../s3/router.ts';
import { errorReply } from '../s3/s3-call.ts';
import type { Answer } from './answer.ts';
import { toAwsError } from './answer.ts';

export interface S3Endpoint {
  s3: S3Context;
  faults: FaultBook;
  log: Log;
}

export async function answerS3(request: IncomingMessage, requestId: string, endpoint: S3Endpoint): Promise<Answer> {
  const { s3, log } = endpoint;
  const resource = (request.url ?? '/').split('?', 1)[0]!;
  let action = request.method ?? '';
  try {
    const call = readS3Call(request);
    const known = s3ActionOf(call);
    action = known;
    checkCaller(call.query, request.headers.authorization, s3.clock.now());
    if (call.bucket !== '' && endpoint.faults.takeForBucket()) s3.buckets.lose(call.bucket);
    const faults = endpoint.faults.takeForCall(action, resource);
    if (faults.lost) return { status: 503, headers: {}, body: null, faults };
    if (faults.error) throw new AwsError(faults.error.code, faults.error.message, faults.error.status);
    const reply = await runS3Action(known, call, s3);
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
