/** Determines the S3 call from method, path and query; S3 has no action parameter. */
import type { IncomingMessage } from 'node:http';
import { AwsError } from '../aws-error.ts';
import { ACCOUNT_ID } from '../ids.ts';
import * as buckets from './bucket-actions.ts';
import { PROPERTY_CALLS, fixed } from './bucket-properties.ts';
import * as lists from './list-actions.ts';
import * as multipart from './multipart-actions.ts';
import * as objects from './object-actions.ts';
import { header, type S3Call, type S3Handler } from './s3-call.ts';

/** AWS's names for the calls, which fault rules also use, by method and the query key that distinguishes them. */
type Calls = Record<string, [action: string, handler: S3Handler]>;

const SERVICE_CALLS: Calls = { GET: ['ListBuckets', buckets.listBuckets] };

const BUCKET_CALLS: Calls = {
  ...PROPERTY_CALLS,
  'GET location': ['GetBucketLocation', buckets.getBucketLocation],
  'GET uploads': ['ListMultipartUploads', multipart.listMultipartUploads],
  'GET list-type=2': ['ListObjectsV2', lists.listObjectsV2],
  'POST delete': ['DeleteObjects', objects.deleteObjects],
  GET: ['ListObjects', lists.listObjectsV1],
  HEAD: ['HeadBucket', buckets.headBucket],
  PUT: ['CreateBucket', buckets.createBucket],
  DELETE: ['DeleteBucket', buckets.deleteBucket],
};

const OBJECT_CALLS: Calls = {
  'GET tagging': ['GetObjectTagging', fixed('Tagging', { TagSet: null })],
  'GET uploadId': ['ListParts', multipart.listParts],
  'PUT uploadId': ['UploadPart', multipart.uploadPart],
  'POST uploads': ['CreateMultipartUpload', multipart.createMultipartUpload],
  'POST uploadId': ['CompleteMultipartUpload', multipart.completeMultipartUpload],
  'DELETE uploadId': ['AbortMultipartUpload', multipart.abortMultipartUpload],
  GET: ['GetObject', objects.getObject],
  HEAD: ['HeadObject', objects.headObject],
  PUT: ['PutObject', objects.putObject],
  DELETE: ['DeleteObject', objects.deleteObject],
};

/** Query keys of S3 calls that the sandbox does not implement, or not for every method. */
const SUBRESOURCES = [
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

/** The call's name and handler. Throws NotImplemented for S3 features that the sandbox lacks. */
export function routeS3Call({ request, bucket, key, query }: S3Call): { action: string; handler: S3Handler } {
  const method = request.method ?? 'GET';
  const calls = bucket === '' ? SERVICE_CALLS : key === '' ? BUCKET_CALLS : OBJECT_CALLS;
  const special = [...query].flatMap(([name, value]) => [`${method} ${name}`, `${method} ${name}=${value}`]);
  const route = special.find((name) => name in calls) ?? method;
  const lacking = SUBRESOURCES.find((name) => query.has(name) && route !== `${method} ${name}`);
  const call = calls[route];
  if (lacking !== undefined || !call) {
    const what = lacking === undefined ? method : `${method} ?${lacking}`;
    throw new AwsError('NotImplemented', `The sandbox does not have this S3 call (${what})`, 501);
  }
  const [action, handler] = call;
  return {
    action,
    handler: (s3Call, context) => {
      const owner = header(s3Call, 'x-amz-expected-bucket-owner');
      if (owner !== undefined && owner !== ACCOUNT_ID && context.buckets.find(bucket) !== null)
        throw new AwsError('AccessDenied', 'Access Denied', 403);
      return handler(s3Call, context);
    },
  };
}
