/** Finds the numbers in a text, each with its sign, the currency next to it, and further clues around it. */
import {
  type Currency,
  currencyBefore,
  currencyBehind,
  currencyOf,
  type DecimalMark,
} from '../../../shared/domain/currencies.ts';
import { isDoubtful } from './doubts.ts';
import { DEFINITE } from './plain-text.ts';
import { readCents, readZero } from './read-cents.ts';
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

// Thousands by spaces or apostrophes, else digits with marks; a leading mark only where no letter or digit precedes it,
// nor the slash of `S/.`.
const NUMBER = new RegExp(
  String.raw`\d{1,3}(?:[ ']\d{3})+(?!\d)(?:[.,${DEFINITE}]\d+)?|(?<![\p{L}\d.,/])[.,${DEFINITE}]\d+|\d+(?:[.,${DEFINITE}]\d+)*`,
  'gu',
);
const MEASURE = /^[ ]?(?:\/|per\b|pro\b|je\b)/i;

export interface AmountOptions {
  decimal: DecimalMark | null;
  /** The currency of amounts without one next to them. */
  own: string | null;
  isPrice: boolean;
}

export function findAmounts(text: string, options: AmountOptions): Amount[] {
  const amounts: Amount[] = [];
  NUMBER.lastIndex = 0;
  for (let match = NUMBER.exec(text); match !== null && amounts.length < 50; match = NUMBER.exec(text)) {
    const amount = amountAt(text, match[0], match.index, options);
    amounts.push(amount);
    NUMBER.lastIndex = amount.end;
  }
  joinRanges(text, amounts);
  return amounts.filter(({ start }, i) => !isQuantity(text, amounts[i - 1], start));
}

/** The 100 of `1,25 €/100 g`. */
const isQuantity = (text: string, before: Amount | undefined, start: number): boolean =>
  before?.isMeasured === true && /(?:\/|per|pro|je) ?$/i.test(text.slice(before.end, start));

function amountAt(text: string, digits: string, start: number, { decimal, own, isPrice }: AmountOptions): Amount {
  const before = text.slice(0, start);
  const ahead = currencyBefore(before) ?? currencyBefore(before.replace(/[-−–—]+$/, ''));
  const written = readCents(text.slice(start + digits.length), digits, { before, ahead, own });
  const end = start + digits.length + written.chars;
  const behind = text.slice(end);
  const beyond = behind.slice(written.currency?.chars ?? 0);
  const currency = pick(ahead?.currency ?? null, written.currency?.currency ?? null, beyond);
  const isMeasured = currency !== null && MEASURE.test(beyond) && !isSecondPrice(beyond);
  const style = isMeasured ? null : (currency ?? (own === null ? null : currencyOf(own)))?.style;
  const zero = readZero(before, digits, currency !== null);
  const isMinus = zero !== 'zero' && isNegative(text, start, ahead?.chars ?? 0);
  const place = { digits, before, behind, beyond, outside: before.slice(0, before.length - (ahead?.chars ?? 0)) };
  return {
    reading: readMarks(written.number, { decimal, style: style ?? null, isClosed: written.isClosed }),
    isNegative: isMinus,
    currency,
    isMeasured,
    isInBrackets: before.lastIndexOf('(') > before.lastIndexOf(')'),
    isPercent: /^ ?[%٪]/.test(behind),
    isUnclear:
      written.isUnclear ||
      zero === 'unclear' ||
      isDoubtful(place, { ahead: ahead !== null, behind: written.currency !== null, isNegative: isMinus, isPrice }),
    start,
    end,
  };
}

/** True where the slash separates two prices, as in `14,73 лв. / 7,53 €`. */
function isSecondPrice(rest: string): boolean {
  const next = /^ ?\/ ?(.*)$/u.exec(rest)?.[1] ?? '';
  const number = /^\d[\d.,' ]*/.exec(next);
  if (number) return currencyBehind(next.slice(number[0].trimEnd().length)) !== null;
  const ahead = currencyBehind(next);
  return ahead !== null && /^[.:]?\s?\d/.test(next.slice(ahead.chars));
}

/**
 * The more specific of the two: of `$ 5 USD` the code. A code beside a symbol of other currencies is a word: `TOP 20
 * $`; but in `EUR 5 $6` the symbol belongs to the next amount.
 */
function pick(ahead: Currency | null, behind: Currency | null, beyond: string): Currency | null {
  if (ahead === null || behind === null) return ahead ?? behind;
  if (ahead.code === null) return behind.code !== null && !ahead.among.includes(behind.code) ? ahead : behind;
  return behind.code === null && !behind.among.includes(ahead.code) && !/^ ?\d/.test(beyond) ? behind : ahead;
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

/** Gives both amounts of a range its currency, as in `10 - 20 €` and `10 bis 20 €`. */
function joinRanges(text: string, amounts: readonly Amount[]): void {
  for (const [i, second] of amounts.entries()) {
    const first = amounts[i - 1];
    if (!first || first.isPercent || second.isPercent) continue;
    if (!RANGE.test(text.slice(first.end, second.start))) continue;
    first.currency ??= second.currency;
    second.currency ??= first.currency;
  }
}
