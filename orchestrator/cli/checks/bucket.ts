/**
 * The bucket exists, in this region, and in our own account: results in another account's bucket belong to that
 * account.
 */
import { AppError } from '../../../shared/domain/errors.ts';
import { findBucketOwner, readBucketRegion } from '../../cloud/bucket-facts.ts';
import type { Check, Finding } from './check.ts';
import { failed, ok, warning } from './check.ts';
import { lacksBucket } from './lacks.ts';
import { findingOf } from './run-checks.ts';

export const bucket: Check = {
  id: 'bucket',
  title: 'bucket',
  kinds: ['aws'],
  needs: ['credentials'],
  lacks: lacksBucket,
  beforeLaunch: true,
  async run({ aws, target, facts }) {
    const place = { ...aws!, bucket: target.bucket };
    // An endpoint without STS cannot name our account; then the check only shows whether the bucket can be used.
    const account = await facts.identity().then(
      (identity) => identity.account,
      () => null,
    );
    const { bucket: name, region } = target;
    switch (await findBucketOwner(place, account)) {
      case 'ours':
        return [await regionFinding(place, region, account)];
      case 'foreign':
        return [
          failed(
            'aws-denied',
            `the bucket ${name} can be used, but belongs to another account than ${account}: what a run writes there is its owner's`,
            'Set aws.bucket to a bucket of this account; orchestrator setup shows how to make one',
          ),
        ];
      case 'refused':
        return [
          failed(
            'aws-denied',
            `the bucket ${name} belongs to another account, or these credentials may not list it`,
            `Bucket names are shared by all of AWS: choose another for aws.bucket, or allow s3:ListBucket on arn:aws:s3:::${name}`,
          ),
        ];
      case 'elsewhere':
        return [
          failed(
            'aws-invalid',
            `the bucket ${name} is not in ${region}, or its name is not a valid bucket name`,
            'Correct aws.bucket or aws.region',
          ),
        ];
      case 'missing':
        return [
          failed(
            'aws-invalid',
            `there is no bucket ${name}`,
            `aws s3api create-bucket --bucket ${name} --region ${region}${region === 'us-east-1' ? '' : ` --create-bucket-configuration LocationConstraint=${region}`}`,
          ),
        ];
    }
  },
};

async function regionFinding(
  place: Parameters<typeof readBucketRegion>[0],
  region: string,
  account: string | null,
): Promise<Finding> {
  const whose = account === null ? `${place.bucket} can be used` : `${place.bucket} belongs to account ${account}`;
  try {
    const there = await readBucketRegion(place);
    if (there === region) return ok(`${whose} and is in ${region}`);
    return failed(
      'aws-invalid',
      `${whose}, but is in ${there}, not in ${region}: every part would cross regions`,
      `Set aws.region to ${there}, or aws.bucket to a bucket in ${region}`,
    );
  } catch (error) {
    const finding = findingOf(error);
    if (error instanceof AppError && error.code === 'aws-denied')
      return warning(`${whose}; its region could not be read`, 'Allow s3:GetBucketLocation');
    return finding;
  }
}
