/** How the bucket is configured: encrypted, not public, and with rules that remove old objects. */
import { AppError } from '../../../shared/domain/errors.ts';
import type { BucketSettings } from '../../cloud/bucket-facts.ts';
import { readBucketSettings } from '../../cloud/bucket-facts.ts';
import type { Check, Finding } from './check.ts';
import { failed, ok, warning } from './check.ts';
import { lacksBucket } from './lacks.ts';
import { findingOf } from './run-checks.ts';

export const bucketSettings: Check = {
  id: 'bucket-settings',
  title: 'encryption and access of the bucket',
  kinds: ['aws'],
  needs: ['bucket'],
  lacks: lacksBucket,
  beforeLaunch: true,
  async run({ aws, target, facts }) {
    const settings = await readBucketSettings({ ...aws!, bucket: target.bucket });
    return judgeBucket(settings, { bucket: target.bucket, isFaithful: await facts.isFaithful() });
  },
};

/**
 * @param about `isFaithful`: false for emulators, where settings that AWS gives every bucket exist only when the user
 * made them
 */
export function judgeBucket(settings: BucketSettings, about: { bucket: string; isFaithful: boolean }): Finding[] {
  return [
    encryption(settings.encryption, about),
    ...keyOf(settings.kmsKey),
    publicAccess(settings.publicAccessBlocked, about),
    lifecycle(settings.lifecycle, about),
  ];
}

type About = Parameters<typeof judgeBucket>[1];

function encryption(found: BucketSettings['encryption'], { bucket, isFaithful }: About): Finding {
  if (found instanceof AppError) {
    // AWS failed at the moment: the setting may or may not exist. Another attempt can tell.
    const isPassing = found.code === 'aws-throttled' || found.code === 'aws-failed';
    return isPassing ? findingOf(found) : notAsked(found, 'its encryption', 's3:GetEncryptionConfiguration');
  }
  if (found !== null) return ok(`encrypted at rest (${found})`);
  const text = `the bucket ${bucket} does not encrypt what is put into it`;
  const remedy = `aws s3api put-bucket-encryption --bucket ${bucket} --server-side-encryption-configuration '{"Rules":[{"ApplyServerSideEncryptionByDefault":{"SSEAlgorithm":"AES256"}}]}'`;
  return isFaithful ? failed('aws-invalid', text, remedy) : warning(text, remedy);
}

/** Everyone in the account may use AWS's own key; any other key needs its policy and the role's policy to allow it. */
function keyOf(key: string | null | undefined): Finding[] {
  if (!key || key.endsWith('alias/aws/s3')) return [];
  const resource = key.startsWith('arn:') ? key : `the ARN of ${key}`;
  return [
    warning(
      `objects are encrypted with the KMS key ${key}: whether the instance role may use it cannot be checked, and without that right no result can be stored`,
      `Add to the policy of the instance role {"Effect": "Allow", "Action": "kms:GenerateDataKey", "Resource": "${resource}"}, ` +
        `and to the main server's the same with "kms:Decrypt" as well`,
    ),
  ];
}

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
