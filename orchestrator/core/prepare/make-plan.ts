/** The way from the configuration to a plan: everything that can be known, and refused, before anything is launched. */
import { seededRandom } from '../../../shared/adapters/random.ts';
import { domainPaces, isAnyHost } from '../../../shared/domain/domains.ts';
import { AppError } from '../../../shared/domain/errors.ts';
import { formatDuration } from '../../../shared/domain/quantity.ts';
import { pagesOf } from '../../../shared/domain/pages-per-product.ts';
import { withDelays } from '../../../shared/domain/robots.ts';
import type { RobotsReading } from '../../../shared/domain/robots-matcher.ts';
import { MAX_UNPROVED } from '../../../shared/domain/validators.ts';
import type { Quota } from '../cloud/quota-api.ts';
import type { ListFaults } from '../decide/end/product-list.ts';
import { intervalUnder } from '../model/robots-pace.ts';
import { type BrowserBoot, defaultsFor } from '../plan/defaults.ts';
import { balancerAddresses, NO_BALANCER } from '../model/run-settings.ts';
import { BROWSER_MEMORY_GB, HTTP_MEMORY_GB } from '../plan/instance-types.ts';
import { planRun } from '../plan/plan-run.ts';
import type { AskedPace } from '../plan/host-pace.ts';
import { type HostRecords, nightOfHost, nightOfHosts, nightRulesOf } from '../plan/host-sums.ts';
import type { Plan, PlanInput, QuotaFacts } from '../plan/plan.ts';
import { rotationFault, shortestRotationMs } from '../plan/address-rotation.ts';
import { INSTALLED_AT_BOOT } from './browser-boot.ts';
import type { PlanRegion } from '../plan/spread.ts';
import { plural } from '../plan/wording.ts';
import { denyWarnings } from '../config/follow-section.ts';
import type { Config } from '../config/load-config.ts';
import { MAX_IN_REGION } from '../config/schema.ts';
import type { FreshPrices } from './fresh-prices.ts';
import type { ProductList } from './products.ts';
import { capWarnings, keptFrom, plannedPaces } from './asked-paces.ts';
import { nightOf } from './own-urls.ts';
import { countedUrl, deadlineOf } from './settings-of.ts';
import { clockWarnings, findingsOf } from './site-robots.ts';
import { hasLink, type Target, WHO_TO_SAY } from '../config/target.ts';

export interface PlanFacts {
  config: Config;
  target: Target;
  products: ProductList;
  robots: RobotsReading;
  /** What the hosts of the site asked of their last run; omitted: nothing. */
  asked?: readonly AskedPace[];
  prices: FreshPrices;
  quota: Pick<Quota, 'vcpus' | 'note'> & Partial<Quota>;
  /** The regions of `aws.regions`; null or omitted for the short form. */
  regions?: { list: readonly PlanRegion[]; notes: string[] } | null;
  /** This machine is in the VPC of the fleet and can offer products to instances itself. */
  reachesInstances?: boolean;
  /** Where the browser of a rendering run comes from. */
  browser: BrowserBoot;
}

export interface Planned {
  plan: Plan;
  products: ProductList;
}

/** Requests of a page at any host, its redirects included, before a night has shown how many they are. */
const HOPS_FIRST = 1.3;

/**
 * Requests of one product on average: at any hosts as many as an earlier night of the list has shown. With
 * `site.conditional` also its share of the canary pages that prove unchanged ones.
 */
function pagesEachOf(site: Config['values']['site'], { requestsEach }: ProductList): number {
  if (isAnyHost(site.product_url)) return requestsEach ?? pagesOf(site.pages_per_product).mean * HOPS_FIRST;
  return pagesOf(site.pages_per_product).mean + (site.conditional ? 1 / MAX_UNPROVED : 0);
}

