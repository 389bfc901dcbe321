/** The plan as people read it: plain text, at most 80 columns. */
import { formatDuration } from '../../../shared/domain/quantity.ts';
import { oneLine } from '../../../shared/domain/terminal-text.ts';
import type { HostRecords, HostsPlan } from './host-sums.ts';
import type { GrowthPlan, Plan, RecrawlPlan, RegionShare, RotationPlan } from './plan.ts';
import { dollars, percent, plural, roundUp } from './wording.ts';

const WIDTH = 80;
const LABEL = 14;

/**
 * Lines without a newline at the end.
 * @param maxCost run.max_cost; null for no cap; omitted to leave the cap out
 */
export function renderPlan(plan: Plan, maxCost?: number | null): string {
  if (plan.products === 0) {
    const says = plan.verdict === 'feasible' ? ['Nothing to crawl.'] : verdict(plan);
    return [...row('products', '0'), ...(plan.recrawl ? recrawl(plan.recrawl) : []), '', ...says].join('\n');
  }
  const lines = [
    ...row(`${noun(plan)}s`, plan.manyHosts ? tonight(plan.manyHosts) : thousands(plan.products)),
    ...(plan.manyHosts ? leftAlone(plan.manyHosts) : []),
    ...(plan.manyHosts ? row('hosts', hosts(plan.manyHosts)) : []),
    ...(plan.manyHosts?.each ? row('requests', requests(plan.manyHosts.each)) : []),
    ...(plan.manyHosts?.fullest?.length ? row('fullest', plan.manyHosts.fullest.map(fullest).join(', ')) : []),
    ...(plan.pages ? row('pages', pages(plan, plan.pages)) : []),
    ...(plan.recrawl ? recrawl(plan.recrawl) : []),
    ...row(
      'pace',
      `one request per ${formatDuration(Math.max(plan.intervalMs, plan.operatorPace?.intervalMs ?? 0))}${pacedBy(plan)} (planned with ${formatPace(plan.paceMs)} a ${noun(plan)})`,
    ),
    ...(plan.domains ? row('domains', domains(plan.domains)) : []),
    ...row('deadline', formatDuration(plan.deadlineMs)),
    ...row('instances', instances(plan)),
    ...(plan.growth ? row('growth', growth(plan, plan.growth)) : []),
    ...(plan.regions ? row('regions', plan.regions.map(region).join('; ')) : []),
    ...row('each', each(plan)),
    ...(plan.noBalancer
      ? row(
          'balancer',
          `none: products are offered to the instances directly, which saves ${dollars(plan.noBalancer.saves)}`,
        )
      : []),
    ...row('start', `within ${formatDuration(roundUp(plan.rampMs))} plus a slow boot`),
    ...(plan.renewals ? row('addresses', addresses(plan.renewals)) : []),
    ...row('finish', finish(plan)),
    ...row('vCPUs', vcpus(plan)),
    ...row('cost', cost(plan, maxCost)),
    ...row('', costParts(plan)),
    '',
    ...verdict(plan),
    ...plan.warnings.flatMap((w) => item('note', w)),
  ];
  return lines.join('\n');
}

/** What is about to start, in one sentence: its kind, products, instances, price and end. */
export function startInWords(plan: Plan, dryRun: boolean, nowMs: number): string {
  const time = (afterMs: number): string =>
    `${new Date(nowMs + afterMs).toISOString().slice(0, 16).replace('T', ' ')} UTC`;
  const kind = dryRun
    ? 'Dry run on this machine, which costs nothing'
    : `On AWS, for about ${dollars(plan.cost.total)}`;
  const fleet = `${plural(plan.products, noun(plan))} with ${plural(plan.instances, 'instance')} (${plan.instanceType})`;
  return `${kind}: ${fleet}, probably over by ${time(plan.endP50Ms)}, deadline ${time(plan.deadlineMs)}.`;
}

/** Many pages of a discovery have no product; what is at many hosts are records. */
export const noun = ({ growth, manyHosts }: Plan): string =>
  manyHosts !== undefined ? 'record' : growth === undefined ? 'product' : 'URL';

function pacedBy({ domains: several, manyHosts }: Plan): string {
  if (manyHosts !== undefined) return ' and host';
  return several ? ', domain and address' : ' and address';
}

/** How much of a list one night can do, in words. */
export const tonight = ({ records, listed }: HostsPlan): string =>
  records === listed ? thousands(records) : `${thousands(records)} of ${thousands(listed)} tonight`;

