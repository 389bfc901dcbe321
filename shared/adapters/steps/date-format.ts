/**
 * Parses dates with Luxon's tokens. The local date and time are taken from the text as written: an offset is parsed and
 * dropped. Everything is computed in UTC, so that no hour falls into a daylight-saving gap.
 */
import { DateTime } from 'luxon';
import { firstLineOf } from '../../domain/errors.ts';

export interface DateReading {
  /** Luxon tokens; null for ISO 8601. */
  format: string | null;
  /** Language of month and weekday names; null for English. */
  locale: string | null;
}

const MAX_FORMAT_CHARS = 60;
const MAX_TEXT_CHARS = 100;

/** `2026-11-21`, or with the time `2026-11-21T09:30:00`; null when the text does not match. */
export function readDate(text: string, reading: DateReading, withTime: boolean): string | null {
  const date = parse(plain(text), reading);
  if (!date.isValid || date.year < 1 || date.year > 9999) return null;
  return date.toFormat(withTime ? "yyyy-MM-dd'T'HH:mm:ss" : 'yyyy-MM-dd');
}

function parse(text: string, { format, locale }: DateReading): DateTime {
  const options = { zone: 'utc', setZone: true, locale: locale ?? 'en-US' };
  return format === null ? DateTime.fromISO(text, options) : DateTime.fromFormat(text, format, options);
}

/** One line, plain spaces, ASCII digits: `２０２６年１月２日` is a date too. */
function plain(text: string): string {
  return text
    .slice(0, MAX_TEXT_CHARS * 4)
    .replace(/\s+/g, ' ')
    .replace(/[０-９]/g, (digit) => String.fromCharCode(digit.charCodeAt(0) - 0xfee0))
    .trim()
    .slice(0, MAX_TEXT_CHARS);
}

/** Differs from the current year, which Luxon fills in for a format without a year. */
const SAMPLE = DateTime.fromObject({ year: 2019, month: 12, day: 25, hour: 21, minute: 43 }, { zone: 'utc' });

/** The fault of a format or locale, on one line; null when both are usable. */
export function findDateFault({ format, locale }: DateReading): string | null {
  if (locale !== null && !isLocale(locale))
    return `the locale ${JSON.stringify(locale)} is not known; write one such as en, ja or de-AT`;
  if (format === null) return null;
  const named = `the date format ${JSON.stringify(format)}`;
  if (format.length > MAX_FORMAT_CHARS) return `${named} is longer than ${MAX_FORMAT_CHARS} characters`;
  const unknown = tokensOf(format).find((token) => !TOKENS.has(token));
  if (unknown !== undefined)
    return `${named} has ${JSON.stringify(unknown)}, which is no part of a date: write tokens such as yyyy-MM-dd HH:mm, and words between 'single quotes'`;
  const twice = repeatedToken(format);
  if (twice !== null) return `${named} names the same part of the date twice (${twice})`;
  try {
    const written = SAMPLE.setLocale(locale ?? 'en-US').toFormat(format);
    const read = parse(plain(written), { format, locale });
    if (!read.isValid)
      return `${named} cannot be read back: ${read.invalidExplanation ?? 'it has no token such as yyyy'}`;
    if (read.year !== SAMPLE.year) return `${named} has no year; dates without one cannot be stored`;
    return null;
  } catch (error) {
    return `${named} cannot be used: ${firstLineOf(error)}`;
  }
}

/**
 * https://moment.github.io/luxon/#/parsing?id=table-of-tokens, without the locale-dependent forms of a whole date.
 * Luxon takes any other letters for literal text, so `YYYY-MM-DD` would silently match nothing.
 */
const TOKENS = new Set(
  (
    'y yy yyyy yyyyy yyyyyy L LL LLL LLLL M MM MMM MMMM d dd o ooo E EEE EEEE c ccc cccc G GG GGGGG ' +
    'H HH h hh m mm s ss S SSS u uu uuu a Z ZZ ZZZ z W WW kk kkkk q qq'
  ).split(' '),
);

/** Runs of one letter outside quotes. */
function tokensOf(format: string): string[] {
  return [...format.replace(/'[^']*'/g, ' ').matchAll(/([a-zA-Z])\1*/g)].map(([token]) => token);
}

function isLocale(locale: string): boolean {
  try {
    return Intl.DateTimeFormat.supportedLocalesOf(locale).length > 0;
  } catch {
    return false;
  }
}

/**
 * Each token becomes a variable-length group in Luxon's regular expression; allowing each part only once keeps the
 * number of ways to split a text small.
 */
function repeatedToken(format: string): string | null {
  const seen = new Set<string>();
  for (const token of tokensOf(format)) {
    const part = token[0]!;
    if (seen.has(part)) return token;
    seen.add(part);
  }
  return null;
}