/** What `plan`, `run` and `simulate` plan for: the same configuration gives the same figures. With a load balancer. */
export function planInputOf({
  config,
  target,
  products,
  robots: read,
  asked = [],
  prices,
  quota,
  regions,
  browser,
}: PlanFacts): PlanInput {
  const { site, run, aws } = config.values;
  const { robots, paces } = plannedPaces(config, read, asked);
  const kept = keptFrom(config, asked);
  // Not its interval: the run may be reset to what is configured.
  const delays = paces.map(() => kept.operatorPace?.intervalMs ?? 0);
  const named = aws.load_balancer === NO_BALANCER ? null : aws.load_balancer;
  const input: PlanInput = {
    products: products.ids.length,
    deadlineMs: deadlineOf(config),
    intervalMs: intervalUnder(robots, site.interval),
    domains: domainPaces(countedUrl(site.product_url, products.hosts), withDelays(robots, delays)),
    ...(site.pages_at_once === 1 ? {} : { pagesAtOnce: site.pages_at_once }),
    pagesEach: pagesEachOf(site, products),
    memoryGb: site.render === 'http' ? HTTP_MEMORY_GB : BROWSER_MEMORY_GB,
    maxRatePerSecond: site.max_rate,
    ...(paces.length > 1 || paces.some(({ cap }) => cap !== undefined) ? { paces } : {}),
    ...kept,
    ...defaultsFor(target.kind, browser),
    ...(products.pageMs === undefined ? {} : { pageP50Ms: products.pageMs }),
    ...(named !== null && target.kind === 'aws' ? { balancerMs: OWN_BALANCER_MS } : {}),
    ownBalancer: named !== null,
    balancerAddresses: balancerAddresses({
      loadBalancer: named,
      balancerScheme: aws.balancer_scheme,
      subnets: aws.subnets,
    }),
    ...(aws.volume?.size ? { volumeGb: aws.volume.size } : {}),
    browser: site.render !== 'http',
    minInstances: run.min_instances,
    maxInstances: run.max_instances,
    maxCost: run.max_cost,
    vcpuQuota: quota.vcpus,
    quota: quotaFacts(quota),
    graceMs: run.grace,
    recycleEveryMs: aws.recycle_every,
    region: target.region,
    ...(regions ? { regions: regions.list } : {}),
    ...(prices.lists.length === 0 ? {} : { prices: prices.lists }),
    instanceTypes: aws.instance_types,
  };
  return products.loads === undefined ? input : overHosts(input, products.loads, products);
}

/** Hosts that a plan names. */
const NAMED_HOSTS = 3;

/** The night that these hosts allow. */
function overHosts(
  input: PlanInput,
  loads: readonly HostRecords[],
  { leftAlone, requestsEach, deadShare }: ProductList,
): PlanInput {
  const night = nightOfHosts(loads, nightRulesOf(input), deadShare);
  const each = { requestsEach: input.pagesEach, isMeasured: requestsEach !== undefined };
  const fullest = loads.filter(({ isDenied }) => !isDenied).slice(0, NAMED_HOSTS);
  const hosts = { ...night, each, ...(leftAlone && { leftAlone }), fullest };
  // Only an instance says of records that they are left alone, also where no others are listed.
  return { ...input, products: night.listed === 0 ? Math.min(1, input.products) : night.records, hosts };
}

/** The same without a load balancer. */
export const unbalanced = (input: PlanInput): PlanInput => ({ ...input, noBalancer: true, balancerMs: 0 });

/**
 * The plan for this configuration, number of products and robots.txt. If robots.txt forbids all products, the plan is
 * infeasible: no deadline or fleet would help.
 * @param instead of what the configuration and the list say
 */
export function makePlan(facts: PlanFacts, instead: Partial<PlanInput> = {}): Plan {
  const { config, target, products, robots, prices, quota, regions, browser, reachesInstances = false } = facts;
  const { site, aws } = config.values;
  const findings = findingsOf(robots, { productUrl: site.product_url, intervalMs: site.interval }, products);
  refuseShortRotation(config, target, browser);
  const input = { ...planInputOf(facts), ...instead };
  const bare =
    aws.load_balancer === NO_BALANCER
      ? withoutBalancer(input)
      : ((reachesInstances && aws.certificate === null ? smallWithoutBalancer(input) : null) ?? planOf(input));
  // At any hosts each night measures them for the next one.
  const countsPages = findsFurtherPages(config) && products.loads === undefined;
  const plan = countsPages ? { ...bare, pages: pagesOf(site.pages_per_product) } : bare;
  const noted = [...(quota.note === null ? [] : [quota.note]), ...(regions?.notes ?? [])];
  const warnings = [
    ...plan.warnings,
    ...prices.warnings,
    ...noted,
    ...(browser === 'installed' ? [INSTALLED_AT_BOOT] : []),
    ...findings.warnings,
    ...capWarnings(plan),
    ...(target.dryRun ? clockWarnings(robots) : []),
    ...warningsOf(config, products),
    ...splitNotes(input, products),
  ];
  const found = { ...plan, ...(products.hosts === undefined ? {} : { hosts: products.hosts }), warnings };
  if (findings.fault === null) return withList(found, products.list);
  const remedies = ['other products, or permission from the site; site.robots: ignore only with that permission'];
  return { ...found, verdict: 'infeasible', faults: [findings.fault], earliestEndMs: null, remedies };
}

