/** The final report as text for the user. */
import { describeLeftOut } from '../../../shared/domain/left-out.ts';
import { formatDuration, formatSize } from '../../../shared/domain/quantity.ts';
import { hostsInWords } from '../model/run-hosts.ts';
import type { FurtherPagesReport, RunReport, ValueProfile } from '../model/report.ts';
import { percent } from '../decide/end/guard.ts';
import { renderReasons } from '../../../shared/domain/render-reasons.ts';
import { renderTable } from '../../../shared/domain/text-table.ts';
import { oneLine } from '../../../shared/domain/terminal-text.ts';

export function renderReport(report: RunReport): string {
  const { products, politeness, cost, timings } = report;
  const reasons = Object.entries(products.reasons).map(([reason, n]) => `${reason} ${n}`);
  const tookMs = report.finishedAt === null ? null : Date.parse(report.finishedAt) - Date.parse(report.startedAt);
  const allowedMs = Date.parse(report.deadline) - Date.parse(report.startedAt);
  const lines = [
    `Run ${report.run}: ${stateOf(report)}`,
    '',
    `  products    ${products.planned} planned = ${products.stored} stored + ${products.gone} gone + ${products.failed} failed`,
    ...(reasons.length > 0 ? [`  failed      ${reasons.join(', ')}`] : []),
    ...(report.hosts ? [`  hosts       ${hostsInWords(report.hosts)}`] : []),
    ...(report.unchanged
      ? [
          `  unchanged   ${report.unchanged.products} of the stored (304), ${formatSize(report.unchanged.savedBytes)} not fetched`,
        ]
      : []),
    ...(report.furtherPages ? renderFurtherPages(report.furtherPages) : []),
    ...(products.duplicates > 0 ? [`  duplicates  ${products.duplicates} listed again, crawled once`] : []),
    ...(report.discovery ? renderDiscovery(report.discovery) : []),
    `  time        ${tookMs === null ? '-' : formatDuration(tookMs)} of ${formatDuration(allowedMs)}${report.onTime ? '' : ', NOT on time'}`,
    `  politeness  interval ${formatDuration(politeness.intervalMs)}, smallest gap ${politeness.minGapMs === null ? '-' : `${Math.floor(politeness.minGapMs)}ms`}; ${politeness.requests} requests${politeness.canaries > 0 ? `, ${politeness.canaries} of them for canary pages` : ''}`,
    ...(politeness.robots
      ? [`  robots      ${oneLine(politeness.robots.source)}${crawlDelay(politeness.robots.crawlDelayMs)}`]
      : []),
    ...(report.rendered > 0 ? [`  rendered    ${report.rendered} pages with a browser`] : []),
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
  if (report.leftBehind) lines.push('', ...report.leftBehind.map((line) => `  left behind  ${oneLine(line)}`));
  if (report.reasons && report.reasons.length > 0) lines.push('', renderReasons(report.reasons));
  if (report.values) lines.push('', renderValues(report.values));
  if (report.bans.length > 0) lines.push('', renderBans(report.bans));
  if (report.notes.length > 0) lines.push('', ...report.notes.map((n) => `  note: ${oneLine(n)}`));
  return lines.join('\n');
}

function renderFurtherPages({ leftOut, partial: { products, examples } }: FurtherPagesReport): string[] {
  const more = products > examples.length ? ' …' : '';
  const heads = ['  left out    further pages: ', '              '];
  return [
    ...(products > 0
      ? [`  partial     ${products} of the stored keep their older rows: ${oneLine(examples.join(', '))}${more}`]
      : []),
    ...describeLeftOut(leftOut).map((line, i) => `${heads[Math.min(i, 1)]}${oneLine(line)}`),
  ];
}

function renderDiscovery(found: NonNullable<RunReport['discovery']>): string[] {
  const denied = Object.entries(found.denied);
  const sum = denied.reduce((all, [, links]) => all + links, 0);
  const why = denied.length === 0 ? '' : ` (${denied.map(([reason, links]) => `${reason} ${links}`).join(', ')})`;
  const hidden = Math.round(found.hidden);
  const { linkPages: pages } = found;
  return [
    ...(pages
      ? [
          `  link pages  ${pages.planned} planned = ${pages.stored} crawled + ${pages.gone} gone + ${pages.failed} failed`,
        ]
      : []),
    `  links       ${found.found} found = ${found.fresh} new + ${found.known} known + ${sum} denied${why} + ${found.dropped} dropped`,
    `  frontier    ${found.entered} new from seeds, sitemaps and search; ${found.waiting} wait for the next discovery`,
    ...(found.fell > 0 ? [`  fallen out  ${found.fell} that earlier runs had found`] : []),
    ...(hidden > 0 ? [`  hidden      about ${hidden} new links, by the Bloom filter`] : []),
  ];
}

/** A stopped run has published its results: `cancelled` alone would say the opposite. */
function stateOf({ state, reason }: RunReport): string {
  if (state === 'cancelled' && reason === 'stopped') return 'stopped; what it had is published';
  return reason === null || reason === state ? state : `${state} (${oneLine(reason)})`;
}

const crawlDelay = (ms: number | null): string => (ms === null ? '' : ` (Crawl-delay ${formatDuration(ms)})`);

/** One line for each field. */
function renderValues({ products, common, fields, note }: ValueProfile): string {
  const share = (part: number | undefined): string | null => (part === undefined ? null : percent(part));
  const rows = Object.entries(fields).map(([field, { filled, empty, top, numbers, currencies, changed }]) => [
    field,
    share(filled),
    share(empty),
    share(top),
    numbers === undefined ? null : String(numbers.median),
    numbers !== undefined
      ? `${numbers.low} to ${numbers.high}`
      : Object.entries(currencies ?? {})
          .map(([code, part]) => `${code} ${percent(part)}`)
          .join(', '),
    share(changed),
  ]);
  const heads = ['field', 'filled', 'zero or empty', 'most frequent', 'median', '5 % to 95 %', 'changed'];
  const compared = note ?? `${common} of them were crawled before`;
  return [`  Values of ${products} stored products; ${compared}`, renderTable(heads, rows)].join('\n');
}

/** Maximum number of bans shown; report.json has all of them. */
const SHOWN_BANS = 10;

function renderBans(bans: RunReport['bans']): string {
  const table = renderTable(
    ['banned at', 'slot', 'address', 'rule', 'status', 'let in again', 'url'],
    bans
      .slice(0, SHOWN_BANS)
      .map((b) => [
        new Date(b.atMs).toISOString().slice(0, 19),
        b.epoch > 1 ? `${b.slot} (epoch ${b.epoch})` : String(b.slot),
        b.address,
        b.rule,
        b.evidence.status,
        b.overAtMs === null ? '-' : new Date(b.overAtMs).toISOString().slice(0, 19),
        `${b.evidence.request ? 'POST ' : ''}${b.evidence.url.slice(0, 80)}`,
      ]),
  );
  return bans.length > SHOWN_BANS ? `${table}\n  and ${bans.length - SHOWN_BANS} more in report.json` : table;
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
