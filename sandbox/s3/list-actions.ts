/** ListObjectsV2 and its older form. */
import { AwsError } from '../aws-error.ts';
import type { XmlNode } from '../xml.ts';
import { type S3Call, type S3Context, type S3Reply, xmlReply } from './s3-call.ts';
import { compareKeys } from './key-path.ts';

const MAX_KEYS = 1_000;

export function listObjectsV2(call: S3Call, context: S3Context): S3Reply {
  const token = call.query.get('continuation-token');
  const startAfter = call.query.get('start-after') ?? '';
  const { listing, encode, content } = readPage(call, context, token === null ? startAfter : readToken(token));
  return xmlReply('ListBucketResult', {
    ...content,
    StartAfter: startAfter === '' ? undefined : encode(startAfter),
    ContinuationToken: token ?? undefined,
    NextContinuationToken: listing.next === null ? undefined : writeToken(listing.next),
    KeyCount: listing.keys.length + listing.commonPrefixes.length,
  });
}

export function listObjectsV1(call: S3Call, context: S3Context): S3Reply {
  const marker = call.query.get('marker') ?? '';
  const { listing, encode, content } = readPage(call, context, marker);
  const NextMarker = listing.next === null ? undefined : encode(listing.next);
  return xmlReply('ListBucketResult', { ...content, Marker: encode(marker), NextMarker });
}

function readPage(call: S3Call, context: S3Context, after: string) {
  const bucket = context.buckets.need(call.bucket);
  const prefix = call.query.get('prefix') ?? '';
  const delimiter = call.query.get('delimiter') ?? '';
  const maxKeys = readMaxKeys(call.query.get('max-keys'));
  const listing = listKeys(bucket.keys(), { prefix, delimiter, after, maxKeys });
  const encode = encoder(call);
  const content: XmlNode = {
    Name: bucket.name,
    Prefix: encode(prefix),
    Delimiter: delimiter === '' ? undefined : encode(delimiter),
    MaxKeys: maxKeys,
    EncodingType: call.query.get('encoding-type') ?? undefined,
    IsTruncated: listing.next !== null,
    Contents: listing.keys.map((key) => {
      const record = bucket.find(key)!;
      return {
        Key: encode(key),
        LastModified: new Date(record.modifiedMs).toISOString(),
        ETag: `"${record.etag}"`,
        Size: record.sizeBytes,
        StorageClass: 'STANDARD',
      };
    }),
    CommonPrefixes: listing.commonPrefixes.map((p) => ({ Prefix: encode(p) })),
  };
  return { listing, encode, content };
}

function readMaxKeys(text: string | null): number {
  if (text === null || text === '') return MAX_KEYS;
  if (!/^\d{1,9}$/.test(text))
    throw new AwsError('InvalidArgument', 'Provided max-keys not an integer or within integer range');
  return Math.min(Number(text), MAX_KEYS);
}

/** Percent-encoding that keeps slashes, if the caller requests it; XML alone cannot represent every key. */
function encoder(call: S3Call): (text: string) => string {
  const type = call.query.get('encoding-type');
  if (type === null) return (text) => text;
  if (type !== 'url') throw new AwsError('InvalidArgument', 'Invalid Encoding Method specified in Request');
  return (text) => encodeURIComponent(text).replaceAll('%2F', '/').replaceAll('%20', '+');
}

const writeToken = (key: string): string => Buffer.from(key, 'utf8').toString('base64');

function readToken(token: string): string {
  const key = Buffer.from(token, 'base64').toString('utf8');
  if (key === '' || writeToken(key) !== token)
    throw new AwsError('InvalidArgument', 'The continuation token provided is incorrect');
  return key;
}

export interface ListingRequest {
  prefix: string;
  delimiter: string;
  /** Show only keys after this one; empty for all. */
  after: string;
  maxKeys: number;
}

export interface Listing {
  keys: string[];
  commonPrefixes: string[];
  /** Where the next page starts; null on the last page. */
  next: string | null;
}

/** @param keys of the whole bucket, in S3's order */
export function listKeys(keys: readonly string[], request: ListingRequest): Listing {
  const { prefix, delimiter, after, maxKeys } = request;
  const listing: Listing = { keys: [], commonPrefixes: [], next: null };
  if (maxKeys === 0) return listing;
  let lastShown = '';
  for (const key of keys) {
    if (!key.startsWith(prefix)) {
      if (compareKeys(key, prefix) > 0) break;
      continue;
    }
    const cut = delimiter === '' ? -1 : key.indexOf(delimiter, prefix.length);
    const common = cut < 0 ? null : key.slice(0, cut + delimiter.length);
    // A group shown on this or the previous page is not shown again, although its later keys are past the marker.
    if (common !== null && (common === after || common === listing.commonPrefixes.at(-1))) continue;
    if (after !== '' && compareKeys(key, after) <= 0) continue;
    if (listing.keys.length + listing.commonPrefixes.length === maxKeys) {
      listing.next = lastShown;
      break;
    }
    if (common === null) listing.keys.push(key);
    else listing.commonPrefixes.push(common);
    lastShown = common ?? key;
  }
  return listing;
}