/**
 * The plan of the products that fit, where the list can be cut; else of all of them.
 * @param count number of products to plan for, whatever the list says
 */
export function planWhatFits(facts: PlanFacts, count?: number): Planned {
  const { products } = facts;
  if (count !== undefined) return { plan: makePlan(facts, { products: count }), products };
  if (products.loads !== undefined) return planNight(facts, products.loads);
  if (products.fit === undefined) return { plan: makePlan(facts), products };
  const regions = facts.regions?.list.map((each) => ({ ...each, maxInstances: MAX_IN_REGION, vcpuQuota: null }));
  const unlimited = {
    minInstances: 1,
    maxInstances: MAX_IN_REGION * (regions?.length ?? 1),
    maxCost: null,
    vcpuQuota: null,
    ...(regions ? { regions } : {}),
  };
  const { plan, ids = products.ids } = products.fit({
    plan: (given) =>
      typeof given === 'number'
        ? makePlan(facts, { products: given })
        : makePlan({ ...facts, products: { ...products, ids: given } }),
    planUnlimited: (given) => makePlan(facts, { ...unlimited, products: given }),
  });
  return { plan, products: { ...products, ids } };
}

/** The plan of what a night can do of products at any hosts, and those products. */
function planNight(facts: PlanFacts, loads: readonly HostRecords[]): Planned {
  const { products } = facts;
  const plan = makePlan(facts);
  const input = planInputOf(facts);
  const cut = { deadlineMs: input.deadlineMs, size: plan.chunkSize };
  return { plan, products: { ...products, ...nightOf({ ...products, loads: [...loads] }, nightRulesOf(input), cut) } };
}

/** A fixed seed: the same input gives the same plan, today and tomorrow. */
const planOf = (input: PlanInput): Plan => planRun(input, seededRandom(1));

function withoutBalancer(input: PlanInput): Plan {
  const plan = planOf(unbalanced(input));
  return { ...plan, noBalancer: { saves: planOf(input).cost.total - plan.cost.total } };
}

/** Above it a balancer costs little beside the fleet, and the main server keeps fewer connections. */
const MOST_WITHOUT_BALANCER = 10;

/** The plan of a small fleet without a balancer; null when it takes more instances, or cannot be done. */
function smallWithoutBalancer(input: PlanInput): Plan | null {
  const plan = withoutBalancer(input);
  return plan.verdict === 'feasible' && plan.instances <= MOST_WITHOUT_BALANCER ? plan : null;
}

/** A list that is too short blocks a plan that would fit; beside another verdict it is one more fault. */
function withList(plan: Plan, list: ProductList['list']): Plan {
  const { faults, remedies } = list ?? { faults: [], remedies: [] };
  if (faults.length === 0) return plan;
  if (plan.verdict !== 'feasible') return { ...plan, faults: [...plan.faults, ...faults] };
  return { ...plan, verdict: 'too-few-products', faults, remedies: [remedies.join(' and ')] };
}

/** The quota facts for a refusal, in addition to what a run may use; null when they were not queried. */
const quotaFacts = ({ code, quota, inUse, source }: Partial<Quota>): QuotaFacts | null =>
  code === undefined ? null : { code, total: quota ?? null, inUse: inUse ?? null, source: source ?? 'unknown' };

