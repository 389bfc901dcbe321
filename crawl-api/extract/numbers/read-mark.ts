/** Determines which mark in a number is the decimal one, by the form alone and by the currency next to it. */
import type { AmountStyle, DecimalMark } from '../../../shared/domain/currencies.ts';
import { DEFINITE } from './plain-text.ts';

/** `mark`: the decimal mark that the form proves; null if it proves none. */
interface SureReading {
  kind: 'sure';
  value: number;
  mark: DecimalMark | null;
}

/** Both readings are possible: `1.234` is 1.234 or 1234. */
interface OpenReading {
  kind: 'open';
  point: number;
  comma: number;
}

/** `none`: these digits and marks are no number, such as a date. */
export type Reading = SureReading | OpenReading | { kind: 'none' };

export interface MarkContext {
  /** The decimal mark, when the mapping specifies it. */
  decimal: DecimalMark | null;
  /** Notation of the currency next to it; null without a currency, and for prices by measure. */
  style: AmountStyle | null;
  /** `,-` or `.–` follows, as in `1.899,-`: the digits before it are whole. */
  isClosed: boolean;
}

const NONE = { kind: 'none' } as const;

/** `digits`: digits with marks, and spaces or apostrophes only as thousands separators. */
export function readMarks(digits: string, { decimal, style, isClosed }: MarkContext): Reading {
  const text = digits.replace(/[ ']/g, '');
  if (text.includes(DEFINITE)) return readAt(text, DEFINITE, null);
  const dots = count(text, '.');
  const commas = count(text, ',');
  if (dots + commas === 0) return sure(text, null);
  if (decimal !== null) return readAt(text, decimal, decimal);
  if (dots > 0 && commas > 0) {
    const last = text.lastIndexOf('.') > text.lastIndexOf(',') ? '.' : ',';
    return readAt(text, last, last);
  }
  const mark = dots > 0 ? '.' : ',';
  if (dots + commas > 1 || isClosed) return readAt(text, other(mark), other(mark));
  const [whole = '', fraction = ''] = text.split(mark);
  // No group has more than three digits, begins with a zero or follows groups with another separator.
  const isGroup = fraction.length === 3 && /^[1-9]\d{0,2}$/.test(whole) && text === digits;
  if (!isGroup) return readAt(text, mark, mark);
  switch (byStyle(mark, style)) {
    case 'decimal':
      return readAt(text, mark, mark);
    case 'thousands':
      return readAt(text, other(mark), other(mark));
    case 'open': {
      const [small, large] = [Number(`${whole}.${fraction}`), Number(whole + fraction)];
      return mark === '.' ? { kind: 'open', point: small, comma: large } : { kind: 'open', point: large, comma: small };
    }
  }
}

/** The meaning of one mark before three digits in an amount of this style. */
function byStyle(mark: DecimalMark, style: AmountStyle | null): 'decimal' | 'thousands' | 'open' {
  switch (style) {
    case 'whole':
      return 'thousands';
    case 'three':
      return mark === '.' ? 'decimal' : 'thousands';
    // The currency's own decimal mark stays open: fuel prices and exchange rates have three decimals.
    case 'point':
      return mark === ',' ? 'thousands' : 'open';
    case 'comma':
      return mark === '.' ? 'thousands' : 'open';
    case 'either':
    case null:
      return 'open';
  }
}

/** The number if `decimal` is its decimal mark and all others separate thousands; none when that is impossible. */
function readAt(text: string, decimal: string, shown: DecimalMark | null): Reading {
  const parts = text.split(decimal);
  if (parts.length > 2) return NONE;
  const [whole = '', fraction] = parts;
  const groups = whole.split(/[.,]/);
  if (groups.length > 1 && !areGroups(groups)) return NONE;
  if (fraction !== undefined && !/^\d*$/.test(fraction)) return NONE;
  // Only one kind of mark separates thousands.
  if (whole.includes('.') && whole.includes(',')) return NONE;
  return sure(`${groups.join('') || '0'}.${fraction ?? '0'}`, shown);
}

/** The last group has three digits and the others two or three: 1,234,567 and the Indian 12,34,567. */
function areGroups(groups: readonly string[]): boolean {
  return groups.every((group, i) =>
    (i === 0 ? /^\d{1,3}$/ : i === groups.length - 1 ? /^\d{3}$/ : /^\d{2,3}$/).test(group),
  );
}

function sure(plain: string, mark: DecimalMark | null): Reading {
  const value = Number(plain);
  return Number.isFinite(value) ? { kind: 'sure', value, mark } : NONE;
}

const other = (mark: DecimalMark): DecimalMark => (mark === '.' ? ',' : '.');

function count(text: string, mark: string): number {
  return text.split(mark).length - 1;
}
