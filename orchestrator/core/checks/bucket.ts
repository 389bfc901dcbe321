/** Checks of the bucket: existence, settings, rights. */
import { AppError } from '../../../shared/domain/errors.ts';
import { partitionOf } from '../../../shared/domain/partition.ts';
import {
  type BucketSettings,
  findBucketOwner,
  TEST_OBJECT_KEY,
  readBucketRegion,
  readBucketSettings,
  tryBucketRights,
} from '../cloud/bucket-facts.ts';
import { type Check, failed, type Finding, findingOf, lacksBucket, ok, standing, warning } from './check.ts';

export const bucket: Check = {
  id: 'bucket',
  title: 'bucket',
  only: 'aws',
  needs: ['credentials'],
  lacks: lacksBucket,
  beforeLaunch: true,
  async run({ target, facts }) {
    const place = { ...facts.aws(), bucket: target.bucket };
    // An endpoint without STS cannot name our account; then the check only shows whether the bucket can be used.
    const account = await facts.identity().then(
      (identity) => identity.account,
      () => null,
    );
    const { bucket: name, region } = target;
    switch (await findBucketOwner(place, account)) {
      case 'ours':
        return await regionFinding(place, region, account);
      case 'foreign':
        return failed(
          'aws-denied',
          `the bucket ${name} can be used, but belongs to another account than ${account}: what a run writes there is its owner's`,
          'Set aws.bucket to a bucket of this account; orchestrator setup shows how to make one',
        );
      case 'refused':
        return failed(
          'aws-denied',
          `the bucket ${name} belongs to another account, or these credentials may not list it`,
          `Bucket names are shared by all of AWS: choose another for aws.bucket, or allow s3:ListBucket on arn:${partitionOf(region).name}:s3:::${name}`,
        );
      case 'elsewhere':
        return failed(
          'aws-invalid',
          `the bucket ${name} is not in ${region}, or its name is not a valid bucket name`,
          'Correct aws.bucket or aws.region',
        );
      case 'missing':
        return failed(
          'aws-invalid',
          `there is no bucket ${name}`,
          `aws s3api create-bucket --bucket ${name} --region ${region}${region === 'us-east-1' ? '' : ` --create-bucket-configuration LocationConstraint=${region}`}`,
        );
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
    if (error instanceof AppError && error.code === 'aws-denied')
      return warning(`${whose}; its region could not be read`, 'Allow s3:GetBucketLocation');
    return findingOf(error);
  }
}

export const bucketSettings: Check = {
  id: 'bucket-settings',
  title: 'encryption and access of the bucket',
  only: 'aws',
  needs: ['bucket'],
  lacks: lacksBucket,
  beforeLaunch: true,
  async run({ target, facts, config }) {
    const settings = await readBucketSettings({ ...facts.aws(), bucket: target.bucket });
    const { sse } = config.values.aws;
    return judgeBucket(settings, { bucket: target.bucket, isFaithful: await facts.isFaithful(), sse });
  },
};

/** `isFaithful` is false for emulators, where settings that AWS gives every bucket are the user's. */
export function judgeBucket(
  settings: BucketSettings,
  about: { bucket: string; isFaithful: boolean; sse: string | null },
): Finding[] {
  return [
    encryption(settings.encryption, about),
    ...keyOf(settings.kmsKey, about.sse),
    publicAccess(settings.publicAccessBlocked, about),
    lifecycle(settings.lifecycle, about),
  ];
}

type About = Parameters<typeof judgeBucket>[1];

function encryption(found: BucketSettings['encryption'], { bucket, isFaithful }: About): Finding {
  if (found instanceof AppError) {
    // AWS failed at the moment: the setting may or may not exist. Another attempt may show it.
    const isPassing = found.code === 'aws-throttled' || found.code === 'aws-failed';
    return isPassing ? findingOf(found) : notAsked(found, 'its encryption', 's3:GetEncryptionConfiguration');
  }
  if (found !== null) return ok(`encrypted at rest (${found})`);
  const text = `the bucket ${bucket} does not encrypt what is put into it`;
  const remedy = `aws s3api put-bucket-encryption --bucket ${bucket} --server-side-encryption-configuration '{"Rules":[{"ApplyServerSideEncryptionByDefault":{"SSEAlgorithm":"AES256"}}]}'`;
  return isFaithful ? failed('aws-invalid', text, remedy) : warning(text, remedy);
}

/**
 * Everyone in the account may use AWS's own key; any other key needs its policy and the role's policy to allow it. With
 * `aws.sse`, `setup` prints these rights, and the check of the rights on objects tries those of the main server.
 */
function keyOf(bucketKey: string | null | undefined, sse: string | null): Finding[] {
  if (sse?.startsWith('arn:'))
    return [
      standing(`objects are put with the KMS key ${sse}: only a run shows whether the instance role may use it`, SETUP),
    ];
  if (sse !== null || !bucketKey || bucketKey.endsWith('alias/aws/s3')) return [];
  return [
    warning(
      `objects are encrypted with the KMS key ${bucketKey}: whether the instance role may use it cannot be checked, and without that right no result can be stored`,
      `Set aws.sse to the ARN of that key. ${SETUP}`,
    ),
  ];
}

const SETUP =
  'orchestrator setup then prints kms:GenerateDataKey for the instance role, and with kms:Decrypt for the main server';

function publicAccess(found: BucketSettings['publicAccessBlocked'], { bucket }: About): Finding {
  if (found instanceof AppError) return notAsked(found, 'its public access block', 's3:GetBucketPublicAccessBlock');
  if (found) return ok('public access is blocked');
  return warning(
    `public access to ${bucket} is not blocked altogether: a policy or an ACL could open crawled data to the public`,
    `aws s3api put-public-access-block --bucket ${bucket} --public-access-block-configuration BlockPublicAcls=true,IgnorePublicAcls=true,BlockPublicPolicy=true,RestrictPublicBuckets=true`,
  );
}

function lifecycle(found: BucketSettings['lifecycle'], { bucket }: About): Finding {
  if (found instanceof AppError) return notAsked(found, 'its lifecycle rules', 's3:GetLifecycleConfiguration');
  if (found.expiresRuns && found.abortsUploads)
    return ok('old runs and unfinished uploads are removed by lifecycle rules');
  const missing = [...(found.expiresRuns ? [] : ['old runs']), ...(found.abortsUploads ? [] : ['unfinished uploads'])];
  return warning(
    `no lifecycle rule of ${bucket} removes ${missing.join(' or ')}: they are billed until they are removed`,
    'orchestrator setup shows the rules',
  );
}

/** A right needed only for this check is no reason to refuse a run. */
function notAsked(error: AppError, what: string, right: string): Finding {
  if (error.code === 'aws-denied') return warning(`${what} could not be read: ${error.message}`, `Allow ${right}`);
  const finding = findingOf(error);
  return finding.level === 'failed' ? warning(`${what} could not be read: ${error.message}`, error.hint) : finding;
}

const RIGHT: Record<string, string> = {
  ListObjectsV2: 's3:ListBucket',
  PutObject: 's3:PutObject with If-None-Match',
  GetObject: 's3:GetObject',
};

export const bucketRights: Check = {
  id: 'bucket-rights',
  title: 'rights on objects of the bucket',
  only: 'aws',
  needs: ['bucket'],
  lacks: lacksBucket,
  beforeLaunch: true,
  limitMs: 15_000,
  async run({ target, config, facts }) {
    const tried = await tryBucketRights({ ...facts.aws(), bucket: target.bucket, sse: config.values.aws.sse });
    const refused = tried.flatMap(({ call, refusal }) => {
      if (refusal === null) return [];
      const finding = findingOf(refusal);
      if (finding.level !== 'failed' || refusal.code !== 'aws-denied') return finding;
      return { ...finding, remedy: `Allow ${RIGHT[call]} for the main server, as in deploy/policies/controller.json` };
    });
    if (refused.length > 0) return refused;
    return [
      ok(
        `listing, writing and reading work; the object ${TEST_OBJECT_KEY} stays, because a run needs no right to delete`,
      ),
      standing(
        "only an instance can try the instances' role. With the policy of earlier versions (all of runs/) a run works, but an instance that is taken over can put objects into the place of others",
        'Give the role the policy of deploy/policies/instance.json (orchestrator setup fills it in): it binds each instance to a folder of its own',
      ),
    ];
  },
};
