/** `orchestrator extract`: reads one page with a mapping and shows what each field gives, step by step. */
import { EXIT, type ExitCode } from '../../../shared/domain/exit-codes.ts';
import type { Output } from '../output.ts';
import { askCrawlApi } from '../../core/trial/ask-crawl-api.ts';
import { type ExtractFlags, readTrialInput } from '../../core/trial/trial-input.ts';
import { type FieldReport, type FurtherReport, reportTrial, type TrialReport } from '../../core/trial/trial-report.ts';
import { readRobots } from '../../core/prepare/site-robots.ts';
import { countLeftOut, describeLeftOut } from '../../../shared/domain/left-out.ts';
import type { RobotsPolicy } from '../../../shared/domain/robots-matcher.ts';
import type { PageTrial } from '../../../shared/wire/page-trial.ts';
import { isAmbiguous, readingsOf } from '../../../shared/domain/ambiguous-number.ts';
import { plain, quote } from '../../../shared/domain/terminal-text.ts';

export type { ExtractFlags } from '../../core/trial/trial-input.ts';

/**
 * 0 when the product would be stored, 12 when the page lacks what the mapping requires, 4 when it shows a mistake of
 * the mapping, 1 when there was no page to read.
 */
export async function extractCommand(flags: ExtractFlags, output: Output): Promise<ExitCode> {
  const { trial, further, pageName, mappingName } = readTrialInput(flags);
  const asked = further === null ? trial : { ...trial, further: { ...further, robots: await robotsOf(trial) } };
  const report = reportTrial(trial, await askCrawlApi(asked), flags.field);
  for (const line of renderTrial(report, { page: pageName, mapping: mappingName })) output.line(line);
  const exitCode = exitCodeOf(report);
  output.document({ ...report, exitCode });
  return exitCode;
}

/** The rules for further pages, of the page's own host and of site.follow.hosts. */
const robotsOf = async ({ site, url }: PageTrial): Promise<RobotsPolicy> => {
  const { version, access, rules, crawlDelayMs, source, further } = await readRobots({ ...site, productUrl: url });
  return { version, access, rules, crawlDelayMs, source, ...(further && { further }) };
};

function exitCodeOf({ outcome, kind, faults }: TrialReport): ExitCode {
  if (faults.length > 0) return EXIT.config;
  if (outcome === 'stored') return EXIT.complete;
  return kind === null ? EXIT.internal : EXIT.failedProducts;
}

const SHOWN_RECORDS = 3;
const SHOWN_LINKS = 10;

function renderTrial(report: TrialReport, names: { page: string; mapping: string }): string[] {
  return [
    `Page      ${plain(names.page)}${describePage(report)}`,
    ...report.requests.slice(0, -1).map((hop) => `          ${hop.status ?? '-'} ${plain(hop.url)} → redirect`),
    ...(report.kind === null ? [] : describeMapping(report, names.mapping)),
    ...(report.rows === null ? [] : ['', ...describeRows(report)]),
    ...report.fields.flatMap((field) => ['', ...describeField(field, report.rows !== null)]),
    ...(report.links.length === 0 ? [] : ['', ...describeLinks(report.links)]),
    ...(report.further === null ? [] : ['', ...describeFurther(report.further)]),
    ...report.paths.flatMap(({ source, paths }) => ['', ...describePaths(source, paths)]),
    '',
    ...(report.faults.length > 0
      ? ['The mapping does not fit this page:', ...report.faults.map((fault) => `  ${plain(fault)}`)]
      : [describeOutcome(report), ...adviseBrowser(report)]),
  ];
}

function describePage({ kind, requests, by }: TrialReport): string {
  const last = requests.at(-1);
  const facts = [
    kind?.toUpperCase(),
    last && `status ${last.status ?? '-'}`,
    by === 'browser' ? 'by a browser' : undefined,
  ];
  const known = facts.filter((fact) => fact !== undefined);
  return known.length === 0 ? '' : `  (${known.join(', ')})`;
}

function describeMapping({ mapping, dom, kind }: TrialReport, file: string): string[] {
  if (mapping === null) return [`Mapping   none in ${file} is for this URL`];
  if (kind === 'json') return [`Mapping   ${plain(mapping)} in ${file}`, 'Read      as JSON'];
  const [first, ...others] = dom;
  const way =
    first === undefined
      ? ['Read      as it streams, without a tree']
      : [
          `Read      as a tree, which is slower, for ${plain(first)}`,
          ...others.map((one) => `          and ${plain(one)}`),
        ];
  return [`Mapping   ${plain(mapping)} in ${file}`, ...way];
}

