/**
 * Parses dates with Luxon's tokens. The local date and time are taken from the text as written: an offset is parsed and
 * dropped. Everything is computed in UTC, so that no hour falls into a daylight-saving gap.
 */
import { DateTime } from 'luxon';
import { toAsciiDigits } from '../../domain/digits.ts';
import { firstLineOf } from '../../domain/errors.ts';
import { withMonthNumbers } from './month-names.ts';

export interface DateReading {
  /** Luxon tokens; null for ISO 8601. */
  format: string | null;
  /** Language of month and weekday names; null for English. */
  locale: string | null;
}

const MAX_FORMAT_CHARS = 60;
const MAX_TEXT_CHARS = 100;

/**
 * `2026-11-21`, or with the time `2026-11-21T09:30:00`; null when the text does not match, or its year is not one of
 * the Gregorian calendar.
 */
export function readDate(text: string, reading: DateReading, withTime: boolean): string | null {
  const date = toGregorian(parse(plain(text), reading), reading);
  if (!date.isValid || !isGregorianYear(date.year)) return null;
  // Its own locale may have other digits.
  return date.setLocale('en-US').toFormat(withTime ? "yyyy-MM-dd'T'HH:mm:ss" : 'yyyy-MM-dd');
}

function parse(text: string, { format, locale }: DateReading): DateTime {
  if (format === null) return DateTime.fromISO(toIso(text), OPTIONS);
  const options = { ...OPTIONS, locale: locale ?? 'en-US' };
  const date = DateTime.fromFormat(text, format, options);
  if (date.isValid || !MONTH_NAME.test(withoutQuotes(format))) return date;
  const numeric = format.replace(/('[^']*')|[ML]{3,4}/g, (_, quoted?: string) => quoted ?? 'M');
  for (const numbered of withMonthNumbers(text, options.locale)) {
    const other = DateTime.fromFormat(numbered, numeric, options);
    if (other.isValid) return other;
  }
  return date;
}

const OPTIONS = { zone: 'utc', setZone: true } as const;
const MONTH_NAME = /MMM|LLL/;

const DAY = String.raw`(?:\d{4}|\+\d{6})-\d\d-\d\d|\d{8}|\d{4}-?W\d\d-?\d|\d{4}-\d{3}`;
const TIME = String.raw`\d\d(?::?\d\d(?::?\d\d(?:[.,]\d+)?)?)?`;
const OFFSET = String.raw`Z|UTC|GMT|[+-]\d\d(?::?\d\d)?`;
/** The name of a time zone may follow the offset: `[Europe/Berlin]`. */
const ISO = new RegExp(String.raw`^(${DAY})(?:[T ](${TIME}) ?(${OFFSET})?(?:\[[\w/+-]+\])?)?$`, 'i');

/** ISO 8601 that names a day, also with spaces around the time as databases write it; '' for anything else. */
function toIso(text: string): string {
  const [, day, time, offset = ''] = ISO.exec(text) ?? [];
  if (day === undefined) return '';
  return time === undefined ? day : `${day}T${time}${offset.replace(/UTC|GMT/i, 'Z')}`;
}

/**
 * Years of other calendars would pass as Gregorian ones: Buddhist ones are 543 ahead, those of Islamic calendars behind
 * 1583, when the Gregorian calendar began. Shops write 9999 for a date without an end.
 */
function isGregorianYear(year: number): boolean {
  return (year >= 1583 && year < FIRST_BUDDHIST_YEAR) || year === 9999;
}

const FIRST_BUDDHIST_YEAR = 2400;

/**
 * The Gregorian date of one read in a locale with another calendar: a Buddhist year is converted, and two digits of a
 * year may belong to either.
 */
function toGregorian(date: DateTime, { format, locale }: DateReading): DateTime {
  if (format === null || locale === null || !date.isValid) return date;
  const calendar = calendarOf(locale);
  if (calendar === 'gregory') return date;
  if (tokensOf(format).includes('yy')) return DateTime.invalid('unknown year');
  if (calendar !== 'buddhist' || date.year < FIRST_BUDDHIST_YEAR) return date;
  return DateTime.fromObject({ ...date.toObject(), year: date.year - 543 }, { zone: date.zone });
}

const calendars = new Map<string, string>();

function calendarOf(locale: string): string {
  let calendar = calendars.get(locale);
  if (calendar === undefined)
    calendars.set(locale, (calendar = new Intl.DateTimeFormat(locale).resolvedOptions().calendar));
  return calendar;
}

/** One line, plain spaces, ASCII digits: `２０２６年１月２日` is a date too. */
function plain(text: string): string {
  return toAsciiDigits(text.slice(0, MAX_TEXT_CHARS * 4))
    .replace(/\s+/g, ' ')
    .trim()
    .slice(0, MAX_TEXT_CHARS);
}

/** Differs from the current year, which Luxon fills in for a format without a year. */
const SAMPLE = { year: 2019, month: 12, day: 25, hour: 21, minute: 43 };

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
    const written = DateTime.fromObject(SAMPLE, { zone: 'utc', locale: locale ?? 'en-US' }).toFormat(format);
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

function withoutQuotes(format: string): string {
  return format.replace(/'[^']*'/g, ' ');
}

/** Runs of one letter outside quotes. */
function tokensOf(format: string): string[] {
  return [...withoutQuotes(format).matchAll(/([a-zA-Z])\1*/g)].map(([token]) => token);
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
    const part = token.charAt(0);
    if (seen.has(part)) return token;
    seen.add(part);
  }
  return null;
}
