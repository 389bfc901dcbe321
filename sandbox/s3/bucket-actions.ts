/** The calls on buckets, except listings. */
import { AwsError } from '../aws-error.ts';
import { ACCOUNT_ID } from '../ids.ts';
import { childText, parseXml } from '../xml.ts';
import { malformedXml, readSmallBody } from './object-actions.ts';
import { emptyReply, header, type S3Call, type S3Context, type S3Reply, xmlReply } from './s3-call.ts';

/** The region that S3 represents by an empty name. */
const FIRST_REGION = 'us-east-1';

export async function createBucket(call: S3Call, context: S3Context): Promise<S3Reply> {
  checkName(call.bucket);
  const body = await readSmallBody(call, 65_536);
  const region = scopeRegion(call);
  const wanted = readLocation(body);
  if (region !== null && region !== FIRST_REGION && wanted !== region)
    throw new AwsError(
      'IllegalLocationConstraintException',
      `The ${wanted ?? 'unspecified'} location constraint is incompatible for the region specific endpoint this request was sent to.`,
    );
  const existing = context.buckets.find(call.bucket);
  if (existing && !(region === FIRST_REGION && existing.about.region === FIRST_REGION))
    throw new AwsError(
      'BucketAlreadyOwnedByYou',
      'Your previous request to create the named bucket succeeded and you already own it.',
      409,
    );
  if (!existing)
    context.buckets.create(call.bucket, { region: wanted ?? FIRST_REGION, createdMs: context.clock.now() });
  return emptyReply(200, { location: `/${call.bucket}` });
}

function checkName(name: string): void {
  const wellFormed = /^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/.test(name) && !name.includes('..');
  if (!wellFormed || /^\d+\.\d+\.\d+\.\d+$/.test(name))
    throw new AwsError('InvalidBucketName', 'The specified bucket is not valid.');
}

function readLocation(body: string): string | null {
  if (body.trim() === '') return null;
  const root = parseXml(body);
  if (root?.name !== 'CreateBucketConfiguration') throw malformedXml();
  return childText(root, 'LocationConstraint')?.trim() || null;
}

/** The region the caller signed for: the endpoint serves S3 for every region. */
function scopeRegion(call: S3Call): string | null {
  const credential = call.query.get('X-Amz-Credential') ?? header(call, 'authorization') ?? '';
  return /\/\d{8}\/([a-z0-9-]+)\/s3\/aws4_request/.exec(credential)?.[1] ?? null;
}

export function headBucket(call: S3Call, context: S3Context): S3Reply {
  return emptyReply(200, { 'x-amz-bucket-region': context.buckets.need(call.bucket).about.region });
}

export function deleteBucket(call: S3Call, context: S3Context): S3Reply {
  context.buckets.remove(context.buckets.need(call.bucket));
  return emptyReply(204);
}

export function listBuckets(_call: S3Call, context: S3Context): S3Reply {
  return xmlReply('ListAllMyBucketsResult', {
    Owner: { ID: ACCOUNT_ID },
    Buckets: {
      Bucket: context.buckets.all().map((bucket) => ({
        Name: bucket.name,
        CreationDate: new Date(bucket.about.createdMs).toISOString(),
        BucketRegion: bucket.about.region,
      })),
    },
  });
}

export function getBucketLocation(call: S3Call, context: S3Context): S3Reply {
  const { region } = context.buckets.need(call.bucket).about;
  // The only answer whose root element contains the text itself.
  return xmlReply('LocationConstraint', region === FIRST_REGION ? '' : region);
}