/** Why it is not more, in words. */
export function hosts({ hosts: count, cutHosts, nights, deadShare, each: ofList }: HostsPlan): string {
  // What a plan knows of the hosts of a list; a simulation may be asked for any share.
  const shown = ofList === undefined ? '' : ', as in an earlier night';
  const dead = deadShare === 0 ? '' : `, ${percent(deadShare)} of them without an answer${shown}`;
  if (cutHosts === 0) return `${thousands(count)}${dead}`;
  const most = Number.isFinite(nights)
    ? `the largest takes ${plural(nights, 'night')}`
    : 'one is slower than a night is long';
  return `${thousands(count)}${dead}; ${thousands(cutHosts)} ${cutHosts === 1 ? 'has' : 'have'} more than a night allows at ${cutHosts === 1 ? 'its' : 'their'} pace, whatever the fleet: ${most}`;
}

const requests = ({ requestsEach, isMeasured }: NonNullable<HostsPlan['each']>): string =>
  `${Number(requestsEach.toFixed(2))} a record with redirects and further pages, ${isMeasured ? 'as in an earlier night' : 'until a night has shown how many'}`;

function leftAlone({ leftAlone: left, deniedHosts }: HostsPlan): string[] {
  const { denied = 0, unmapped = 0 } = left ?? {};
  const why = [
    ...(denied === 0 ? [] : [`${thousands(denied)} by site.follow.deny`]),
    ...(unmapped === 0 ? [] : [`${thousands(unmapped)} that no section of the mapping reads`]),
    ...(deniedHosts
      ? [`${thousands(deniedHosts.records)} at ${plural(deniedHosts.hosts, 'host')} that orchestrator hosts deny names`]
      : []),
  ];
  return why.length === 0 ? [] : row('left alone', `${why.join(', ')}: failed(redirect) without a request`);
}

const fullest = ({ host, records }: HostRecords): string => `${oneLine(host)} ${thousands(records)}`;

function pages({ products }: Plan, { mean, max }: NonNullable<Plan['pages']>): string {
  const each = `${thousands(mean)} a product on average, at most ${thousands(max)} (site.pages_per_product)`;
  return `about ${thousands(Math.round(products * mean))}: ${each}`;
}

function recrawl({ listed, unseen, due, carriedOver, keepsFresh }: RecrawlPlan): string[] {
  const { products, byCategory, dueSinceMs } = carriedOver;
  const since = dueSinceMs === null ? '' : `, the oldest due since ${new Date(dueSinceMs).toISOString().slice(0, 10)}`;
  const held = byCategory === 0 ? '' : `, ${thousands(byCategory)} of them by products.recrawl.max_share`;
  return [
    ...row('due', `${thousands(due)} of ${thousands(listed)} listed, ${thousands(unseen)} never crawled`),
    ...(products === 0 ? [] : row('carried over', `${thousands(products)}${held}${since}`)),
    ...row(
      'keeping up',
      keepsFresh === null
        ? 'takes more than any fleet allows'
        : `takes ${plural(keepsFresh.products, 'product')} a night: ${plural(keepsFresh.instances, 'instance')}, about ${dollars(keepsFresh.cost)}`,
    ),
  ];
}

const domains = ({ count, busiestShare, pages = 1 }: NonNullable<Plan['domains']>): string =>
  `${count} at the same time${pages > 1 ? `, ${pages} pages of an instance at once` : ''}; the busiest has ${percent(busiestShare)} of the products`;

function instances(plan: Plan): string {
  return `${thousands(plan.instances)} x ${plan.instanceType} (lower bound ${thousands(plan.lowerBoundInstances)})`;
}

function growth(plan: Plan, { urls, most, instances: n, cost: usd }: GrowthPlan): string {
  const found = urls === most ? `up to ${thousands(most)} URLs` : `up to ${thousands(urls)} of ${thousands(most)} URLs`;
  const fleet = n > plan.instances ? `${plural(n, 'instance')}, about ${dollars(usd)}` : 'these instances suffice';
  const rest = urls === most ? '' : '; more does not fit, and waits for the next discovery';
  return `as it finds more, ${found} (discover.pages): ${fleet}${rest}`;
}

function region({ region: name, instances: n, vcpus: used, vcpuQuota, cost: usd }: RegionShare): string {
  const quota = vcpuQuota === null ? '' : `, ${thousands(used)} of ${thousands(vcpuQuota)} vCPUs`;
  return `${name} ${thousands(n)}${quota}, ${dollars(usd)}`;
}

