/** Checks of the site and of the next run: User-Agent, robots.txt, plan, quota, prices, bundle, user data. */
import { hasLink, userAgentOf } from '../config/target.ts';
import { type Check, failed, findingOf, lacksRegion, ok, warning } from './check.ts';
import { clockWarnings, findingsOf as robotsFindings } from '../prepare/site-robots.ts';
import { formatDuration } from '../../../shared/domain/quantity.ts';
import { refusalOfPlan } from '../prepare/make-plan.ts';
import { PRICES_OF } from '../plan/price-table.ts';
import { pricesFor } from '../prepare/preflight.ts';
import { NODE_RELEASES, NODE_VERSION } from '../../../userdata/node-release.ts';
import { askRegistry } from '../../../userdata/npm-package.ts';
import { buildProgram } from '../../../userdata/program.ts';
import { nodeToFetch } from './machine.ts';
import { S3ObjectStore } from '../../../shared/adapters/s3-object-store.ts';
import { packSettingsOf } from '../act/launches/crawl-settings.ts';
import { systemClock } from '../../../shared/adapters/system-clock.ts';
import { bundleKey, crawlSettingsKey } from '../../../shared/domain/keys.ts';
import { checkUserData } from '../act/launches/launch.ts';
import { newRunKeys } from '../new-run.ts';
import { MAX_USER_DATA_BYTES } from '../../../userdata/user-data.ts';
import { awsOptions } from '../cloud-access/cloud-access.ts';
import { denyOf } from '../config/follow-section.ts';
import { deadlineOf, settingsOf } from '../prepare/settings-of.ts';

export const userAgent: Check = {
  id: 'user-agent',
  title: 'User-Agent',
  run({ config }) {
    const name = userAgentOf(config);
    // A run on AWS without a link is refused before any check.
    if (hasLink(config.values.site.user_agent)) return ok(name);
    const remedy = 'site.user_agent: "examplebot/1.0 (+https://example.com/bot)"';
    return warning(`${name} has no link to a page that says who you are`, remedy);
  },
};

export const robots: Check = {
  id: 'robots',
  title: 'robots.txt of the site',
  needs: ['products'],
  limitMs: 20_000,
  isSlow: true,
  async run({ config, target, facts }) {
    const { site } = config.values;
    const [policy, products] = await Promise.all([facts.robots(), facts.products()]);
    const about = { productUrl: site.product_url, intervalMs: site.interval };
    if (policy.access === 'none' && site.check === 'on') {
      const text = `robots.txt cannot be read: ${policy.source}; a run would wait for run.site_wait and end with 17, without launching an instance`;
      return failed(
        'site-down',
        text,
        'Check whether the site is up; site.check: off where only instances can reach it',
      );
    }
    const { warnings, fault } = robotsFindings(policy, about, products);
    if (target.dryRun) warnings.push(...clockWarnings(policy));
    if (fault !== null)
      return failed(
        'infeasible',
        fault,
        'Other products, or permission from the site; site.robots: ignore only with that permission',
      );
    return warnings.length > 0 ? warnings.map((text) => warning(text)) : [ok(policy.source)];
  },
};

export const plan: Check = {
  id: 'plan',
  title: 'plan against deadline, quota and cost',
  needs: ['products'],
  // Quota and prices are the region's.
  lacks: lacksRegion,
  limitMs: 25_000,
  isSlow: true,
  beforeLaunch: true,
  async run({ facts }) {
    const found = await facts.plan();
    const refusal = refusalOfPlan(found);
    if (refusal !== null) return findingOf(refusal);
    const quota = found.vcpuQuota === null ? 'the quota is not known' : `${found.vcpuQuota} are left in the quota`;
    return ok(
      `${found.instances} x ${found.instanceType} for ${found.products.toLocaleString('en')} products in ${formatDuration(found.deadlineMs)}; ${found.vcpus} vCPUs, ${quota}`,
    );
  },
};

