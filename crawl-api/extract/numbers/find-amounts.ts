/** Finds the numbers in a text, each with its sign, the currency next to it, and further clues around it. */
import {
  type Currency,
  currencyBefore,
  currencyBehind,
  currencyOf,
  type DecimalMark,
} from '../../../shared/domain/currencies.ts';
import { BORDER, BREAK } from '../text-breaks.ts';
import { DEFINITE } from './plain-text.ts';
import { type Reading, readMarks } from './read-mark.ts';

export interface Amount {
  reading: Reading;
  isNegative: boolean;
  currency: Currency | null;
  /** It is a price per weight or measure: `1,25 €/100 g`. */
  isMeasured: boolean;
  isInBrackets: boolean;
  isPercent: boolean;
  /**
   * The digits are not the value: `1.5M`, `3 Mio`, `2万`, cents (`75¢`), or pieces that may be two numbers (`118, 99`).
   */
  isUnclear: boolean;
  /** End of the number with its clues, and start of the number. */
  start: number;
  end: number;
}

// Thousands by spaces or apostrophes, else digits with marks; a leading mark only where no letter or digit precedes it.
const NUMBER = new RegExp(
  String.raw`\d{1,3}(?:[ ']\d{3})+(?!\d)(?:[.,${DEFINITE}]\d+)?|(?<![\p{L}\d.,])[.,${DEFINITE}]\d+|\d+(?:[.,${DEFINITE}]\d+)*`,
  'gu',
);
const CLOSING = /^ ?[.,:] ?[-–—]+(?!\d)/;
/** Next to a currency `118, 99` is one number; without a mark (`119 95`) that is likely, but not certain. */
const SPLIT_CENTS = new RegExp(String.raw`^(?: ?([.,]) ?|[ ${BREAK}])(\d{2})(?!\d|[.,%]\d)`);
/** The border of an element at one end of a number: it may be a part of one. */
const TORN = new RegExp(String.raw`^[.,]?${BORDER}`);
/** `12€50`: the symbol in place of the decimal mark. */
const CENTS_BEHIND_EURO = /^€(\d{2})(?![\d.,])/;
const MEASURE = /^[ ]?(?:\/|per\b|pro\b|je\b)/i;
const LARGE =
  /^(?:\^|[kmb](?![\p{L}\d])| ?(?:thousand|million|billion|lakh|lac|crore)s?(?!\p{L})| ?(?:tsd|tys|tis|mil|mio|mill|mrd|mld|mln|bn|cr|millionen|milliarden|millions|millones|milhões|milioni|тыс|хил|млн|млрд|ribu|rb|juta|jt|nghìn|ngàn|triệu|tr|tỷ)(?!\p{L})| ?[万萬億亿千천만억])/iu;
/** These multiply next to a currency (`Rp 169 k`, `Rs 1.5L`); elsewhere they may be a size or a unit. */
const LARGE_PRICE = /^ ?[kKMBL](?![\p{L}\d])/u;
const CENTS = /^ ?[¢￠]|^p(?!\p{L})/u;

/** `own`: the currency of amounts without one next to them. */
export function findAmounts(text: string, decimal: DecimalMark | null, own: string | null): Amount[] {
  const amounts: Amount[] = [];
  let from = 0;
  for (let match; ; from = amounts.at(-1)!.end) {
    NUMBER.lastIndex = from;
    match = NUMBER.exec(text);
    if (match === null || amounts.length >= 50) break;
    amounts.push(amountAt(text, match[0], match.index, { decimal, own }));
  }
  joinRanges(text, amounts);
  return amounts.filter(({ start }, i) => !isQuantity(text, amounts[i - 1], start));
}

/** The 100 of `1,25 €/100 g`. */
const isQuantity = (text: string, before: Amount | undefined, start: number): boolean =>
  before?.isMeasured === true && /(?:\/|per|pro|je) ?$/i.test(text.slice(before.end, start));

