/**
 * What the values of a run look like, field by field, in a sample of its products; and whether they are still those of
 * the last nights. A layout may change so that every page yields something, and every value is wrong: all zero, one
 * text for all products, cents for euros, another currency. Pure.
 */
import type { Column } from '../../../../shared/domain/mapping.ts';
import type { FieldValues, ValueProfile } from '../../model/report.ts';
import type { SampledRow, ValueSample } from '../../model/stores.ts';
import { lowestUsual, percent } from './guard.ts';

/** Fewer products that were there before as well prove nothing. */
const LEAST_COMMON = 30;
/** A smaller fall of a share holds no run, whatever it was before. */
const LEAST_FALL = 0.2;
/** A number that has changed by this factor is another one: ten, because shops sell at 80 % off. */
const SAME_WITHIN = 10;
const DIGITS = 5;
const EXAMPLES = 3;
/** Nights in the sentence. */
const SHOWN_NIGHTS = 3;
const VALUE_CHARS = 40;
const CURRENCIES = 5;

/** Shares of values that are as they should be, between 0 and 1. */
type Shares = NonNullable<FieldValues['sound']>;
type Kind = keyof Shares;

/** What the values of the sample look like; of a field without any value there is no entry. */
export function profileOf({ fingerprint, columns, rows }: ValueSample): ValueProfile {
  const common = rows.filter(({ before }) => before !== null);
  const fields: Record<string, FieldValues> = {};
  for (const [i, column] of columns.entries()) {
    const values = rows.flatMap(({ now }) => now[i] ?? []);
    if (values.length === 0) continue;
    const pairs = rows.map((row) => pairOf(row, i)).filter((pair) => pair !== null);
    fields[column.name] = describe(column, values, { pairs, rows: rows.length });
  }
  return { fingerprint, products: countProducts(rows), common: countProducts(common), fields };
}

const countProducts = (rows: readonly SampledRow[]): number => new Set(rows.map(({ id }) => id)).size;

type Pair = [now: string | null, before: string | null];

function describe(
  column: Column,
  values: readonly string[],
  { pairs, rows }: { pairs: readonly Pair[]; rows: number },
): FieldValues {
  const counts = countsOf(values);
  const numbers = isNumeric(column) ? values.map(Number).filter(Number.isFinite) : [];
  const sorted = numbers.sort((a, b) => a - b);
  const quantile = (share: number): number => round(sorted.at(Math.floor(share * (sorted.length - 1))) ?? NaN);
  const changed = pairs.filter(([now, before]) => now !== before).length;
  const fresh = pairs.map(([now]) => now).filter((now) => now !== null);
  return {
    filled: round(values.length / rows),
    empty: column.type === 'boolean' ? 0 : round(shareOf(values, isNothing)),
    top: round(topCount(counts) / values.length),
    ...(sorted.length === 0 ? {} : { numbers: { low: quantile(0.05), median: quantile(0.5), high: quantile(0.95) } }),
    ...(column.type === 'currency' ? { currencies: currenciesOf(counts, values.length) } : {}),
    ...(pairs.length === 0 ? {} : { changed: round(changed / pairs.length) }),
    sound: soundness(column, fresh.length < LEAST_COMMON ? values : fresh, pairs),
  };
}

/** The shares that the guard compares; without pairs nothing has been kept or lost. */
function soundness(column: Column, values: readonly string[], pairs: readonly Pair[]): Shares {
  if (values.length === 0) return {};
  const shares: Shares = column.type === 'boolean' ? {} : { nonzero: round(1 - shareOf(values, isNothing)) };
  if (isVaried(column)) shares.varied = round(1 - topCount(countsOf(values)) / values.length);
  const kept = pairs.flatMap((pair) => isKept(column, pair) ?? []);
  if (kept.length >= LEAST_COMMON) shares.kept = round(shareOf(kept, Boolean));
  return shares;
}

const isNumeric = ({ type }: Column): boolean => type === 'number' || type === 'integer';

/** Products may well share a date from one night to the next. */
const isVaried = ({ type }: Column): boolean => type !== 'date' && type !== 'datetime';

/** True for zero, and for a text without a character. */
const isNothing = (value: string): boolean => /^\s*(?:[-+]?0*\.?0*|\[\])\s*$/.test(value);

/** Whether a number has kept its magnitude, or a price its currency; null where there is nothing to compare. */
function isKept(column: Column, [now, before]: Pair): boolean | null {
  if (now === null || before === null) return null;
  if (column.type === 'currency') return now === before;
  if (!isNumeric(column)) return null;
  const factor = Math.abs(Number(now) / Number(before));
  return Number.isFinite(factor) && factor > 0 ? factor < SAME_WITHIN && factor > 1 / SAME_WITHIN : null;
}

