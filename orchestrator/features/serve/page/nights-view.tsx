/** The last runs side by side: one glance says which night was odd, and in what. */
import { useEffect, useMemo } from 'preact/hooks';
import type { RunSummary } from '../../../core/read/run-documents.ts';
import type { FieldValues } from '../../../core/model/report.ts';
import { listRuns } from './api.ts';
import { count, duration, plural, share, short, usd } from './format.ts';
import { type Column, Fault, Pill, Section, Table, Time, useLoaded, ZonedTime } from './parts.tsx';
import { toneOf } from './run-view.tsx';

/** How often the list is read again while the page is open. */
const RELOAD_MS = 15_000;
const SHOWN = 30;

export function NightsView() {
  const { value, error, reload } = useLoaded(listRuns);
  useEffect(() => {
    document.title = 'Runs · crawlfleet';
    const timer = setInterval(() => document.visibilityState === 'visible' && reload(), RELOAD_MS);
    return () => clearInterval(timer);
  }, []);
  if (!value) return error ? <Fault error={error} /> : <p class="muted">Loading …</p>;
  if (value.runs.length === 0)
    return (
      <Section title="No run yet">
        <p>
          Start one with <code>orchestrator run</code>, or try it without an account:{' '}
          <code>orchestrator run --dry-run --deadline 10m</code>
        </p>
      </Section>
    );
  return (
    <>
      {error && <Fault error={error} />}
      <h1>Runs</h1>
      {value.nextDue !== null && (
        <p>
          Next due: <ZonedTime at={value.nextDue} />
        </p>
      )}
      <Multiples runs={value.runs} />
      <Values runs={value.runs} />
      <RunTable runs={value.runs} />
    </>
  );
}

interface Measure {
  name: string;
  /** Between 0 and 1. */
  isShare?: true;
  of: (run: RunSummary) => number | null;
  show: (value: number) => string;
}

const took = ({ startedAt, finishedAt }: RunSummary): number | null =>
  finishedAt === null ? null : Date.parse(finishedAt) - Date.parse(startedAt);

/** Once it is known, without the link pages of a discovery. */
const plannedOf = ({ products, planned }: RunSummary): number => products?.planned ?? planned;

const MEASURES: Measure[] = [
  { name: 'products', of: plannedOf, show: short },
  { name: 'duration', of: took, show: duration },
  { name: 'cost', of: (r) => r.cost?.actual ?? null, show: usd },
  {
    name: 'stored',
    isShare: true,
    of: (r) => r.products && r.products.stored / Math.max(1, plannedOf(r)),
    show: share,
  },
  { name: 'gone', isShare: true, of: (r) => r.products && r.products.gone / Math.max(1, plannedOf(r)), show: share },
  {
    name: 'failed',
    isShare: true,
    of: (r) => r.products && r.products.failed / Math.max(1, plannedOf(r)),
    show: share,
  },
];

function measuresOf(runs: readonly RunSummary[]): Measure[] {
  return [...MEASURES, ...fieldsOf(runs).flatMap((field) => valueMeasures(runs, field))];
}

const fieldsOf = (runs: readonly RunSummary[]): string[] => [
  ...new Set(runs.flatMap((r) => [...Object.keys(r.fill?.fields ?? {}), ...Object.keys(r.values?.fields ?? {})])),
];

/** What the values of one field look like; only what some run has. */
function valueMeasures(runs: readonly RunSummary[], field: string): Measure[] {
  const shareOf = (name: string, of: (values: FieldValues) => number | undefined): Measure => ({
    name: `${name}: ${field}`,
    isShare: true,
    of: (r) => (r.values?.fields[field] && of(r.values.fields[field])) ?? null,
    show: share,
  });
  const currencies = new Set(runs.flatMap((r) => Object.keys(r.values?.fields[field]?.currencies ?? {})));
  const measures: Measure[] = [
    { name: `filled: ${field}`, isShare: true, of: (r) => r.fill?.fields[field] ?? null, show: share },
    shareOf('zero or empty', ({ empty }) => empty),
    shareOf('most frequent', ({ top }) => top),
    shareOf('changed', ({ changed }) => changed),
    { name: `median: ${field}`, of: (r) => r.values?.fields[field]?.numbers?.median ?? null, show: count },
    ...[...currencies].map((code) => shareOf(code, (values) => values.currencies?.[code] ?? 0)),
  ];
  return measures.filter(({ of }) => runs.some((r) => of(r) !== null));
}

interface Band {
  low: number;
  high: number;
}

/** Enough earlier nights to call one odd. */
const LEAST_NIGHTS = 4;

/**
 * What is usual: three median deviations around the middle, at least a tenth of it; of a share at least two points.
 * Null with too few nights.
 */
function bandOf(values: readonly number[], isShare: boolean): Band | null {
  if (values.length < LEAST_NIGHTS) return null;
  const middle = median(values);
  const least = isShare ? 0.02 : Math.abs(middle) * 0.1;
  const spread = Math.max(3 * median(values.map((v) => Math.abs(v - middle))), least);
  return { low: Math.max(0, middle - spread), high: isShare ? Math.min(1, middle + spread) : middle + spread };
}

function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[sorted.length >> 1] ?? 0;
}