export const quota: Check = {
  id: 'quota',
  regional: true,
  title: 'vCPU quota',
  only: 'aws',
  needs: ['credentials'],
  async run({ target, facts }) {
    const { quota: all, vcpus, inUse, code, source, note } = await facts.quota();
    if (vcpus === null)
      return warning(
        note ?? `the vCPU quota ${code} is not known`,
        `aws service-quotas get-service-quota --service-code ec2 --quota-code ${code} --region ${target.region}`,
      );
    if (source === 'aws.vcpu_quota') return ok(`${vcpus} vCPUs, as aws.vcpu_quota says`);
    return ok(`${code}: ${all} vCPUs${inUse === null || inUse === 0 ? '' : `, ${inUse} of them in use`}`);
  },
};

export const prices: Check = {
  id: 'prices',
  title: 'prices',
  isSlow: true,
  async run({ config, target }) {
    const { lists, warnings } = await pricesFor(config, target);
    const remedy = "Allow pricing:GetProducts, or compare the plan's prices with aws.amazon.com/ec2/pricing";
    if (warnings.length > 0) return warnings.map((text) => warning(text, remedy));
    const [first] = lists.map(({ of }) => of).sort();
    return ok(first === undefined ? `those shipped with this version, of ${PRICES_OF}` : `AWS's own, of ${first}`);
  },
};

export const bundle: Check = {
  id: 'bundle',
  title: 'program of the instances',
  limitMs: 40_000,
  isSlow: true,
  async run(context) {
    const { bytes, sha256 } = await buildProgram({ browser: context.config.values.site.render !== 'http' });
    const made = ok(`${(bytes.length / 1_000_000).toFixed(1)} MB, SHA-256 ${sha256.slice(0, 12)}…`);
    const platform = await nodeToFetch(context);
    if (platform === null) return made;
    const { packageName, integrity } = NODE_RELEASES[platform];
    // Throws `runtime-unavailable`, as the run would after its plan was accepted.
    await askRegistry({ name: packageName, version: NODE_VERSION, integrity });
    return [made, ok(`the first run fetches Node ${NODE_VERSION} for ${platform} with npm: 50 MB, once`)];
  },
};

/** A hash as long as a real one; its digits do not matter. */
const SHA256 = '0'.repeat(64);
/** Stands for a bucket that is not set yet. */
const NAMELESS = 'b'.repeat(40);
/** Stands for the endpoint of a sandbox that is not started yet: as long as one can be. */
const UNBORN = 'http://127.0.0.1:65535';

export const userData: Check = {
  id: 'user-data',
  title: 'user data of the instances',
  // Does not need the plan: what makes a plan infeasible does not affect the user data.
  needs: ['credentials'],
  beforeLaunch: true,
  async run({ config, target, aws }) {
    const deadlineMs = deadlineOf(config);
    const place = aws ?? awsOptions({ region: target.region, endpoint: UNBORN }, true);
    const settings = {
      // The plan may lengthen the interval by a digit or two; the check at the launch sees that.
      ...settingsOf(config, target, { intervalMs: config.values.site.interval }),
      sandbox: null,
      server: { callbackUrl: config.values.server.url ?? UNBORN, callbackListen: '' },
    };
    const startedAtMs = systemClock.now();
    const run = {
      id: '20260101-000000-aaaa',
      publicKey: newRunKeys().publicKey,
      settings,
      startedAtMs,
      deadlineAtMs: startedAtMs + deadlineMs,
    };
    const { sha256 } = packSettingsOf(settings, denyOf(config));
    const named = {
      bundle: { key: bundleKey(SHA256), sha256: SHA256 },
      crawlSettings: { key: crawlSettingsKey(run.id, sha256), sha256 },
    };
    using objects = new S3ObjectStore({ ...place, bucket: target.bucket === '' ? NAMELESS : target.bucket });
    // Signs the URLs as a launch does: with a role's keys they are much longer.
    await checkUserData(run, named, objects, systemClock);
    return ok(`fits into the ${MAX_USER_DATA_BYTES.toLocaleString('en')} bytes that EC2 takes`);
  },
};
