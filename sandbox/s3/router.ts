/** Determines the S3 call from method, path and query; S3 has no action parameter. */
import type { IncomingMessage } from 'node:http';
import { AwsError } from '../aws-error.ts';
import { ACCOUNT_ID } from '../ids.ts';
import * as buckets from './bucket-actions.ts';
import { PROPERTY_HANDLERS, propertyActionOf } from './bucket-properties.ts';
import type { S3Context } from './context.ts';
import * as lists from './list-actions.ts';
import * as multipart from './multipart-actions.ts';
import * as objects from './object-actions.ts';
import type { S3Call, S3Reply } from './s3-call.ts';
import { header } from './s3-call.ts';
import { UNSET_HANDLERS, unsetActionOf } from './unset-properties.ts';

type Handler = (call: S3Call, context: S3Context) => S3Reply | Promise<S3Reply>;

/** By AWS's names, which fault rules also use. */
const HANDLERS = {
  ListBuckets: buckets.listBuckets,
  CreateBucket: buckets.createBucket,
  HeadBucket: buckets.headBucket,
  DeleteBucket: buckets.deleteBucket,
  GetBucketLocation: buckets.getBucketLocation,
  ...PROPERTY_HANDLERS,
  ...UNSET_HANDLERS,
  ListObjects: lists.listObjectsV1,
  ListObjectsV2: lists.listObjectsV2,
  ListMultipartUploads: multipart.listMultipartUploads,
  DeleteObjects: objects.deleteObjects,
  PutObject: objects.putObject,
  GetObject: objects.getObject,
  HeadObject: objects.headObject,
  DeleteObject: objects.deleteObject,
  CreateMultipartUpload: multipart.createMultipartUpload,
  UploadPart: multipart.uploadPart,
  CompleteMultipartUpload: multipart.completeMultipartUpload,
  AbortMultipartUpload: multipart.abortMultipartUpload,
  ListParts: multipart.listParts,
} satisfies Record<string, Handler>;
export type S3Action = keyof typeof HANDLERS;

/** Query keys of S3 calls that the sandbox does not implement. */
const OTHER_SUBRESOURCES = [
  'accelerate acl analytics attributes cors encryption intelligent-tiering inventory legal-hold lifecycle logging',
  'metrics notification object-lock ownershipControls policy policyStatus publicAccessBlock renameObject replication',
  'requestPayment restore retention select session tagging torrent versionId versioning versions website',
].flatMap((line) => line.split(' '));

/** Uses the raw path: a URL parser would resolve a `..` in a key. */
export function readS3Call(request: IncomingMessage): S3Call {
  const url = request.url ?? '/';
  const mark = url.indexOf('?');
  const path = mark < 0 ? url : url.slice(0, mark);
  const [, bucket = '', key = ''] = /^\/?([^/]*)\/?(.*)$/s.exec(path) ?? [];
  try {
    return {
      request,
      bucket: decodeURIComponent(bucket),
      key: decodeURIComponent(key),
      query: new URLSearchParams(mark < 0 ? '' : url.slice(mark + 1)),
    };
  } catch {
    throw new AwsError('InvalidURI', "Couldn't parse the specified URI.");
  }
}

/** Throws NotImplemented for S3 features that the sandbox lacks. */
export function s3ActionOf(call: S3Call): S3Action {
  const { query } = call;
  const property = call.key === '' ? propertyActionOf(call.request.method ?? 'GET', query) : null;
  if (property !== null) return property;
  const unset = unsetActionOf(call.request.method ?? 'GET', call);
  if (unset !== null) return unset;
  const other = OTHER_SUBRESOURCES.find((name) => query.has(name));
  const method = call.request.method ?? 'GET';
  const action = other === undefined ? actionOf(method, call) : null;
  if (action !== null) return action;
  throw new AwsError(
    'NotImplemented',
    `The sandbox does not have this S3 call (${method}${other === undefined ? '' : ` ?${other}`})`,
    501,
  );
}

function actionOf(method: string, { bucket, key, query }: S3Call): S3Action | null {
  if (bucket === '') return method === 'GET' ? 'ListBuckets' : null;
  if (key === '') return bucketAction(method, query);
  switch (method) {
    case 'GET':
      return query.has('uploadId') ? 'ListParts' : 'GetObject';
    case 'HEAD':
      return 'HeadObject';
    case 'PUT':
      return query.has('uploadId') ? 'UploadPart' : 'PutObject';
    case 'POST':
      return query.has('uploads') ? 'CreateMultipartUpload' : query.has('uploadId') ? 'CompleteMultipartUpload' : null;
    case 'DELETE':
      return query.has('uploadId') ? 'AbortMultipartUpload' : 'DeleteObject';
    default:
      return null;
  }
}

function bucketAction(method: string, query: URLSearchParams): S3Action | null {
  switch (method) {
    case 'GET':
      if (query.has('location')) return 'GetBucketLocation';
      if (query.has('uploads')) return 'ListMultipartUploads';
      return query.get('list-type') === '2' ? 'ListObjectsV2' : 'ListObjects';
    case 'HEAD':
      return 'HeadBucket';
    case 'PUT':
      return 'CreateBucket';
    case 'POST':
      return query.has('delete') ? 'DeleteObjects' : null;
    case 'DELETE':
      return 'DeleteBucket';
    default:
      return null;
  }
}

export async function runS3Action(action: S3Action, call: S3Call, context: S3Context): Promise<S3Reply> {
  const owner = header(call, 'x-amz-expected-bucket-owner');
  if (owner !== undefined && owner !== ACCOUNT_ID && context.buckets.find(call.bucket) !== null)
    throw new AwsError('AccessDenied', 'Access Denied', 403);
  return HANDLERS[action](call, context);
}
