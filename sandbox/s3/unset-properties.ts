/**
 * AWS's answers for unset properties of a bucket or an object. They cannot be set here; clients that read all of them,
 * such as Terraform, see a new bucket as on AWS.
 */
import { AwsError } from '../aws-error.ts';
import { ACCOUNT_ID } from '../ids.ts';
import type { S3Context } from './context.ts';
import type { S3Call, S3Reply } from './s3-call.ts';
import { xmlReply } from './s3-call.ts';

type Handler = (call: S3Call, context: S3Context) => S3Reply;

/** Of a bucket that exists: this error. */
const missing =
  (code: string, message: string): Handler =>
  (call, context) => {
    context.buckets.need(call.bucket);
    throw new AwsError(code, message, 404);
  };

/** Of a bucket that exists: this document. */
const fixed =
  (root: string, content: Parameters<typeof xmlReply>[1]): Handler =>
  (call, context) => {
    context.buckets.need(call.bucket);
    return xmlReply(root, content);
  };

const OWNER = { ID: ACCOUNT_ID };

/** By AWS's names for the calls. */
export const UNSET_HANDLERS = {
  GetBucketAccelerateConfiguration: fixed('AccelerateConfiguration', ''),
  GetBucketAcl: fixed('AccessControlPolicy', {
    Owner: OWNER,
    AccessControlList: { Grant: { Grantee: OWNER, Permission: 'FULL_CONTROL' } },
  }),
  GetBucketCors: missing('NoSuchCORSConfiguration', 'The CORS configuration does not exist'),
  GetBucketLogging: fixed('BucketLoggingStatus', ''),
  GetBucketNotificationConfiguration: fixed('NotificationConfiguration', ''),
  GetBucketOwnershipControls: fixed('OwnershipControls', { Rule: { ObjectOwnership: 'BucketOwnerEnforced' } }),
  GetBucketPolicy: missing('NoSuchBucketPolicy', 'The bucket policy does not exist'),
  GetBucketReplication: missing('ReplicationConfigurationNotFoundError', 'The replication configuration was not found'),
  GetBucketRequestPayment: fixed('RequestPaymentConfiguration', { Payer: 'BucketOwner' }),
  GetBucketTagging: missing('NoSuchTagSet', 'The TagSet does not exist'),
  GetBucketVersioning: fixed('VersioningConfiguration', ''),
  GetBucketWebsite: missing('NoSuchWebsiteConfiguration', 'The specified bucket does not have a website configuration'),
  GetObjectLockConfiguration: missing(
    'ObjectLockConfigurationNotFoundError',
    'Object Lock configuration does not exist for this bucket',
  ),
  GetObjectTagging: fixed('Tagging', { TagSet: null }),
} satisfies Record<string, Handler>;

export type UnsetAction = keyof typeof UNSET_HANDLERS;

const OF_BUCKET: Record<string, UnsetAction> = {
  accelerate: 'GetBucketAccelerateConfiguration',
  acl: 'GetBucketAcl',
  cors: 'GetBucketCors',
  logging: 'GetBucketLogging',
  notification: 'GetBucketNotificationConfiguration',
  ownershipControls: 'GetBucketOwnershipControls',
  policy: 'GetBucketPolicy',
  replication: 'GetBucketReplication',
  requestPayment: 'GetBucketRequestPayment',
  tagging: 'GetBucketTagging',
  versioning: 'GetBucketVersioning',
  website: 'GetBucketWebsite',
  'object-lock': 'GetObjectLockConfiguration',
};

/** Which of these calls a request is; null for none. */
export function unsetActionOf(method: string, { bucket, key, query }: S3Call): UnsetAction | null {
  if (method !== 'GET' || bucket === '') return null;
  if (key !== '') return query.has('tagging') ? 'GetObjectTagging' : null;
  return OF_BUCKET[Object.keys(OF_BUCKET).find((name) => query.has(name)) ?? ''] ?? null;
}
