/** Whether the user data of this run's instances fits into EC2's limit. */
import { S3ObjectStore } from '../../../shared/adapters/s3-object-store.ts';
import { systemClock } from '../../../shared/adapters/system-clock.ts';
import { bundleKey } from '../../../shared/domain/keys.ts';
import { checkUserData } from '../../control/launching/launch.ts';
import { newRunKeys } from '../../control/start-run.ts';
import { MAX_USER_DATA_BYTES } from '../../../userdata/user-data.ts';
import { awsOptions } from '../cloud-access.ts';
import { deadlineOf, ownerOf, settingsOf } from '../settings-of.ts';
import { VERSION } from '../version.ts';
import type { Check } from './check.ts';
import { ok } from './check.ts';

/** As long as a real hash; its digits do not matter. */
const SHA256 = '0'.repeat(64);
/** Stands for a bucket that is not set yet. */
const NAMELESS = 'b'.repeat(40);
/** Stands for the endpoint of a sandbox that is not started yet: as long as one can be. */
const UNBORN = 'http://127.0.0.1:65535';

export const userData: Check = {
  id: 'user-data',
  title: 'user data of the instances',
  kinds: ['aws', 'dry'],
  // Does not need the plan: what makes a plan infeasible does not affect the user data.
  needs: ['credentials'],
  beforeLaunch: true,
  async run({ config, target, aws, facts }) {
    const deadlineMs = deadlineOf(config);
    const place = aws ?? awsOptions({ region: target.region, endpoint: UNBORN }, true);
    const settings = {
      // The plan may lengthen the interval by a digit or two; the check at the launch sees that.
      ...settingsOf(config, target, { intervalMs: config.values.site.interval }, VERSION),
      sandbox: null,
      server: { callbackUrl: config.values.server.url ?? UNBORN, callbackListen: '' },
    };
    const startedAtMs = systemClock.now();
    const run = {
      // As long as a real one.
      id: '20260101-000000-aaaa',
      publicKey: newRunKeys().publicKey,
      settings,
      startedAtMs,
      deadlineAtMs: startedAtMs + deadlineMs,
    };
    const template = {
      owner: ownerOf(config),
      imageId: '',
      subnets: [],
      securityGroupIds: [],
      instanceTypes: [facts.instanceType()],
      bundle: { key: bundleKey(SHA256), sha256: SHA256 },
    };
    const objects = new S3ObjectStore({ ...place, bucket: target.bucket === '' ? NAMELESS : target.bucket });
    try {
      // Signs the URL of the bundle as a launch does: with a role's keys it is much longer.
      await checkUserData(run, template, objects, systemClock);
    } finally {
      objects.close();
    }
    return [ok(`fits into the ${MAX_USER_DATA_BYTES.toLocaleString('en')} bytes that EC2 takes`)];
  },
};
