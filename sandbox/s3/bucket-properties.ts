/**
 * A bucket's settings: encryption, public access block, lifecycle. Stored and returned as the XML that was put; they do
 * not change how the sandbox handles objects. A new bucket has AWS's defaults since 2023: SSE-S3, no public access.
 */
import { AwsError } from '../aws-error.ts';
import { parseXml } from '../xml.ts';
import type { S3Context } from './context.ts';
import { malformedXml, readSmallBody } from './object-actions.ts';
import type { S3Call, S3Reply } from './s3-call.ts';
import { emptyReply } from './s3-call.ts';

const MAX_BODY_BYTES = 65_536;
const NAMESPACE = 'http://s3.amazonaws.com/doc/2006-03-01/';

export interface BucketProperty {
  /** Query key, and file name in the bucket's folder. */
  name: 'encryption' | 'publicAccessBlock' | 'lifecycle';
  /** Root element of the document. */
  root: string;
  /** Default of a new bucket; null for none. */
  usual: string | null;
  /** The value after a delete: encryption returns to SSE-S3, the others are gone. */
  afterDelete: 'usual' | 'none';
  absent: { code: string; message: string };
}

const ENCRYPTION: BucketProperty = {
  name: 'encryption',
  root: 'ServerSideEncryptionConfiguration',
  usual: `<ServerSideEncryptionConfiguration xmlns="${NAMESPACE}"><Rule><ApplyServerSideEncryptionByDefault><SSEAlgorithm>AES256</SSEAlgorithm></ApplyServerSideEncryptionByDefault><BucketKeyEnabled>false</BucketKeyEnabled></Rule></ServerSideEncryptionConfiguration>`,
  afterDelete: 'usual',
  absent: {
    code: 'ServerSideEncryptionConfigurationNotFoundError',
    message: 'The server side encryption configuration was not found',
  },
};

const PUBLIC_ACCESS: BucketProperty = {
  name: 'publicAccessBlock',
  root: 'PublicAccessBlockConfiguration',
  usual: `<PublicAccessBlockConfiguration xmlns="${NAMESPACE}"><BlockPublicAcls>true</BlockPublicAcls><IgnorePublicAcls>true</IgnorePublicAcls><BlockPublicPolicy>true</BlockPublicPolicy><RestrictPublicBuckets>true</RestrictPublicBuckets></PublicAccessBlockConfiguration>`,
  afterDelete: 'none',
  absent: {
    code: 'NoSuchPublicAccessBlockConfiguration',
    message: 'The public access block configuration was not found',
  },
};

const LIFECYCLE: BucketProperty = {
  name: 'lifecycle',
  root: 'LifecycleConfiguration',
  usual: null,
  afterDelete: 'none',
  absent: { code: 'NoSuchLifecycleConfiguration', message: 'The lifecycle configuration does not exist' },
};

function get(property: BucketProperty) {
  return (call: S3Call, context: S3Context): S3Reply => {
    const xml = context.buckets.need(call.bucket).property(property.name) ?? property.usual;
    if (xml === null || xml === '') throw new AwsError(property.absent.code, property.absent.message, 404);
    return { status: 200, headers: { 'content-type': 'application/xml' }, body: xml };
  };
}

function put(property: BucketProperty) {
  return async (call: S3Call, context: S3Context): Promise<S3Reply> => {
    const bucket = context.buckets.need(call.bucket);
    const body = await readSmallBody(call, MAX_BODY_BYTES);
    const root = parseXml(body);
    if (root?.name !== property.root || root.children.length === 0) throw malformedXml();
    bucket.setProperty(property.name, body);
    return emptyReply(200);
  };
}

function remove(property: BucketProperty) {
  return (call: S3Call, context: S3Context): S3Reply => {
    context.buckets.need(call.bucket).setProperty(property.name, property.afterDelete === 'usual' ? null : '');
    return emptyReply(204);
  };
}

/** By AWS's names for the calls. */
export const PROPERTY_HANDLERS = {
  GetBucketEncryption: get(ENCRYPTION),
  PutBucketEncryption: put(ENCRYPTION),
  DeleteBucketEncryption: remove(ENCRYPTION),
  GetPublicAccessBlock: get(PUBLIC_ACCESS),
  PutPublicAccessBlock: put(PUBLIC_ACCESS),
  DeletePublicAccessBlock: remove(PUBLIC_ACCESS),
  GetBucketLifecycleConfiguration: get(LIFECYCLE),
  PutBucketLifecycleConfiguration: put(LIFECYCLE),
  DeleteBucketLifecycle: remove(LIFECYCLE),
};

const ACTIONS: Record<BucketProperty['name'], Partial<Record<string, keyof typeof PROPERTY_HANDLERS>>> = {
  encryption: { GET: 'GetBucketEncryption', PUT: 'PutBucketEncryption', DELETE: 'DeleteBucketEncryption' },
  publicAccessBlock: {
    GET: 'GetPublicAccessBlock',
    PUT: 'PutPublicAccessBlock',
    DELETE: 'DeletePublicAccessBlock',
  },
  lifecycle: {
    GET: 'GetBucketLifecycleConfiguration',
    PUT: 'PutBucketLifecycleConfiguration',
    DELETE: 'DeleteBucketLifecycle',
  },
};

/** Which of these calls a bucket request is; null for none. */
export function propertyActionOf(method: string, query: URLSearchParams): keyof typeof PROPERTY_HANDLERS | null {
  const name = (Object.keys(ACTIONS) as BucketProperty['name'][]).find((key) => query.has(key));
  return name === undefined ? null : (ACTIONS[name][method] ?? null);
}