/** Throws `config-invalid` when addresses would rotate faster than a fleet can boot. */
function refuseShortRotation(config: Config, target: Target, browser: BrowserBoot): void {
  const { bootP95Ms, tailMs } = defaultsFor(target.kind, browser);
  const fault = rotationFault(config.values.aws.recycle_every, bootP95Ms, tailMs);
  if (fault === null) return;
  throw new AppError('config-invalid', `${fault} (${config.file})`, {
    hint: `Set aws.recycle_every to ${formatDuration(shortestRotationMs(bootP95Ms, tailMs))} or more, or leave it out.`,
  });
}

/** In a discovery, links lead to other products. */
const findsFurtherPages = ({ discovery, mapping }: Config): boolean =>
  discovery === undefined && mapping.pages.some(({ urlParsers }) => urlParsers.length > 0);

/** The user's load balancer exists already: only its health checks take half a minute. */
const OWN_BALANCER_MS = 30_000;

function warningsOf(config: Config, products: ProductList): string[] {
  const { site } = config.values;
  return [
    ...(config.notes ?? []),
    ...(config.misspelt ?? []),
    ...denyWarnings(config),
    ...(products.urlNotes ?? []),
    ...(products.duplicates > 0
      ? [
          `${plural(products.duplicates, 'ID')} ${products.duplicates === 1 ? 'is' : 'are'} listed more than once; each product is crawled once`,
        ]
      : []),
    ...(findsFurtherPages(config) && products.requestsEach === undefined && pagesOf(site.pages_per_product).mean === 1
      ? [
          'the mapping finds further pages of a product (url_parsers), and site.pages_per_product is 1: say how many requests one takes on average, or the end is planned too early',
        ]
      : []),
    ...config.mapping.pages
      .filter(({ rows, fields }) => rows === null && fields.length > 0 && !fields.some((field) => field.required))
      .map(
        ({ name }) =>
          `the ${name.startsWith('mapping') ? name : `mapping ${name}`} has no required field: it cannot distinguish a ban page from a product; mark one field required`,
      ),
    ...(hasLink(site.user_agent)
      ? []
      : [`site.user_agent ${site.user_agent === null ? 'is not set' : 'has no link'}: ${WHO_TO_SAY}`]),
  ];
}

/** What `site.host_key: host` would allow beyond the night, of hosts with many names. */
function splitNotes(input: PlanInput, { loads = [], names }: ProductList): string[] {
  const rules = nightRulesOf(input);
  const split = loads.flatMap((load) => {
    const each = names?.get(load.host);
    if (each === undefined) return [];
    const nights = each.map((records) => nightOfHost({ records, delayMs: load.delayMs }, rules).records);
    const more = nights.reduce((sum, records) => sum + records, 0) - nightOfHost(load, rules).records;
    return more > 0 ? [{ host: load.host, names: each.length, more }] : [];
  });
  const all = split.reduce((sum, { more }) => sum + more, 0);
  const [first] = split.toSorted((a, b) => b.more - a.more);
  if (first === undefined) return [];
  const others = split.length === 1 ? '' : `, and ${plural(split.length - 1, 'more domain')} with several`;
  return [
    `site.host_key: host would allow ${plural(all, 'record')} more: ${first.host} has ${plural(first.names, 'name')}${others}`,
  ];
}

/** The verdict of an infeasible plan as an error, with what would make it feasible; null for a feasible one. */
export function refusalOfPlan(plan: Plan): AppError | null {
  if (plan.verdict === 'feasible') return null;
  if (plan.verdict === 'too-few-products') return refusalOfList(plan);
  const code = plan.verdict === 'over-budget' ? 'budget' : plan.verdict === 'over-quota' ? 'capacity' : 'infeasible';
  const hint = `What would make it feasible: ${plan.remedies.join(', or ')}`;
  return new AppError(code, plan.faults.join('; '), plan.remedies.length > 0 ? { hint } : {});
}

/** A list that is too short as an error; null if it is long enough, or the products are not the whole list. */
export function refusalOfList(list: ListFaults | undefined): AppError | null {
  if (list === undefined || list.faults.length === 0) return null;
  const hint = `Check products.query. If the list is right, this lets it pass: ${list.remedies.join(' and ')}`;
  return new AppError('too-few-products', list.faults.join('; '), { hint });
}