function each(plan: Plan): string {
  return `${plural(plan.productsEach, noun(plan))} in chunks of ${Math.min(plan.chunkSize, plan.productsEach)}, room for ${thousands(plan.capacityEach)}`;
}

function addresses({ everyMs, each, costMs }: RotationPlan): string {
  const every = `rotated every ${formatDuration(everyMs)}`;
  if (each === 0) return `${every}: not within this run`;
  return `${every}: up to ${plural(each, 'time')} each, ${formatDuration(roundUp(costMs))} of crawling lost each time`;
}

function finish(plan: Plan): string {
  const p50 = formatDuration(roundUp(plan.endP50Ms));
  const p95 = formatDuration(roundUp(plan.endP95Ms));
  return `after ${p50} (half of runs), ${p95} (95 %); on time in ${percent(plan.onTimeProbability)} if no instance is lost`;
}

function vcpus(plan: Plan): string {
  if (plan.vcpuQuota === null)
    return `${thousands(plan.vcpus)} (quota unknown${plan.regions ? ' in a region' : ': set aws.vcpu_quota'})`;
  const free = plan.vcpuQuota - plan.vcpus;
  const what = (plan.quota?.inUse ?? 0) > 0 ? 'left of the quota' : 'in the quota';
  return `${thousands(plan.vcpus)} of ${thousands(plan.vcpuQuota)} ${what}, ${free >= 0 ? `${free} left` : `${-free} too many`}`;
}

function cost(plan: Plan, maxCost: number | null | undefined): string {
  const cap = maxCost === null ? ', no cap (run.max_cost)' : maxCost === undefined ? '' : `, cap ${dollars(maxCost)}`;
  return `about ${dollars(plan.cost.total)}${cap}; list prices of ${plan.cost.pricesOf}`;
}

function costParts({ cost, noBalancer, balancerAddresses = 0 }: Plan): string {
  const balancer = balancerAddresses === 0 ? 'balancer' : `balancer with ${balancerAddresses} public addresses`;
  const parts = Object.entries({
    instances: cost.instances,
    ...(cost.credits === undefined ? {} : { 'CPU credits': cost.credits }),
    IPv4: cost.ipv4,
    EBS: cost.ebs,
    ...(noBalancer ? {} : { [balancer]: cost.balancer }),
    S3: cost.s3,
    ...(cost.traffic === undefined ? {} : { 'traffic between regions': cost.traffic }),
  });
  return parts.map(([name, usd]) => `${name} ${dollars(usd)}`).join(', ');
}

function verdict(plan: Plan): string[] {
  if (plan.verdict === 'feasible') return ['This fits.'];
  const heading = {
    infeasible: 'This cannot be done:',
    'over-quota': 'This is more than the account may launch:',
    'over-budget': 'This is more than the budget:',
    'too-few-products': 'These are too few products:',
  }[plan.verdict];
  return [
    heading,
    ...plan.faults.flatMap((f) => item('-', f)),
    ...(plan.earliestEndMs === null
      ? []
      : item('-', `The earliest end within these limits is ${formatDuration(plan.earliestEndMs)} after the start.`)),
    ...(plan.remedies.length === 0
      ? []
      : ['', plan.remedies.length === 1 ? 'What would help:' : 'What would help, either of:']),
    ...plan.remedies.flatMap((r) => item('*', r)),
  ];
}

const item = (mark: string, text: string): string[] => hang(`  ${mark} `, text);

const row = (label: string, text: string): string[] => hang(label.padEnd(LABEL), text);

function hang(head: string, text: string): string[] {
  const [first = '', ...rest] = wrap(text, head.length);
  return [`${head}${first}`, ...rest.map((line) => `${' '.repeat(head.length)}${line}`)];
}

/** Breaks at spaces; a word longer than a line stays whole. */
function wrap(text: string, indent: number): string[] {
  const lines: string[] = [];
  let line = '';
  for (const word of text.split(' ')) {
    if (line !== '' && indent + line.length + 1 + word.length > WIDTH) {
      lines.push(line);
      line = word;
    } else {
      line = line === '' ? word : `${line} ${word}`;
    }
  }
  return [...lines, line];
}

const thousands = (n: number): string => n.toLocaleString('en-US');

/** Milliseconds matter in a pace: 10.101s, not 10.1s. */
const formatPace = (ms: number): string => (ms < 1_000 ? `${Math.round(ms)}ms` : `${Math.round(ms) / 1_000}s`);
