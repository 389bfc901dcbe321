/**
 * The number in a text, by the rules in docs/mapping.md ("Numbers and prices"). Nothing is guessed: with two possible
 * readings the result is ambiguous, and the main server decides by the whole column.
 */
import { type DecimalMark, isCurrencyCode } from '../../../shared/domain/currencies.ts';
import { MAX_AMBIGUOUS_CHARS, type AmbiguousNumber } from '../../../shared/domain/ambiguous-number.ts';
import { replaceBreaks } from '../text-breaks.ts';
import { type Amount, findAmounts } from './find-amounts.ts';
import { toPlainText } from './plain-text.ts';

export interface NumberOptions {
  /** The decimal mark; null: decide by currency and form. */
  decimal: DecimalMark | null;
  /** The text is from an attribute, JSON or JSON-LD: a plain number there has the point as decimal mark. */
  isMachine: boolean;
  /** A price: of several numbers the one next to a currency; `currency` for amounts without one. */
  price: { currency: string | null } | null;
}

export interface NumberReading {
  /** The number; null when there is none. */
  value: number | AmbiguousNumber | null;
  /** The decimal mark that the text proves: evidence for the other values of its column. */
  mark: DecimalMark | null;
}

const NO_NUMBER: NumberReading = { value: null, mark: null };

/** Reads the number in a text. Never throws, for any text. */
export function readNumber(text: string, options: NumberOptions): NumberReading {
  if (
    options.isMachine &&
    options.decimal === null &&
    /^\s*[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d{1,3})?\s*$/.test(text)
  ) {
    const value = Number(text);
    return Number.isFinite(value) ? { value: value === 0 ? 0 : value, mark: null } : NO_NUMBER;
  }
  const plain = toPlainText(text);
  const amount = choose(plain, options);
  if (amount === null) return NO_NUMBER;
  const ambiguous = (point: number | null, comma: number | null): NumberReading => ({
    value: { text: replaceBreaks(text, ' ').trim().slice(0, MAX_AMBIGUOUS_CHARS).toWellFormed(), point, comma },
    mark: null,
  });
  if (amount === 'several' || amount.isUnclear) return ambiguous(null, null);
  const signed = (value: number): number => (amount.isNegative && value !== 0 ? -value : value);
  switch (amount.reading.kind) {
    case 'sure':
      return { value: signed(amount.reading.value), mark: amount.reading.mark };
    case 'open':
      return ambiguous(signed(amount.reading.point), signed(amount.reading.comma));
    case 'none':
      return options.decimal === null ? NO_NUMBER : ambiguous(null, null);
  }
}

/** The price's ISO 4217 code; `fallback` if its symbol is missing or shared. Null without a price. */
export function readCurrency(text: string, fallback: string | null): string | null {
  const plain = toPlainText(text);
  const bare = plain.trim().toUpperCase();
  if (isCurrencyCode(bare)) return bare;
  const amount = choose(plain, { decimal: null, isMachine: false, price: { currency: fallback } });
  if (amount === null || amount === 'several') return null;
  return amount.currency?.code ?? fallback;
}

/** The number to use; `several` when prices differ and nothing shows which one. */
function choose(text: string, { decimal, price }: NumberOptions): Amount | 'several' | null {
  const all = findAmounts(text, { decimal, own: price?.currency ?? null, isPrice: price !== null });
  // `(12.99)` is how accountants write a negative amount.
  if (price && /^ ?\([^()]*\) ?$/.test(text) && all.length === 1 && all[0]?.isMeasured !== true) return 'several';
  const amounts = withoutAsides(all, price !== null);
  if (amounts === 'several') return amounts;
  const [first] = amounts;
  if (first === undefined) return null;
  const priced = amounts.filter(isPriced);
  // For `number`, a number before the prices counts on its own: `4 for $10`.
  if (!price) return first.currency !== null && differ(priced) ? 'several' : first;
  const candidates = priced.length > 0 ? priced : amounts.filter((amount) => !amount.isPercent);
  return differ(candidates) ? 'several' : (candidates[0] ?? null);
}

const isPriced = ({ currency }: Amount): boolean => currency !== null;

/**
 * Prices by measure behind another price and prices in brackets do not count. Next to plain numbers (`$10 per month for
 * 24 months`) nothing shows which one counts, except for a price by measure in brackets.
 */
function withoutAsides(all: readonly Amount[], isPrice: boolean): readonly Amount[] | 'several' {
  const main = all.filter(({ isMeasured, isInBrackets }) => !isMeasured && !isInBrackets);
  const first = main.find(isPriced);
  // `4,99 €/kg statt 5,99 €` may be two prices by measure.
  if (first) {
    const earlier = all.filter((one) => one.isMeasured && !one.isInBrackets && one.start < first.start);
    return differ([...earlier, first]) ? 'several' : main;
  }
  const rivals = all.filter(
    (one) => isPriced(one) && !(one.isMeasured && one.isInBrackets) && (isPrice || one.isMeasured),
  );
  if (main.every(({ isPercent }) => isPercent)) {
    if (isPrice && rivals.length > 0) return rivals;
    return rivals.length > 0 || main.length === 0 ? all.filter((one) => !main.includes(one)) : main;
  }
  return rivals.length > 0 ? 'several' : main;
}

function differ(amounts: readonly Amount[]): boolean {
  const distinct = new Set(
    amounts.map(({ reading }) => JSON.stringify(reading.kind === 'sure' ? reading.value : reading)),
  );
  return distinct.size > 1;
}
