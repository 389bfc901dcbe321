/** What S3 reports about a run's bucket. Each query may be refused, or not be implemented by the endpoint. */
import type { S3, LifecycleRule } from '@aws-sdk/client-s3';
import { encryptionOf } from '../../../shared/adapters/s3-object-store.ts';
import { AppError } from '../../../shared/domain/errors.ts';
import { classifyAwsError, toAppError } from './aws-errors.ts';
import { type AwsOptions, lazyS3, withClient } from './sdk-clients.ts';

export type BucketLocation = AwsOptions & { bucket: string };

/**
 * ours       it exists and belongs to the account
 * foreign    usable, but belongs to another account
 * refused    it belongs to another account, or a permission is missing
 * elsewhere  it is in another region
 * missing    there is no bucket of that name
 */
export type BucketOwner = 'ours' | 'foreign' | 'refused' | 'elsewhere' | 'missing';

/** @param account the expected owner; null when unknown: then `ours` only means that the bucket is usable */
export async function findBucketOwner(place: BucketLocation, account: string | null): Promise<BucketOwner> {
  return withS3(place, async (s3) => {
    const status = await headBucket(s3, place, account);
    if (status !== 403 || account === null) return OWNER_BY_STATUS[status] ?? 'elsewhere';
    // A foreign bucket and a missing permission get the same refusal; without the expected owner they differ.
    return (await headBucket(s3, place, null)) === 200 ? 'foreign' : 'refused';
  });
}

const OWNER_BY_STATUS: Record<number, BucketOwner> = { 200: 'ours', 403: 'refused', 404: 'missing' };

/** The status of HeadBucket, whose replies have no code: 200, 403, 404, and 301 or 400 for another region. */
export async function headBucket(s3: S3, place: BucketLocation, account: string | null): Promise<number> {
  try {
    await s3.headBucket({ Bucket: place.bucket, ...(account === null ? {} : { ExpectedBucketOwner: account }) });
    return 200;
  } catch (error) {
    const { code, status = 0, message } = classifyAwsError(error);
    if ([301, 307, 400, 403, 404].includes(status)) return status;
    // A HEAD reply has no body and so no code: a 500 here does not mean that the endpoint lacks the call.
    if (code === '' && status >= 500)
      throw new AppError('aws-failed', `HeadBucket ${place.bucket} failed: ${message}`, { cause: error });
    throw toAppError(error, `HeadBucket ${place.bucket}`, place.endpoint);
  }
}

/** The bucket's region. Throws the AppError of a refused call. */
export async function readBucketRegion(place: BucketLocation): Promise<string> {
  return withS3(place, async (s3) => {
    try {
      const reply = await s3.getBucketLocation({ Bucket: place.bucket });
      const { LocationConstraint: region } = reply;
      // The two that predate region names.
      return !region ? 'us-east-1' : (region as string) === 'EU' ? 'eu-west-1' : region;
    } catch (error) {
      throw toAppError(error, `GetBucketLocation ${place.bucket}`, place.endpoint);
    }
  });
}

export interface BucketSettings {
  /** `AES256` or `aws:kms`; null when objects are not encrypted at rest; an AppError when the query failed. */
  encryption: string | null | AppError;
  /** The key of `aws:kms` where one is named: ID, alias or ARN; null or left out for AWS's own. */
  kmsKey?: string | null;
  /** True when all four kinds of public access are blocked. */
  publicAccessBlocked: boolean | AppError;
  lifecycle: { abortsUploads: boolean; expiresRuns: boolean } | AppError;
}

/** Reads the settings of a bucket. Never throws: a failed query is an AppError in its place. */
export async function readBucketSettings(place: BucketLocation): Promise<BucketSettings> {
  return withS3(place, async (s3) => {
    const [encryption, publicAccessBlocked, lifecycle] = await Promise.all([
      ask(place, 'GetBucketEncryption', () => readEncryption(s3, place.bucket), null),
      ask(place, 'GetPublicAccessBlock', () => readPublicAccess(s3, place.bucket), false),
      ask(place, 'GetBucketLifecycleConfiguration', () => readLifecycle(s3, place.bucket), NO_RULES),
    ]);
    if (encryption === null || 'message' in encryption) return { encryption, publicAccessBlocked, lifecycle };
    return { encryption: encryption.algorithm, kmsKey: encryption.key, publicAccessBlocked, lifecycle };
  });
}

