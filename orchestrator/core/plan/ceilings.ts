/** The limits of a plan: how many instances each allows, and the message when that is too few. */
import { formatDuration } from '../../../shared/domain/quantity.ts';
import { addressesInWords, addressesWithin, rateOf } from './host-pace.ts';
import type { PlanVerdict } from './plan.ts';
import type { Planning } from './planning.ts';
import { quotaCodeOf, quotaNameOf } from './quota-codes.ts';
import { roomIn } from './spread.ts';
import { dollars, plural } from './wording.ts';

export interface Ceiling {
  key:
    'run.max_instances' | 'site.max_rate' | 'Crawl-delay' | 'pace' | 'aws.vcpu_quota' | 'aws.regions' | 'run.max_cost';
  instances: number;
  verdict: Exclude<PlanVerdict, 'feasible' | 'too-few-products'>;
  /** Why a fleet of n does not fit, in one sentence. */
  fault(needed: number): string;
  /** The setting that would make n fit. */
  remedy(needed: number): string;
}

/** The limits in effect. */
export const ceilings = (planning: Planning): Ceiling[] =>
  [
    maxInstances(planning),
    maxRate(planning),
    ...siteCaps(planning),
    operatorCap(planning),
    regions(planning) ?? quota(planning),
    budget(planning),
  ].filter((c) => c !== null);

/** The maximum number of instances that these limits and the number of products allow. */
export const allowedBy = (planning: Planning, limits: readonly Ceiling[]): number =>
  Math.min(planning.input.products, ...limits.map((c) => c.instances));

function maxInstances({ input }: Planning): Ceiling {
  return {
    key: 'run.max_instances',
    instances: input.maxInstances,
    verdict: 'infeasible',
    fault: (n) => `It takes ${plural(n, 'instance')}, and run.max_instances is ${input.maxInstances}.`,
    remedy: (n) => `run.max_instances: ${n}`,
  };
}

function maxRate({ input, work }: Planning): Ceiling | null {
  const rate = input.maxRatePerSecond;
  if (rate === null) return null;
  // Each address at each domain: while all of them have products left, this is what the shop gets.
  const paces = work.domains.length;
  const each = `at one request per ${formatDuration(input.intervalMs)}${paces === 1 ? '' : ' and domain'} each`;
  const perSecond = (n: number): number => Math.ceil(((n * paces) / Math.max(1, input.intervalMs)) * 100_000) / 100;
  return {
    key: 'site.max_rate',
    // Below one instance's rate, the interval was lengthened.
    instances: Math.max(1, addressesWithin(rate / paces, work.intervalMs)),
    verdict: 'infeasible',
    fault: (n) =>
      `It takes ${plural(n, 'instance')} ${each}, ${perSecond(n)}/s together, and site.max_rate is ${rate}/s.`,
    remedy: (n) => `site.max_rate: ${perSecond(n)}/s`,
  };
}

/** What a host asked of its last run: no more than the addresses at work then make at the pace it asked for. */
function siteCaps({ input: { paces = [] }, work }: Planning): Ceiling[] {
  return paces.flatMap(({ host, intervalMs, cap }): Ceiling[] => {
    if (cap === undefined) return [];
    const eachMs = Math.max(work.intervalMs, intervalMs);
    const rate = (n: number): number => Math.ceil((n * 100_000) / eachMs) / 100;
    return [
      {
        key: 'Crawl-delay',
        instances: Math.max(1, addressesWithin(rateOf(cap), eachMs)),
        verdict: 'infeasible',
        fault: (n) =>
          `It takes ${plural(n, 'instance')} at one request per ${formatDuration(eachMs)} each, ${rate(n)}/s together, and ${host} has asked for less: ` +
          `its robots.txt raised the Crawl-delay to ${formatDuration(cap.delayMs)} while ${addressesInWords(cap.addresses, 'was', 'were')} at work (run ${cap.runId}).`,
        remedy: (n) => `with permission of ${host} site.max_rate: ${rate(n * paces.length)}/s`,
      },
    ];
  });
}

