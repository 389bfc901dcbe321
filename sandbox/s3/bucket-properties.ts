/**
 * A bucket's settings. Encryption, public access block and lifecycle are stored and returned as the XML that was put;
 * they do not change how the sandbox handles objects. A new bucket has AWS's defaults since 2023: SSE-S3, no public
 * access. The others cannot be set here; clients that read all of them, such as Terraform, see a new bucket as on AWS.
 */
import { AwsError } from '../aws-error.ts';
import { ACCOUNT_ID } from '../ids.ts';
import { parseXml } from '../xml.ts';
import { malformedXml, readSmallBody } from './object-actions.ts';
import { emptyReply, NAMESPACE, type S3Handler, xmlReply } from './s3-call.ts';

const MAX_BODY_BYTES = 65_536;

interface BucketProperty {
  /** File name in the bucket's folder. */
  name: 'encryption' | 'publicAccessBlock' | 'lifecycle';
  /** Root element of the document. */
  root: string;
  /** Content of a new bucket's document; null for none. */
  usual: string | null;
  absent: [code: string, message: string];
}

const ENCRYPTION: BucketProperty = {
  name: 'encryption',
  root: 'ServerSideEncryptionConfiguration',
  usual:
    '<Rule><ApplyServerSideEncryptionByDefault><SSEAlgorithm>AES256</SSEAlgorithm></ApplyServerSideEncryptionByDefault><BucketKeyEnabled>false</BucketKeyEnabled></Rule>',
  absent: ['ServerSideEncryptionConfigurationNotFoundError', 'The server side encryption configuration was not found'],
};

const PUBLIC_ACCESS: BucketProperty = {
  name: 'publicAccessBlock',
  root: 'PublicAccessBlockConfiguration',
  usual:
    '<BlockPublicAcls>true</BlockPublicAcls><IgnorePublicAcls>true</IgnorePublicAcls><BlockPublicPolicy>true</BlockPublicPolicy><RestrictPublicBuckets>true</RestrictPublicBuckets>',
  absent: ['NoSuchPublicAccessBlockConfiguration', 'The public access block configuration was not found'],
};

const LIFECYCLE: BucketProperty = {
  name: 'lifecycle',
  root: 'LifecycleConfiguration',
  usual: null,
  absent: ['NoSuchLifecycleConfiguration', 'The lifecycle configuration does not exist'],
};

const get =
  ({ name, root, usual, absent }: BucketProperty): S3Handler =>
  (call, context) => {
    const unset = usual === null ? '' : `<${root} xmlns="${NAMESPACE}">${usual}</${root}>`;
    const xml = context.buckets.need(call.bucket).property(name) ?? unset;
    if (xml === '') throw new AwsError(...absent, 404);
    return { status: 200, headers: { 'content-type': 'application/xml' }, body: xml };
  };

const put =
  (property: BucketProperty): S3Handler =>
  async (call, context) => {
    const bucket = context.buckets.need(call.bucket);
    const body = await readSmallBody(call, MAX_BODY_BYTES);
    const root = parseXml(body);
    if (root?.name !== property.root || root.children.length === 0) throw malformedXml();
    bucket.setProperty(property.name, body);
    return emptyReply(200);
  };

/** Removes a property: encryption returns to SSE-S3, the others are gone. */
const remove =
  (property: BucketProperty): S3Handler =>
  (call, context) => {
    context.buckets.need(call.bucket).setProperty(property.name, property === ENCRYPTION ? null : '');
    return emptyReply(204);
  };

/** Answers with this error, for a bucket that exists. */
const missing =
  (code: string, message: string): S3Handler =>
  (call, context) => {
    context.buckets.need(call.bucket);
    throw new AwsError(code, message, 404);
  };

/** Answers with this document, for a bucket that exists. */
export const fixed =
  (root: string, content: Parameters<typeof xmlReply>[1]): S3Handler =>
  (call, context) => {
    context.buckets.need(call.bucket);
    return xmlReply(root, content);
  };

const OWNER = { ID: ACCOUNT_ID };

/** The calls by method and query key. */
export const PROPERTY_CALLS: Record<string, [action: string, handler: S3Handler]> = {
  'GET encryption': ['GetBucketEncryption', get(ENCRYPTION)],
  'PUT encryption': ['PutBucketEncryption', put(ENCRYPTION)],
  'DELETE encryption': ['DeleteBucketEncryption', remove(ENCRYPTION)],
  'GET publicAccessBlock': ['GetPublicAccessBlock', get(PUBLIC_ACCESS)],
  'PUT publicAccessBlock': ['PutPublicAccessBlock', put(PUBLIC_ACCESS)],
  'DELETE publicAccessBlock': ['DeletePublicAccessBlock', remove(PUBLIC_ACCESS)],
  'GET lifecycle': ['GetBucketLifecycleConfiguration', get(LIFECYCLE)],
  'PUT lifecycle': ['PutBucketLifecycleConfiguration', put(LIFECYCLE)],
  'DELETE lifecycle': ['DeleteBucketLifecycle', remove(LIFECYCLE)],
  'GET accelerate': ['GetBucketAccelerateConfiguration', fixed('AccelerateConfiguration', '')],
  'GET acl': [
    'GetBucketAcl',
    fixed('AccessControlPolicy', {
      Owner: OWNER,
      AccessControlList: { Grant: { Grantee: OWNER, Permission: 'FULL_CONTROL' } },
    }),
  ],
  'GET cors': ['GetBucketCors', missing('NoSuchCORSConfiguration', 'The CORS configuration does not exist')],
  'GET logging': ['GetBucketLogging', fixed('BucketLoggingStatus', '')],
  'GET notification': ['GetBucketNotificationConfiguration', fixed('NotificationConfiguration', '')],
  'GET ownershipControls': [
    'GetBucketOwnershipControls',
    fixed('OwnershipControls', { Rule: { ObjectOwnership: 'BucketOwnerEnforced' } }),
  ],
  'GET policy': ['GetBucketPolicy', missing('NoSuchBucketPolicy', 'The bucket policy does not exist')],
  'GET replication': [
    'GetBucketReplication',
    missing('ReplicationConfigurationNotFoundError', 'The replication configuration was not found'),
  ],
  'GET requestPayment': ['GetBucketRequestPayment', fixed('RequestPaymentConfiguration', { Payer: 'BucketOwner' })],
  'GET tagging': ['GetBucketTagging', missing('NoSuchTagSet', 'The TagSet does not exist')],
  'GET versioning': ['GetBucketVersioning', fixed('VersioningConfiguration', '')],
  'GET website': [
    'GetBucketWebsite',
    missing('NoSuchWebsiteConfiguration', 'The specified bucket does not have a website configuration'),
  ],
  'GET object-lock': [
    'GetObjectLockConfiguration',
    missing('ObjectLockConfigurationNotFoundError', 'Object Lock configuration does not exist for this bucket'),
  ],
};
