/** Creates the bucket of a dry run. */
import type { S3, BucketLocationConstraint } from '@aws-sdk/client-s3';
import { AppError } from '../../../shared/domain/errors.ts';
import { type AwsOptions, lazyS3, withClient } from './sdk-clients.ts';
import { classifyAwsError, toAppError } from './aws-errors.ts';
import { headBucket } from './bucket-facts.ts';

/** Ensures that the bucket exists and is ours. For dry runs: on AWS the user creates the bucket. */
export function ensureBucket(options: AwsOptions & { bucket: string }): Promise<'exists' | 'created'> {
  return withClient(lazyS3(options), async (s3) =>
    (await exists(s3, options.bucket, options)) ? 'exists' : create(s3, options.bucket, options),
  );
}

async function exists(s3: S3, bucket: string, options: AwsOptions): Promise<boolean> {
  const status = await headBucket(s3, { ...options, bucket }, null);
  if (status === 200 || status === 404) return status === 200;
  if (status === 403) throw notOurs(bucket);
  throw new AppError(
    'aws-invalid',
    `The bucket ${bucket} is not in ${options.region}, or its name is not a valid bucket name`,
    { hint: 'Correct aws.bucket or aws.region.' },
  );
}

async function create(s3: S3, bucket: string, options: AwsOptions): Promise<'created' | 'exists'> {
  try {
    await s3.createBucket({
      Bucket: bucket,
      // us-east-1 is the only region that refuses its own name here.
      ...(options.region === 'us-east-1'
        ? {}
        : { CreateBucketConfiguration: { LocationConstraint: options.region as BucketLocationConstraint } }),
    });
    return 'created';
  } catch (error) {
    const failure = classifyAwsError(error);
    if (failure.code === 'BucketAlreadyOwnedByYou') return 'exists';
    if (failure.code === 'BucketAlreadyExists') throw notOurs(bucket);
    // OperationAborted: another process is creating it right now.
    if (failure.kind === 'in-use' && (await exists(s3, bucket, options))) return 'exists';
    throw toAppError(error, `CreateBucket ${bucket}`, options.endpoint);
  }
}

function notOurs(bucket: string): AppError {
  return new AppError(
    'aws-denied',
    `The bucket ${bucket} belongs to another account, or these credentials may not use it`,
    { hint: 'Bucket names are shared by all of AWS: choose another for aws.bucket, or correct the policy.' },
  );
}