/** What the operator of the last run asked for this plan, too. */
function operatorCap({ input: { operatorPace } }: Planning): Ceiling | null {
  const addresses = operatorPace?.addresses ?? null;
  if (operatorPace === undefined || addresses === null) return null;
  const { runId } = operatorPace;
  return {
    key: 'pace',
    instances: addresses,
    verdict: 'infeasible',
    fault: (n) =>
      `It takes ${plural(n, 'instance')}, and the operator of run ${runId} asked this plan for no more addresses than were at work: ${addresses}.`,
    remedy: () => `orchestrator pace ${runId} --reset, once the site agrees`,
  };
}

function quota({ input, type }: Planning): Ceiling | null {
  const available = input.vcpuQuota;
  if (available === null) return null;
  const instances = Math.floor(available / type.vcpus);
  const facts = input.quota ?? null;
  const code = facts?.code ?? quotaCodeOf(type.name);
  const inUse = facts?.inUse ?? 0;
  const room = `enough for ${plural(instances, 'instance')}`;
  const has =
    facts !== null && facts.total !== null && inUse > 0
      ? `${facts.total}, of which ${inUse} are in use: ${available} are left, ${room}`
      : `${available}, ${room}`;
  const increase = (vcpus: number): string =>
    `aws service-quotas request-service-quota-increase --service-code ec2 --quota-code ${code} --desired-value ${vcpus} --region ${input.region}`;
  return {
    key: 'aws.vcpu_quota',
    instances,
    verdict: 'over-quota',
    fault: (n) =>
      `It takes ${n * type.vcpus} vCPUs (${n} x ${type.name}), and the quota ${code} in ${input.region} is ${has}.`,
    remedy: (n) => {
      const needed = n * type.vcpus;
      // When the quota comes from AWS, there is no setting to change.
      if (facts?.source === 'service-quotas')
        return `a quota of ${needed + inUse} vCPUs (${code}, ${quotaNameOf(code)}; ask AWS with: ${increase(needed + inUse)})`;
      return `aws.vcpu_quota: ${needed} (once AWS has raised ${code}, ${quotaNameOf(code)}; beside what else runs there, ask with: ${increase(needed)})`;
    },
  };
}

/** The quotas and limits of several regions together; null for a run of one. */
function regions({ input, type }: Planning): Ceiling | null {
  if (input.regions === undefined) return null;
  const rooms = input.regions.map((region) => ({ name: region.region, room: roomIn(region, type.vcpus) }));
  const instances = rooms.reduce((sum, { room }) => sum + room, 0);
  const limited = rooms.filter(({ room }) => room < Infinity).map(({ name, room }) => `${name} ${room}`);
  return {
    key: 'aws.regions',
    instances,
    verdict: 'over-quota',
    fault: (n) =>
      `It takes ${plural(n, 'instance')} (${n * type.vcpus} vCPUs), and the regions together allow ${instances} by quota and max_instances: ${limited.join(', ')}.`,
    remedy: (n) =>
      `${plural(n - instances, 'more instance')} in aws.regions (max_instances, a higher quota, or another region)`,
  };
}

function budget(planning: Planning): Ceiling | null {
  const { input } = planning;
  const cap = input.maxCost;
  if (cap === null) return null;
  return {
    key: 'run.max_cost',
    instances: affordable(planning, cap),
    verdict: 'over-budget',
    fault: (n) =>
      `${plural(n, 'instance')} may cost up to ${dollars(planning.worstPriceOf(n).total)} by the deadline and ${formatDuration(input.graceMs)} of grace, and run.max_cost is ${dollars(cap)}.`,
    remedy: (n) => `run.max_cost: ${(Math.ceil(planning.worstPriceOf(n).total * 100) / 100).toFixed(2)}`,
  };
}

/** The maximum number of instances whose worst-case price is within the cap; the price grows with every instance. */
function affordable(planning: Planning, cap: number): number {
  let low = 0;
  let high = planning.input.products;
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    if (planning.worstPriceOf(middle).total <= cap) low = middle;
    else high = middle - 1;
  }
  return low;
}
