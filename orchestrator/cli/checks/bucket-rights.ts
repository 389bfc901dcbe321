/** The rights on objects, tested with one small object of ours. */
import { PROBE_KEY, tryBucketRights } from '../../cloud/bucket-facts.ts';
import type { Check } from './check.ts';
import { ok } from './check.ts';
import { lacksBucket } from './lacks.ts';
import { findingOf } from './run-checks.ts';

const RIGHT: Record<string, string> = {
  ListObjectsV2: 's3:ListBucket',
  PutObject: 's3:PutObject with If-None-Match',
  GetObject: 's3:GetObject',
};

export const bucketRights: Check = {
  id: 'bucket-rights',
  title: 'rights on objects of the bucket',
  kinds: ['aws'],
  needs: ['bucket'],
  lacks: lacksBucket,
  beforeLaunch: true,
  limitMs: 15_000,
  async run({ aws, target }) {
    const tried = await tryBucketRights({ ...aws!, bucket: target.bucket });
    const refused = tried.flatMap(({ call, refusal }) => {
      if (refusal === null) return [];
      const finding = findingOf(refusal);
      if (finding.level !== 'failed' || refusal.code !== 'aws-denied') return [finding];
      return [{ ...finding, remedy: `Allow ${RIGHT[call]} for the main server, as in userdata/iam/controller.json` }];
    });
    if (refused.length > 0) return refused;
    return [
      ok(`listing, writing and reading work; the object ${PROBE_KEY} stays, because a run needs no right to delete`),
    ];
  },
};
