/**
 * Normalises a text so that numbers look the same in every script and locale: digits of every script as 0-9, one kind
 * of space, no direction marks. DEFINITE is a decimal mark without any doubt: the Arabic one, the raised dot, or cents
 * set as superscript. Of the breaks of an element's text (text-breaks.ts) a BREAK remains between lines that both have
 * digits, and a BORDER where the pieces may be one number.
 */
import { toAsciiDigits } from '../../../shared/domain/digits.ts';
import { BORDER, BREAK, hasBreaks, RAISED } from '../text-breaks.ts';

export const DEFINITE = '٫';
/** Maximum characters; longer texts are descriptions. */
const MAX_CHARS = 1_000;
const HALVES: Record<string, string> = { '½': '5', '¼': '25', '¾': '75' };

export function toPlainText(text: string): string {
  const plain = toAsciiDigits(
    text
      .slice(0, MAX_CHARS)
      .replace(/[\u00ad\u061c\u200b-\u200f\u202a-\u202e\u2060\u2066-\u2069\ufeff]/g, '')
      .replace(/(\d)([¹²³⁰⁴-⁹]{2})(?![¹²³⁰⁴-⁹])/g, (_, digit: string, cents: string) => digit + DEFINITE + cents)
      // `m²`, `CO₂` and the footnote of `19,99 €¹` are no numbers. After a whole number it may be a power (`10³`) or a
      // footnote.
      .replace(/(?<=[\p{L}\p{Sc}*)])[¹²³⁰⁴-⁹₀-₉]+/gu, '')
      .replace(/(?<=\d)(?<![.,]\d+)[¹²³⁰⁴-⁹]+/g, '^')
      .replace(/(\d?) ?([½¼¾])/g, (_, digit: string, part: string) => `${digit || '0'}${DEFINITE}${HALVES[part]}`)
      // Before NFKC, which turns the acute into a space and an accent.
      .replace(/[’ʼ´`′٬]/g, "'")
      .normalize('NFKC'),
  )
    .replace(/[‐‒]/g, '-')
    .replace(/[〜∼]/g, '~')
    .replace(/،/g, ',')
    .replace(/(?<=\d)·(?=\d)/g, DEFINITE)
    .replace(/\s+/g, ' ');
  return hasBreaks(plain) ? readBreaks(plain) : plain;
}

function readBreaks(text: string): string {
  const pieces = text.replace(CENTS, `$1${DEFINITE}`).replaceAll(RAISED, BORDER).replace(TWO_DECIMALS, BREAK);
  return joinLines(pieces).replace(TORN, BORDER);
}

/** A whole number before two raised or small digits. */
const CENTS = new RegExp(String.raw`(?<![.,]\d?)(\d)${RAISED}(?=\d{2}(?![\d${BORDER}${RAISED}]|[.,]\d))`, 'g');
/** Both pieces have their cents. */
const TWO_DECIMALS = new RegExp(String.raw`(?<=\d[.,]\d{1,2})${BORDER}(?=\d+[.,]\d{2}(?!\d))`, 'g');
/** Whole number and cents on two lines. */
const TORN = new RegExp(String.raw`(?<=\d)${BREAK}(?=[.,]\d)|(?<=\d[.,])${BREAK}(?=\d{1,2}(?!\d))`, 'g');

/** A line without digits, such as a label or a currency, belongs to the lines around it. */
function joinLines(text: string): string {
  let joined = '';
  let last = '';
  for (const line of text.split(BREAK).map((one) => one.trim())) {
    if (line === '') continue;
    if (last !== '') joined += /\d/.test(last) && /\d/.test(line) ? BREAK : ' ';
    joined += line;
    last = line;
  }
  return joined;
}
