/** How pages write the cents of an amount apart from the digits before them, and an amount without cents or digits. */
import { currencyBehind, type FoundCurrency } from '../../../shared/domain/currencies.ts';
import { BREAK } from '../text-breaks.ts';
import { DEFINITE } from './plain-text.ts';

/** `1.899,-`: the digits before it are whole. */
const CLOSING = /^ ?[.,:] ?[-–—]+(?!\d)/;
/** `Rs. 1,299/-` */
const SLASH_CLOSING = /^ ?\/ ?[-–—=]+(?!\d)/;
/** Next to a currency `118, 99` is one number; without a mark (`119 95`) that is likely, but not certain. */
const SPLIT_CENTS = new RegExp(String.raw`^(?: ?([.,]) ?|[ ${BREAK}])(\d{2})(?!\d|[.,%]\d)`);
const HAS_CENTS = new RegExp(String.raw`[.,${DEFINITE}]\d{1,2}$`);
/** `12€50`: the symbol in place of the decimal mark. */
const CENTS_BEHIND_EURO = /^€(\d{2})(?![\d.,])/;
/** `12:90 kr`; next to another currency it may be a time. */
const COLON_CENTS = /^:(\d{2})(?!\d|[:.,]\d)/;
const COLON_CURRENCIES = new Set<string | null>(['SEK', 'NOK', 'DKK']);
const CROWNS_BEFORE = /(?<!\p{L})kr[.:]? ?$/iu;
const CROWNS_BEHIND = /^ ?kr(?!\p{L})/iu;

export interface WrittenAmount {
  /** The digits with their cents. */
  number: string;
  /** How many characters behind the digits belong to the number. */
  chars: number;
  /** The currency behind it; `chars` is 0 where it is among those. */
  currency: FoundCurrency | null;
  /** The digits are whole, whatever their marks. */
  isClosed: boolean;
  isUnclear: boolean;
}

interface Before {
  before: string;
  /** The currency before the digits. */
  ahead: FoundCurrency | null;
  own: string | null;
}

export function readCents(after: string, digits: string, { before, ahead, own }: Before): WrittenAmount {
  const currency = currencyBehind(after);
  const plain = { number: digits, chars: 0, currency, isClosed: false, isUnclear: false };
  const closing = CLOSING.exec(after) ?? SLASH_CLOSING.exec(after);
  if (closing) {
    const chars = closing[0].length;
    const isClosed = !closing[0].includes('/') || !/[.,]\d{2}$/.test(digits);
    return { ...plain, chars, currency: currencyBehind(after.slice(chars)), isClosed };
  }
  const euro = CENTS_BEHIND_EURO.exec(after);
  if (euro && currency && /^\d+$/.test(digits) && currencyBehind(after.slice(euro[0].length)) === null) {
    const number = `${digits}${DEFINITE}${euro[1]}`;
    return { ...plain, number, chars: euro[0].length, currency: { ...currency, chars: 0 } };
  }
  const colon = COLON_CENTS.exec(after);
  if (colon && /^[\d ]+$/.test(digits)) {
    const rest = after.slice(colon[0].length);
    const behind = currencyBehind(rest);
    const code = (behind ?? ahead)?.currency.code ?? (behind === null && ahead === null ? own : null);
    const isCents = COLON_CURRENCIES.has(code) || CROWNS_BEFORE.test(before) || CROWNS_BEHIND.test(rest);
    if (isCents || behind !== null || ahead !== null) {
      const number = isCents ? `${digits}${DEFINITE}${colon[1]}` : digits;
      return { ...plain, number, chars: colon[0].length, currency: behind, isUnclear: !isCents };
    }
  }
  const split = SPLIT_CENTS.exec(after);
  if (!split || currency !== null) return plain;
  const [gap, mark, cents] = split;
  if (mark === undefined ? HAS_CENTS.test(digits) : digits.includes(mark))
    // `€ 1.234 .50`: the same mark cannot be both.
    return { ...plain, isUnclear: mark !== undefined && ahead !== null && /[.,]\d{3}$/.test(digits) };
  const behind = currencyBehind(after.slice(gap.length));
  if (behind === null && ahead === null && mark === undefined) return plain;
  const isSure = mark !== undefined && (behind !== null || ahead !== null);
  return {
    ...plain,
    number: isSure ? `${digits}${DEFINITE}${cents}` : digits,
    chars: gap.length,
    currency: behind,
    isUnclear: !isSure,
  };
}

/**
 * Whether the dash before `,99` stands for a zero (`-,99 €`) and not for a minus sign; `unclear` where it may be
 * either.
 */
export function readZero(before: string, digits: string, isPriced: boolean): 'zero' | 'unclear' | null {
  if (!/^[.,]\d{2}$/.test(digits) || !/[-–—]$/.test(before)) return null;
  if (/[–—]$|--$/.test(before) || (digits.startsWith(',') && isPriced)) return 'zero';
  return digits.startsWith(',') || isPriced ? 'unclear' : null;
}