const NO_RULES = { abortsUploads: false, expiresRuns: false };

async function ask<T>(place: BucketLocation, call: string, read: () => Promise<T>, absent: T): Promise<T | AppError> {
  try {
    return await read();
  } catch (error) {
    const { kind, code } = classifyAwsError(error);
    if (kind === 'not-found' && code !== 'NoSuchBucket') return absent;
    return toAppError(error, `${call} ${place.bucket}`, place.endpoint);
  }
}

async function readEncryption(s3: S3, Bucket: string): Promise<{ algorithm: string; key: string | null } | null> {
  const reply = await s3.getBucketEncryption({ Bucket });
  const [rule] = reply.ServerSideEncryptionConfiguration?.Rules ?? [];
  const { SSEAlgorithm: algorithm, KMSMasterKeyID: key } = rule?.ApplyServerSideEncryptionByDefault ?? {};
  return algorithm === undefined ? null : { algorithm, key: key ?? null };
}

async function readPublicAccess(s3: S3, Bucket: string): Promise<boolean> {
  const { PublicAccessBlockConfiguration: block } = await s3.getPublicAccessBlock({ Bucket });
  return Boolean(
    block?.BlockPublicAcls && block.IgnorePublicAcls && block.BlockPublicPolicy && block.RestrictPublicBuckets,
  );
}

async function readLifecycle(s3: S3, Bucket: string): Promise<typeof NO_RULES> {
  const { Rules = [] } = await s3.getBucketLifecycleConfiguration({ Bucket });
  const enabled = Rules.filter((rule) => rule.Status === 'Enabled');
  const touches = (prefix: string): boolean => 'runs/'.startsWith(prefix) || prefix.startsWith('runs/');
  return {
    abortsUploads: enabled.some((rule) => rule.AbortIncompleteMultipartUpload !== undefined),
    expiresRuns: enabled.some((rule) => rule.Expiration !== undefined && touches(prefixOf(rule))),
  };
}

function prefixOf(rule: LifecycleRule): string {
  return rule.Filter?.Prefix ?? rule.Filter?.And?.Prefix ?? rule.Prefix ?? '';
}

/** A permission that was tried. */
export interface TriedRight {
  call: string;
  /** Why it was refused; null when it was granted. */
  refusal: AppError | null;
}

/** The key of the test object, in a folder that no run uses. */
export const TEST_OBJECT_KEY = 'runs/_doctor/probe';

/**
 * Lists, writes and reads one small object, as a run does with its own. The object stays: a run needs no permission to
 * delete and should not get one for this. Never throws.
 */
export async function tryBucketRights(place: BucketLocation & { sse: string | null }): Promise<TriedRight[]> {
  return withS3(place, async (s3) => {
    const at = { Bucket: place.bucket, Key: TEST_OBJECT_KEY };
    const attempt = async (call: string, send: () => Promise<unknown>): Promise<TriedRight> => {
      try {
        await send();
        return { call, refusal: null };
      } catch (error) {
        // 412: the object exists from an earlier check, and S3 checks that after the permission.
        if (call === 'PutObject' && classifyAwsError(error).status === 412) return { call, refusal: null };
        return { call, refusal: toAppError(error, `${call} ${place.bucket}/${TEST_OBJECT_KEY}`, place.endpoint) };
      }
    };
    const list = await attempt('ListObjectsV2', () =>
      s3.listObjectsV2({ Bucket: place.bucket, Prefix: 'runs/_doctor/', MaxKeys: 1 }),
    );
    const put = await attempt('PutObject', () =>
      s3.putObject({ ...at, Body: 'crawlfleet doctor\n', IfNoneMatch: '*', ...encryptionOf(place.sse ?? undefined) }),
    );
    // An object that could not be written cannot be read.
    if (put.refusal !== null) return [list, put];
    const get = await attempt('GetObject', async () => {
      const { Body } = await s3.getObject(at);
      await Body?.transformToByteArray();
    });
    return [list, put, get];
  });
}

const withS3 = <T>(place: BucketLocation, work: (s3: S3) => Promise<T>): Promise<T> => withClient(lazyS3(place), work);