function amountAt(
  text: string,
  digits: string,
  start: number,
  { decimal, own }: { decimal: DecimalMark | null; own: string | null },
): Amount {
  const before = text.slice(0, start);
  let end = start + digits.length;
  let number = digits;
  const unsigned = before.replace(/[-−–]$/, '');
  const ahead = currencyBefore(before) ?? currencyBefore(unsigned);
  const isClosed = CLOSING.test(text.slice(end));
  if (isClosed) end += CLOSING.exec(text.slice(end))![0].length;
  let isUnclear = before.endsWith(BORDER) || TORN.test(text.slice(end));
  const split = isClosed ? null : SPLIT_CENTS.exec(text.slice(end));
  const euro = CENTS_BEHIND_EURO.exec(text.slice(end));
  let behind = currencyBehind(text.slice(end));
  if (euro && /^\d+$/.test(number)) {
    number += DEFINITE + euro[1]!;
    end += euro[0].length;
  } else if (split && behind === null && mayHaveCents(number, split)) {
    const after = currencyBehind(text.slice(end + split[0].length));
    const isPriced = ahead !== null || after !== null;
    if (isPriced && split[1] !== undefined) number += DEFINITE + split[2]!;
    else isUnclear ||= isPriced || split[1] !== undefined;
    if (isPriced || isUnclear) {
      end += split[0].length;
      behind = after;
    }
  } else if (split && ahead !== null && /[.,]\d{3}$/.test(number)) {
    // `€ 1.234 .50`: the same mark cannot be both.
    isUnclear = true;
  }
  const currency = pick(ahead?.currency ?? null, behind?.currency ?? null);
  const rest = text.slice(end + (euro ? 0 : (behind?.chars ?? 0)));
  const isMeasured = MEASURE.test(rest) && !isSecondPrice(rest);
  const style = isMeasured ? null : (currency ?? (own === null ? null : currencyOf(own)))?.style;
  return {
    reading: readMarks(number, { decimal, style: style ?? null, isClosed }),
    isNegative: isNegative(text, start, ahead?.chars ?? 0),
    currency,
    isMeasured: isMeasured && currency !== null,
    isInBrackets: before.lastIndexOf('(') > before.lastIndexOf(')'),
    isPercent: /^ ?[%٪]/.test(text.slice(end)),
    isUnclear:
      isUnclear ||
      LARGE.test(text.slice(end)) ||
      (ahead !== null && behind === null && LARGE_PRICE.test(text.slice(end))) ||
      (behind === null && ahead === null && CENTS.test(text.slice(end))),
    start,
    end,
  };
}

function mayHaveCents(number: string, [gap, mark]: RegExpExecArray): boolean {
  if (mark !== undefined) return !number.includes(mark);
  return gap[0] !== BREAK || !/[.,]\d{1,2}$/.test(number);
}

/** In `14,73 лв. / 7,53 €` the slash separates two prices. */
function isSecondPrice(rest: string): boolean {
  const next = /^ ?\/ ?(.*)$/u.exec(rest)?.[1] ?? '';
  const number = /^\d[\d.,' ]*/.exec(next);
  if (number) return currencyBehind(next.slice(number[0].trimEnd().length)) !== null;
  const ahead = currencyBehind(next);
  return ahead !== null && /^[.:]?\s?\d/.test(next.slice(ahead.chars));
}

/** The more specific of the two: of `$ 5 USD` the code. */
function pick(ahead: Currency | null, behind: Currency | null): Currency | null {
  if (ahead === null || behind === null) return ahead ?? behind;
  return ahead.code === null ? behind : ahead;
}

/**
 * A minus sign touches the number or its currency, and no letter, digit or price precedes it. A dash followed by a
 * space (`- $44.99`) separates: pages use it for ranges and between name and price.
 */
function isNegative(text: string, start: number, currencyChars: number): boolean {
  const isSign = (at: number): boolean => /[-−–]/.test(text[at] ?? '') && !/[\p{L}\d.,)€$£%]/u.test(text[at - 1] ?? '');
  if (isSign(start - 1)) return true;
  // `$-5` and `-$5`.
  return currencyChars > 0 && (/[-−–]/.test(text[start - 1] ?? '') || isSign(start - 1 - currencyChars));
}

const RANGE =
  /^(?:[^\p{L}\d]{0,3}[-–—−~][^\p{L}\d]{0,3}|[^\p{L}\d]{0,3} (?:to|till|bis|à|tot|til|do|до) [^\p{L}\d]{0,3})$/iu;

/** In `10 - 20 €` and `10 bis 20 €` both amounts have that currency. */
function joinRanges(text: string, amounts: readonly Amount[]): void {
  for (const [i, second] of amounts.entries()) {
    const first = amounts[i - 1];
    if (!first || first.isPercent || second.isPercent) continue;
    if (!RANGE.test(text.slice(first.end, second.start))) continue;
    first.currency ??= second.currency;
    second.currency ??= first.currency;
  }
}
