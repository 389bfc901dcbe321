/** Creates the bucket of a dry run. */
import type { S3, BucketLocationConstraint } from '@aws-sdk/client-s3';
import { AppError } from '../../shared/domain/errors.ts';
import { type AwsOptions, lazyS3, withClient } from './sdk-clients.ts';
import { classifyAwsError, toAppError } from './aws-errors.ts';

/** Ensures that the bucket exists and is ours. For dry runs: on AWS the user creates the bucket. */
export function ensureBucket(options: AwsOptions & { bucket: string }): Promise<'exists' | 'created'> {
  return withClient(lazyS3(options), async (s3) =>
    (await exists(s3, options.bucket, options)) ? 'exists' : create(s3, options.bucket, options),
  );
}

async function exists(s3: S3, bucket: string, options: AwsOptions): Promise<boolean> {
  try {
    await s3.headBucket({ Bucket: bucket });
    return true;
  } catch (error) {
    const failure = classifyAwsError(error);
    if (failure.kind === 'not-found') return false;
    const { status } = failure;
    if (status === 403) throw notOurs(bucket, error);
    if (status === 301 || status === 400) {
      throw new AppError(
        'aws-invalid',
        `The bucket ${bucket} is not in ${options.region}, or its name is not a valid bucket name`,
        {
          cause: error,
          hint: 'Correct aws.bucket or aws.region.',
        },
      );
    }
    // A HEAD reply has no body and so no code: a 500 here does not mean that the endpoint lacks the call.
    if (failure.code === '' && status !== undefined && status >= 500) {
      throw new AppError('aws-failed', `HeadBucket ${bucket} failed: ${failure.message}`, { cause: error });
    }
    throw toAppError(error, `HeadBucket ${bucket}`, options.endpoint);
  }
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
    if (failure.code === 'BucketAlreadyExists') throw notOurs(bucket, error);
    // OperationAborted: another process is creating it right now.
    if (failure.kind === 'in-use' && (await exists(s3, bucket, options))) return 'exists';
    throw toAppError(error, `CreateBucket ${bucket}`, options.endpoint);
  }
}

function notOurs(bucket: string, cause: unknown): AppError {
  return new AppError(
    'aws-denied',
    `The bucket ${bucket} belongs to another account, or these credentials may not use it`,
    {
      cause,
      hint: 'Bucket names are shared by all of AWS: choose another for aws.bucket, or correct the policy.',
    },
  );
}