function countsOf(values: readonly string[]): [value: string, count: number][] {
  const counts = new Map<string, number>();
  for (const value of values) counts.set(value, (counts.get(value) ?? 0) + 1);
  return [...counts].sort(([, a], [, b]) => b - a);
}

const topCount = ([top]: ReturnType<typeof countsOf>): number => top?.[1] ?? 0;

function currenciesOf(counts: ReturnType<typeof countsOf>, all: number): Record<string, number> {
  return Object.fromEntries(counts.slice(0, CURRENCIES).map(([code, count]) => [code, round(count / all)]));
}

function shareOf<T>(values: readonly T[], is: (value: T) => boolean): number {
  return values.length === 0 ? 0 : values.filter(is).length / values.length;
}

const round = (value: number): number => Number(value.toPrecision(DIGITS));

/** Why the values must not be published unchecked, and what could not be compared. */
export interface ValueVerdict {
  /** A clause for each field that holds the run. */
  holds: string[];
  /** Why nothing was compared; null when it was. */
  note: string | null;
}

/**
 * Compares a run with the rows of its products that stand, and with the bands of the last nights: the values of a field
 * hold the run when a share of sound ones has fallen below `minFill` of both. What an earlier night had as well is
 * usual.
 * @param earlier profiles with the same fingerprint, newest first
 */
export function judgeValues(
  sample: ValueSample,
  profile: ValueProfile,
  { earlier, minFill }: { earlier: readonly ValueProfile[]; minFill: number },
): ValueVerdict {
  if (earlier.length === 0) return { holds: [], note: 'values were not compared: no earlier run has this mapping' };
  if (profile.common < LEAST_COMMON) {
    const found = `${profile.common} of the sampled products were crawled before`;
    return { holds: [], note: `values were not compared: ${found}, and ${LEAST_COMMON} are needed` };
  }
  const holds: string[] = [];
  for (const [i, column] of sample.columns.entries()) {
    const sound = profile.fields[column.name]?.sound;
    const pairs = sample.rows.flatMap((row) => {
      const pair = pairOf(row, i);
      return pair === null ? [] : [{ id: row.id, pair }];
    });
    if (sound === undefined || pairs.filter(({ pair: [now] }) => now !== null).length < LEAST_COMMON) continue;
    const before = soundness(
      column,
      pairs.flatMap(({ pair }) => pair[1] ?? []),
      [],
    );
    for (const kind of ['nonzero', 'varied', 'kept'] as const) {
      const share = sound[kind];
      // Rows that stand were read by earlier runs: all of them have kept what they are.
      const stood = kind === 'kept' ? 1 : before[kind];
      if (share === undefined || stood === undefined) continue;
      const nights = earlier.flatMap((run) => run.fields[column.name]?.sound?.[kind] ?? []);
      const usual = Math.min(stood, lowestUsual(nights));
      if (share >= minFill * usual || usual - share < LEAST_FALL) continue;
      holds.push(clauseOf({ column, kind, share, stood, nights, pairs }));
      break;
    }
  }
  return { holds, note: null };
}

/** The values of a column now and before; null without a row that stands. */
const pairOf = ({ now, before }: SampledRow, column: number): Pair | null =>
  before === null ? null : [now[column] ?? null, before[column] ?? null];

function meaningOf(kind: Kind, { type }: Column): string {
  if (kind === 'nonzero') return 'zero or empty';
  if (kind === 'varied') return 'one and the same value';
  return type === 'currency' ? 'in another currency' : 'changed tenfold or more';
}

interface Found {
  column: Column;
  kind: Kind;
  share: number;
  stood: number;
  nights: readonly number[];
  pairs: readonly { id: string; pair: Pair }[];
}

/** `price: 100 % zero or empty (before: 0 %, 0 %, 0 %), for example A1: 19.9 became 0, …`. */
function clauseOf({ column, kind, share, stood, nights, pairs }: Found): string {
  const [top] = countsOf(pairs.flatMap(({ pair: [now] }) => now ?? []));
  const isExample = (now: string, before: string): boolean => {
    if (now === before) return false;
    if (kind === 'nonzero') return isNothing(now) && !isNothing(before);
    return kind === 'varied' ? now === top?.[0] : isKept(column, [now, before]) === false;
  };
  const examples = pairs
    .flatMap(({ id, pair: [now, before] }) =>
      now !== null && before !== null && isExample(now, before) ? [`${id}: ${shown(before)} became ${shown(now)}`] : [],
    )
    .slice(0, EXAMPLES);
  const earlier = (nights.length === 0 ? [stood] : nights.slice(0, SHOWN_NIGHTS)).map((one) => percent(1 - one));
  return `${column.name}: ${percent(1 - share)} ${meaningOf(kind, column)} (before: ${earlier.join(', ')}), for example ${examples.join(', ')}`;
}

const shown = (value: string): string => (value === '' ? '""' : value.slice(0, VALUE_CHARS));
