/** `hosts show` as text: what there is about a host, and what there is not. */
import { formatDuration } from '../../../shared/domain/quantity.ts';
import { renderTable } from '../../../shared/domain/text-table.ts';
import type { HostDocument, LastGrant } from './host-document.ts';

export function renderHost(document: HostDocument): string[] {
  const { isKnown, denied, paceMs, wishedAt, last, nights, names } = document;
  if (!isKnown)
    return [
      'nothing is stored: no run with site.hosts: any had a record there in a year, and no operator has denied or paced it.',
      'Runs that name their site leave nothing here; orchestrator status lists them.',
    ];
  const asked = wishedAt === null ? '' : `, asked for last at ${wishedAt}`;
  const rows: [name: string, text: string][] = [
    ['denied', denied ? `yes${asked}: no request, and its records fail (redirect)` : 'no'],
    [
      'pace',
      paceMs === null
        ? 'none of its own: that of each run'
        : `at least ${formatDuration(paceMs)} between two requests${denied ? '' : asked}`,
    ],
    ...knownRows(document),
    ...(last === null ? [['last grant', 'none: no run had a record there'] as [string, string]] : grantRows(last)),
    ...(names.length === 0 ? [] : [['names', describeNames(names)] as [string, string]]),
  ];
  return renderRows(rows, nights);
}

/** What runs with `site.host_key: host` know of a name; what an operator asks is in the rows of its domain. */
export const renderName = (document: HostDocument): string[] =>
  renderRows([...knownRows(document), ...(document.last === null ? [] : grantRows(document.last))], document.nights);

const renderRows = (rows: [name: string, text: string][], nights: HostDocument['nights']): string[] => [
  ...rows.map(([name, text]) => `${name.padEnd(13)}${text}`),
  ...(nights.length === 0 ? [] : ['', ...renderNights(nights)]),
];

const knownRows = ({ crawlDelayMs, notBefore }: HostDocument): [name: string, text: string][] => [
  ['Crawl-delay', crawlDelayMs === null ? 'none known above the interval' : formatDuration(crawlDelayMs)],
  ['no request', notBefore === null ? 'before: nothing stored' : `before ${notBefore}`],
];

/** Names of a domain that are shown; --json has all. */
const SHOWN_NAMES = 3;

function describeNames(names: HostDocument['names']): string {
  const shown = names.slice(0, SHOWN_NAMES).map(({ host }) => host);
  const more = names.length > SHOWN_NAMES ? ', …' : '';
  return `${names.length.toLocaleString('en')} by themselves (site.host_key: host): ${shown.join(', ')}${more}; hosts show has each`;
}

/** Of a year of nights; --json has all. */
const SHOWN_NIGHTS = 31;

function renderNights(nights: HostDocument['nights']): string[] {
  const rows = nights
    .slice(0, SHOWN_NIGHTS)
    .map(({ run, slot, epoch, address, first, last, requests, intervalMs }) => [
      run,
      `${slot}.${epoch}`,
      address,
      first,
      last,
      requests,
      formatDuration(intervalMs),
    ]);
  const table = renderTable(['run', 'slot', 'address', 'first request', 'last request', 'requests', 'at least'], rows);
  const more = nights.length - rows.length;
  return [...table.split('\n'), ...(more > 0 ? [`and ${more} earlier ones, which --json has`] : [])];
}

function grantRows({
  run,
  slot,
  epoch,
  instance,
  state,
  startedAt,
  finishedAt,
  dryRun,
  records,
  requestLogs,
}: LastGrant) {
  const at = `slot ${slot}.${epoch}`;
  const machine =
    instance === null
      ? 'not in the database'
      : `${instance.id ?? 'never launched'}, ${instance.address ?? 'no address'}`;
  const rows: [name: string, text: string][] = [
    [
      'last run',
      `${run}${state === null ? ', of which this database has nothing else' : `, ${state}${dryRun ? ', a dry run' : ''}`}`,
    ],
  ];
  if (startedAt !== null) rows.push(['', `from ${startedAt} to ${finishedAt ?? 'now'}`]);
  rows.push(['instance', `${at}: ${machine}`]);
  if (state !== null) rows.push(['records', describeRecords(records)]);
  if (requestLogs !== null) {
    const { bucket, run: prefix, instance: own } = requestLogs;
    rows.push(
      ['requests', `each with its time in the logs (*.requests.gz) below ${own} of the bucket ${bucket};`],
      ['', `those of instances that had it before are below ${prefix}. docs/operations.md says how to read them,`],
      ['', `and orchestrator verify ${run} proves the gaps.`],
    );
  }
  return rows;
}

function describeRecords(records: LastGrant['records']): string {
  if (records === null) return 'removed by retention; orchestrator report has the counts of the whole run';
  const { open, stored, gone, failed, lastSettledAt } = records;
  const reasons = Object.entries(failed).sort(([a], [b]) => (a < b ? -1 : 1));
  const failures = reasons.reduce((sum, [, count]) => sum + count, 0);
  const why = failures === 0 ? '' : ` (${reasons.map(([reason, count]) => `${reason} ${count}`).join(', ')})`;
  const last = lastSettledAt === null ? 'none is settled' : `the last was settled at ${lastSettledAt}`;
  return `${records.records}: ${stored} stored, ${gone} gone, ${failures} failed${why}, ${open} open; ${last}`;
}
