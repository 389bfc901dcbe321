/** From the configuration to a plan: everything that can be known, and refused, before anything is launched. */
import { seededRandom } from '../../shared/adapters/random.ts';
import { AppError } from '../../shared/domain/errors.ts';
import type { RunSettings } from '../control/run-settings.ts';
import type { ProductSource } from '../control/stores.ts';
import type { EndpointKind } from '../plan/defaults.ts';
import { defaultsFor } from '../plan/defaults.ts';
import type { Plan } from '../plan/plan.ts';
import { planRun } from '../plan/plan-run.ts';
import type { Config } from './config/load-config.ts';

export interface ProductList {
  /** Distinct IDs in the order of the query. */
  ids: string[];
  /** How many further times IDs were listed. */
  duplicates: number;
}

/** Reads the whole product query; IDs are compared by their bytes, a repeated one counts once. */
export async function readProducts(source: ProductSource): Promise<ProductList> {
  const seen = new Set<string>();
  let listed = 0;
  for await (const id of source.read()) {
    listed++;
    seen.add(id);
  }
  return { ids: [...seen], duplicates: listed - seen.size };
}

export interface Target {
  dryRun: boolean;
  kind: EndpointKind;
  region: string;
  bucket: string;
  /** Null for AWS itself; for a sandbox that is still to be started it is filled in later. */
  endpoint: string | null;
}

/** Where the run is to go. Throws when a real run lacks what only the user can say, and when a dry run would leave this machine. */
export function chooseTarget(
  config: Config,
  dryRun: boolean,
  environment: Readonly<Record<string, string | undefined>>,
): Target {
  const { aws } = config.values;
  const region = aws.region ?? environment.AWS_REGION ?? environment.AWS_DEFAULT_REGION ?? null;
  if (!dryRun) {
    const missing = [
      ...(region === null ? ['aws.region'] : []),
      ...(aws.bucket === null ? ['aws.bucket'] : []),
      // Without a role an instance could not put its results into the bucket.
      ...(aws.instance_profile === null ? ['aws.instance_profile'] : []),
      ...(config.values.server.url === null ? ['server.url'] : []),
    ];
    if (missing.length > 0) {
      throw new AppError('config-invalid', `a run on AWS needs ${missing.join(', ')} in ${config.file}`, {
        hint: 'To try everything on this machine first, add --dry-run.',
      });
    }
    return {
      dryRun,
      kind: aws.endpoint === null ? 'aws' : 'emulator',
      region: region!,
      bucket: aws.bucket!,
      endpoint: aws.endpoint,
    };
  }
  if (aws.endpoint !== null && !isLoopback(new URL(aws.endpoint).hostname)) {
    throw new AppError(
      'endpoint-refused',
      `a dry run may only use an endpoint on this machine, not aws.endpoint ${aws.endpoint}`,
      {
        hint: 'Leave aws.endpoint out to use the built-in sandbox.',
      },
    );
  }
  return {
    dryRun,
    kind: aws.endpoint === null ? 'sandbox' : 'emulator',
    region: region ?? 'ap-northeast-1',
    bucket: aws.bucket ?? 'crawlfleet',
    endpoint: aws.endpoint,
  };
}

function isLoopback(hostname: string): boolean {
  return hostname === 'localhost' || hostname === '[::1]' || /^127\.\d+\.\d+\.\d+$/.test(hostname);
}

/** The sums for this configuration and this many products. */
export function makePlan(config: Config, target: Target, products: ProductList): Plan {
  const { site, run, aws } = config.values;
  const plan = planRun(
    {
      products: products.ids.length,
      deadlineMs: deadlineOf(config),
      intervalMs: site.interval,
      maxRatePerSecond: site.max_rate,
      ...defaultsFor(target.kind),
      minInstances: run.min_instances,
      maxInstances: run.max_instances,
      maxCost: run.max_cost,
      vcpuQuota: aws.vcpu_quota,
      graceMs: run.grace,
      region: target.region,
      instanceTypes: aws.instance_types,
    },
    // The same question gets the same answer, today and tomorrow.
    seededRandom(1),
  );
  return { ...plan, warnings: [...plan.warnings, ...warningsOf(config, products)] };
}

function warningsOf(config: Config, products: ProductList): string[] {
  const { site } = config.values;
  return [
    ...(products.duplicates > 0
      ? [`${products.duplicates} IDs are listed more than once; each product is crawled once`]
      : []),
    ...(site.robots === 'respect'
      ? ['robots.txt is not read by this version: check yourself that it allows the product pages']
      : []),
    ...(site.user_agent === null ? ['site.user_agent is not set: say who you are, with a link'] : []),
  ];
}

/** The deadline of the flag or the file, in milliseconds. */
export function deadlineOf(config: Config): number {
  const { deadline } = config.values.run;
  if (deadline === null) {
    throw new AppError(
      'config-invalid',
      `there is no deadline: neither --deadline nor run.deadline in ${config.file}`,
      { hint: 'For example: --deadline 4h' },
    );
  }
  return deadline;
}

/** What the run keeps of the configuration. The sandbox and the call-back address are filled in when they are known. */
export function settingsOf(
  config: Config,
  target: Target,
  plan: Plan,
  version: string,
): Omit<RunSettings, 'sandbox' | 'server'> {
  const { site, results, run, aws } = config.values;
  return {
    site: {
      productUrl: site.product_url,
      // Longer than configured where site.max_rate is below one instance's own rate.
      intervalMs: plan.intervalMs,
      maxRatePerSecond: site.max_rate,
      userAgent: site.user_agent ?? `crawlfleet/${version}`,
      timeoutMs: site.timeout,
      maxPageBytes: site.max_page_bytes,
      allowPrivate: site.allow_private,
    },
    mapping: config.mapping,
    results: { table: results.table, onGone: results.on_gone },
    run: {
      deadlineMs: deadlineOf(config),
      maxCost: run.max_cost,
      graceMs: run.grace,
      minInstances: run.min_instances,
      maxInstances: run.max_instances,
      maxFailed: run.max_failed,
    },
    aws: {
      region: target.region,
      endpoint: target.endpoint,
      instanceTypes: aws.instance_types,
      subnets: aws.subnets,
      securityGroups: aws.security_groups,
      bucket: target.bucket,
      instanceProfile: aws.instance_profile ?? (target.dryRun ? 'crawlfleet-dry-run' : null),
      image: aws.image,
    },
  };
}

/** Throws the verdict of a plan that cannot be run, with what would make it feasible. */
export function refuseInfeasible(plan: Plan): void {
  if (plan.verdict === 'feasible') return;
  const code = plan.verdict === 'over-budget' ? 'budget' : plan.verdict === 'over-quota' ? 'capacity' : 'infeasible';
  const hint = `What would make it feasible: ${plan.remedies.join(', or ')}`;
  throw new AppError(code, plan.faults.join('; '), plan.remedies.length > 0 ? { hint } : {});
}
