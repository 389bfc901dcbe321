/** The final report for people. */
import { formatDuration } from '../../shared/domain/quantity.ts';
import type { RunReport } from '../control/report.ts';
import { renderTable } from './output.ts';

export function renderReport(report: RunReport): string {
  const { products, politeness, cost, timings } = report;
  const reasons = Object.entries(products.reasons).map(([reason, n]) => `${reason} ${n}`);
  const tookMs = report.finishedAt === null ? null : Date.parse(report.finishedAt) - Date.parse(report.startedAt);
  const allowedMs = Date.parse(report.deadline) - Date.parse(report.startedAt);
  const lines = [
    `Run ${report.run}: ${report.state}${report.reason ? ` (${report.reason})` : ''}`,
    '',
    `  products    ${products.planned} planned = ${products.stored} stored + ${products.gone} gone + ${products.failed} failed`,
    ...(reasons.length > 0 ? [`  failed      ${reasons.join(', ')}`] : []),
    ...(products.duplicates > 0 ? [`  duplicates  ${products.duplicates} listed again, crawled once`] : []),
    `  time        ${tookMs === null ? '-' : formatDuration(tookMs)} of ${formatDuration(allowedMs)}${report.onTime ? '' : ', NOT on time'}`,
    `  politeness  interval ${formatDuration(politeness.intervalMs)}, smallest gap ${politeness.minGapMs === null ? '-' : `${Math.floor(politeness.minGapMs)}ms`}`,
    `  instances   ${report.instances.launched} launched, ${report.instances.replaced} of them replacements, ${report.instances.terminated} terminated`,
    `  cost        $${cost.actual.toFixed(4)} (planned $${cost.estimated.toFixed(4)})`,
    `  stages      ${stages(timings)}`,
    '',
    renderTable(
      ['slot', 'instance', 'address', 'assigned', 'stored', 'gone', 'failed', 'requests', 'min gap'],
      report.shards.map((s) => [
        s.epoch > 1 ? `${s.slot} (epoch ${s.epoch})` : String(s.slot),
        s.instanceId,
        s.address,
        s.assigned,
        s.stored,
        s.gone,
        s.failed,
        s.requests,
        s.minGapMs === null ? null : `${Math.floor(s.minGapMs)}ms`,
      ]),
    ),
  ];
  if (report.notes.length > 0) lines.push('', ...report.notes.map((n) => `  note: ${n}`));
  return lines.join('\n');
}

function stages(timings: RunReport['timings']): string {
  const part = (name: string, ms: number | null): string[] => (ms === null ? [] : [`${name} ${formatDuration(ms)}`]);
  return [
    ...part('launch', timings.launchMs),
    ...part('dispatch', timings.dispatchMs),
    ...part('crawl', timings.crawlMs),
    ...part('load', timings.loadMs),
    ...part('publish', timings.publishMs),
  ].join(', ');
}