function describeRows({ rows }: TrialReport): string[] {
  const all = rows ?? [];
  const shown = all.slice(0, SHOWN_RECORDS);
  return [
    `Records   ${all.length}${all.length > shown.length ? `, the first ${shown.length}:` : shown.length > 0 ? ':' : ''}`,
    ...shown.map(({ key, row }) => `  ${quote(key)}  ${quote(row, 400)}`),
  ];
}

function describeField(field: FieldReport, inRows: boolean): string[] {
  const { name, type, required, value, sources, steps, broken } = field;
  const missing = required ? 'NO VALUE, but it is required' : 'no value';
  const won = sources?.won ? `, from source ${sources.won} of ${sources.of}` : '';
  const width = Math.min(48, Math.max(0, ...steps.map(({ step }) => plain(step, 48).length)));
  return [
    `${name}  ${type}${required ? ', required' : ''}${inRows ? ', in the first record' : ''}${won}: ${value === null ? missing : show(value, 200)}`,
    ...(broken === null ? [] : [`    breaks assert: ${plain(broken, 200)}`]),
    ...steps.map(({ step, source, count, values }, i) => {
      const mark = source === undefined ? '' : source === steps[i - 1]?.source ? '   ' : `${source}. `;
      return `    ${mark}${plain(step, 48).padEnd(width)}  ${describeValues(count, values)}`;
    }),
  ];
}

function describeValues(count: number, values: readonly unknown[]): string {
  if (count === 0) return 'nothing';
  const shown = values.slice(0, 3).map((value) => show(value, 80));
  return `${shown.join('  ')}${count > shown.length ? `  … ${count} values` : ''}`;
}

/** A value as text; a number with two possible readings as a sentence. */
function show(value: unknown, maxChars: number): string {
  if (!isAmbiguous(value)) return quote(value, maxChars);
  const readings = readingsOf(value);
  return readings.length === 0
    ? `${quote(value.text, maxChars)} (no clear number: stored empty)`
    : `${quote(value.text, maxChars)} (${readings.join(' or ')}: the other values of the column decide)`;
}

function describeLinks(links: readonly string[]): string[] {
  const shown = links.slice(0, SHOWN_LINKS);
  const rest = links.length - shown.length;
  return [
    `Links     ${links.length}`,
    ...shown.map((link) => `  ${plain(link)}`),
    ...(rest > 0 ? [`  … and ${rest} more`] : []),
  ];
}

function describeFurther({ requests, leftOut, notRead }: FurtherReport): string[] {
  return [
    `Further   ${requests.length}${requests.length === 0 ? '' : ' requested:'}`,
    ...requests.map(({ url, status }) => `  ${status ?? '-'} ${plain(url)}`),
    ...(notRead > 0 ? [`  … and ${notRead} more, which --pages would read`] : []),
    ...describeLeftOut(countLeftOut([leftOut])).map((line) => `  left out: ${plain(line)}`),
  ];
}

function describePaths(source: string, paths: readonly string[]): string[] {
  if (paths.length === 0) return [`The page has no ${plain(source)} to read.`];
  return [`Paths     that ${plain(source)} has on this page:`, ...paths.map((path) => `  ${plain(path)}`)];
}

function describeOutcome({ outcome, reason, detail, rows, further }: TrialReport): string {
  if (outcome === 'stored' && further?.partial === true)
    return 'The product would be stored as partial: rows that it has from earlier nights would stay.';
  if (outcome === 'stored')
    return rows?.length === 0 ? 'The product would be stored, without a record.' : 'The product would be stored.';
  if (outcome === 'gone') return `The site says that there is no such page: ${plain(detail ?? '')}.`;
  return `The product would be failed(${reason}): ${plain(detail ?? '')}.`;
}

/** The most common reason for a missing value: a script fills it in. */
function adviseBrowser({ by, post, reason, mapping }: TrialReport): string[] {
  if (by !== 'http' || post !== undefined || reason !== 'parse' || mapping === null) return [];
  return ['If a browser shows the value, try --render browser.'];
}