/** The measures in which each run lies outside the band of the runs before it. */
function oddities(runs: readonly RunSummary[], measures: readonly Measure[]): Map<string, string[]> {
  const odd = new Map<string, string[]>();
  runs.forEach((run, i) => {
    const earlier = runs.slice(i + 1, i + 1 + SHOWN).filter((r) => r.finishedAt !== null);
    const names = measures.flatMap(({ name, of, isShare }) => {
      const value = of(run);
      const band = bandOf(
        earlier.map(of).filter((v) => v !== null),
        isShare === true,
      );
      if (value === null || band === null || (value >= band.low && value <= band.high)) return [];
      return [`${name} ${value < band.low ? 'low' : 'high'}`];
    });
    odd.set(run.run, names);
  });
  return odd;
}

/** The last runs that have ended, oldest first. */
const nightsOf = (runs: readonly RunSummary[]): RunSummary[] =>
  runs
    .filter((r) => r.finishedAt !== null)
    .slice(0, SHOWN)
    .toReversed();

function Multiples({ runs }: { runs: RunSummary[] }) {
  const shown = useMemo(() => nightsOf(runs), [runs]);
  if (shown.length < 2) return null;
  return (
    <Section title={`The last ${plural(shown.length, 'night')}`}>
      <ul class="multiples">
        {MEASURES.map((measure) => (
          <li key={measure.name}>
            <Multiple measure={measure} runs={shown} />
          </li>
        ))}
      </ul>
    </Section>
  );
}

/** The values of each field, night by night. */
function Values({ runs }: { runs: RunSummary[] }) {
  const shown = useMemo(() => nightsOf(runs), [runs]);
  const fields = fieldsOf(shown);
  if (shown.length < 2 || fields.length === 0) return null;
  return (
    <Section title="Values" aside={plural(fields.length, 'field')}>
      {fields.map((field) => (
        <div key={field}>
          <h3>{field}</h3>
          <ul class="multiples">
            {valueMeasures(shown, field).map((measure) => (
              <li key={measure.name}>
                <Multiple measure={measure} runs={shown} />
              </li>
            ))}
          </ul>
        </div>
      ))}
    </Section>
  );
}

const WIDTH = 220;
const HEIGHT = 56;

/** One bar a night, before the band of what is usual. */
function Multiple({ measure: { name, of, show, isShare }, runs }: { measure: Measure; runs: RunSummary[] }) {
  const values = runs.map(of);
  const known = values.filter((v) => v !== null);
  const last = values.at(-1) ?? null;
  const band = bandOf(known.slice(0, -1), isShare === true);
  const most = Math.max(...known, band?.high ?? 0, isShare ? 0.05 : 1e-9);
  const y = (value: number): number => HEIGHT - (value / most) * (HEIGHT - 4);
  const step = WIDTH / runs.length;
  const isOdd = (value: number): boolean => band !== null && (value < band.low || value > band.high);
  const usual = band === null ? 'too few nights to compare' : `usually ${show(band.low)} to ${show(band.high)}`;
  return (
    <figure>
      <figcaption>
        {name}: <strong class={last !== null && isOdd(last) ? 'odd' : ''}>{last === null ? '–' : show(last)}</strong>
        <small>{usual}</small>
      </figcaption>
      <svg viewBox={`0 0 ${WIDTH} ${HEIGHT}`} aria-hidden="true" preserveAspectRatio="none">
        {band && (
          <rect x="0" width={WIDTH} y={y(band.high)} height={Math.max(1, y(band.low) - y(band.high))} class="band" />
        )}
        {values.map(
          (value, i) =>
            value !== null && (
              <rect
                key={runs[i]!.run}
                x={i * step + step * 0.15}
                width={step * 0.7}
                y={y(value)}
                height={Math.max(1, HEIGHT - y(value))}
                class={isOdd(value) ? 'bar odd' : 'bar'}
              />
            ),
        )}
      </svg>
    </figure>
  );
}

const outcomeOf =
  (outcome: 'stored' | 'gone' | 'failed') =>
  ({ products }: RunSummary): string =>
    products ? count(products[outcome]) : '–';

const COLUMNS: Column<RunSummary>[] = [
  { head: 'Run', of: ({ run }) => <a href={`/runs/${encodeURIComponent(run)}`}>{run}</a> },
  {
    head: 'State',
    of: (run) => (
      <Pill tone={toneOf(run)}>
        {run.state}
        {run.exitCode !== null && run.exitCode !== 0 && `, exit ${run.exitCode}`}
      </Pill>
    ),
  },
  { head: 'Began', of: ({ startedAt }) => <Time at={startedAt} withDate /> },
  { head: 'Took', class: 'n', of: (run) => (took(run) === null ? 'at work' : duration(took(run)!)) },
  { head: 'Products', class: 'n', of: (r) => count(plannedOf(r)) },
  { head: 'Stored', class: 'n', of: outcomeOf('stored') },
  { head: 'Gone', class: 'n', of: outcomeOf('gone') },
  { head: 'Failed', class: 'n', of: outcomeOf('failed') },
  { head: 'Cost', class: 'n', of: ({ cost }) => (cost ? usd(cost.actual) : '–') },
];

function RunTable({ runs }: { runs: RunSummary[] }) {
  const odd = useMemo(() => oddities(runs, measuresOf(runs)), [runs]);
  const oddIn: Column<RunSummary> = { head: 'Odd in', class: 'odd', of: ({ run }) => odd.get(run)!.join(', ') };
  return (
    <Section title="All runs" aside={count(runs.length)}>
      <Table label="All runs" columns={[...COLUMNS, oddIn]} rows={runs} />
    </Section>
  );
}
