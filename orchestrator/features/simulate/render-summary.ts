/** Simulated runs as people read them: plain text, at most some 100 columns. */
import { formatDuration } from '../../../shared/domain/quantity.ts';
import { dollars, percent } from '../../core/plan/wording.ts';
import type { SimResult } from '../../core/simulation/result.ts';
import type { Chances } from '../../core/simulation/scenario.ts';
import type { SimHosts, SimSummary } from './summary.ts';

const LABEL = 14;

/** Lines without a newline at the end. */
export function renderSummary(summary: SimSummary): string {
  const { endMs, plannedEndMs, instances, costUsd, reassignmentMs, products } = summary;
  return [
    row('runs', `${summary.runs}; ${exits(summary)}`),
    row(
      'on time',
      `${percent(summary.onTimeShare)} of runs${troubles(summary.chances)} (the plan says ${percent(summary.plannedOnTimeShare)} if no instance is lost)`,
    ),
    row(
      'end',
      `after ${formatDuration(endMs.p50)} (half of runs), ${formatDuration(endMs.p95)} (95 %); ` +
        `the plan says ${formatDuration(plannedEndMs.p50)} and ${formatDuration(plannedEndMs.p95)}`,
    ),
    row(
      'products',
      `${count(products.planned)} planned: ${count(products.stored)} stored, ${count(products.gone)} gone, ${count(products.failed)} failed${summary.runs > 1 ? ' on average' : ''}`,
    ),
    row(
      'instances',
      `${instances.planned} planned; launched ${both(instances.launched)}, replaced ${both(instances.replaced)}, banned ${both(instances.banned)}`,
    ),
    row(
      'cost',
      `${dollars(costUsd.p50)} (half of runs), ${dollars(costUsd.p95)} (95 %); planned ${dollars(summary.plannedCostUsd)}`,
    ),
    row(
      'waste',
      `${summary.waste.toFixed(2)}x the instances that the requests alone would keep busy; paid for ${summary.paidTimeRatio.toFixed(2)}x the time of the requests`,
    ),
    row(
      'reassigned',
      reassignmentMs === null
        ? 'no products of a lost instance had to move'
        : `after ${formatDuration(reassignmentMs.p50)} (half of ${reassignmentMs.losses} losses), at most ${formatDuration(reassignmentMs.max)}`,
    ),
    ...(summary.hosts === undefined ? [] : [row('hosts', hosts(summary.hosts))]),
  ].join('\n');
}

function hosts({ listed, requests, minGapMs, twoOwners }: SimHosts): string {
  const gap = minGapMs === null ? 'none asked twice' : `smallest gap at one ${formatDuration(minGapMs)}`;
  return `${count(listed)}, ${count(requests)} requests; ${gap}; asked by two instances at once: ${count(twoOwners)} times`;
}

/** What happened in one run, in the order of time. */
export function renderTimeline({ timeline }: Pick<SimResult, 'timeline'>): string {
  return timeline.map(({ atMs, text }) => `${moment(atMs)}  ${text}`).join('\n');
}

/** Hours, minutes and seconds since the start, such as 0:04:40. */
function moment(ms: number): string {
  const seconds = Math.floor(ms / 1_000);
  const two = (n: number): string => String(n).padStart(2, '0');
  return `${Math.floor(seconds / 3_600)}:${two(Math.floor(seconds / 60) % 60)}:${two(seconds % 60)}`;
}

function exits({ runs, exitCodes, exitCode }: SimSummary): string {
  const codes = Object.entries(exitCodes);
  if (codes.length === 1) return `${runs === 1 ? 'it ends' : 'all end'} with exit code ${exitCode}`;
  return codes.map(([code, n]) => `${n} end with exit code ${code}`).join(', ');
}

function troubles({ loss, ban, slow, bootFailure }: Chances): string {
  const all = { lost: loss, banned: ban, slow, 'never ready': bootFailure };
  const named = Object.entries(all).flatMap(([what, share]) => (share === 0 ? [] : [`${percent(share)} ${what}`]));
  return named.length === 0 ? '' : ` with ${named.join(', ')}`;
}

const row = (label: string, text: string): string => `${label.padEnd(LABEL)}${text}`;
const count = (n: number): string => Math.round(n).toLocaleString('en-US');
const both = ({ p50, p95 }: { p50: number; p95: number }): string => (p50 === p95 ? `${p50}` : `${p50} (95 %: ${p95})`);
