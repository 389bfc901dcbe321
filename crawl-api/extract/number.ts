/**
 * The first number in a text, whatever stands around it (`¥1,234 (税込)` → 1234). Full-width digits count. Which mark is
 * the decimal one:
 *   - `.` and `,` both there: the one that comes last (`1,234.50` and `1.234,50` are both 1234.5);
 *   - one of them more than once: it separates thousands (`1.234.567`);
 *   - a single `,` before exactly three digits separates thousands (`1,234` → 1234), otherwise it is decimal (`12,5`);
 *   - a single `.` is decimal (`1.234` → 1.234).
 * Spaces and apostrophes before exactly three digits separate thousands (`1 234,50`, `1'234`). A minus sign counts when
 * no letter or digit stands before it (`-5`, `-¥100`; `A-100` → 100). Marks that fit none of this (`1,2,3`) give no number.
 */

const SPACES = String.raw` \u00a0\u2009\u202f'’`;
const NUMBER = new RegExp(
  String.raw`((?<![\p{L}\p{N}])[-−]\s?\p{Sc}?\s?|(?<![\p{L}\p{N}])\p{Sc}\s?[-−]\s?)?(\d(?:[.,${SPACES}]?\d)*)`,
  'u',
);

/** The first number in the text by the rules above; null when there is none. */
export function toNumber(value: string | number): number | null {
  if (typeof value === 'number') return Number.isFinite(value) ? value : null;
  const match = NUMBER.exec(value.slice(0, 1_000).normalize('NFKC'));
  if (!match) return null;
  const plain = toPlain(match[2]!);
  if (plain === null) return null;
  const number = Number(plain);
  if (!Number.isFinite(number)) return null;
  return match[1] === undefined || number === 0 ? number : -number;
}

const SPACE = new RegExp(`[${SPACES}]`, 'u');

/** Digits with marks → digits with at most one `.`; null when the marks make no sense. */
function toPlain(digits: string): string | null {
  // Spaces that do not separate groups of three end the number: `3 500` is one number, `2 10` is a 2 and a 10.
  const groups = digits.split(SPACE);
  let text = groups[0]!;
  if (groups.length > 1 && !/[.,]/.test(text) && text.length <= 3) {
    for (const group of groups.slice(1)) {
      if (!/^\d{3}(?:[.,]\d+)?$/.test(group) || /[.,]/.test(text)) break;
      text += group;
    }
  }
  const dots = count(text, '.');
  const commas = count(text, ',');
  if (dots > 0 && commas > 0) {
    const decimal = text.lastIndexOf('.') > text.lastIndexOf(',') ? '.' : ',';
    return count(text, decimal) === 1 ? join(text, decimal === '.' ? ',' : '.', decimal) : null;
  }
  if (commas === 1) return /^\d{1,3},\d{3}$/.test(text) ? join(text, ',', null) : text.replace(',', '.');
  if (commas > 1) return join(text, ',', null);
  return dots > 1 ? join(text, '.', null) : text;
}

function join(text: string, thousands: string, decimal: string | null): string | null {
  const [whole = '', fraction] = decimal === null ? [text] : text.split(decimal);
  const groups = whole.split(thousands);
  // The last group has three digits and the others two or three: 1,234,567 and the Indian 12,34,567.
  const good = groups.every((g, i) =>
    (i === 0 ? /^\d{1,3}$/ : i === groups.length - 1 ? /^\d{3}$/ : /^\d{2,3}$/).test(g),
  );
  if (!good) return null;
  return groups.join('') + (fraction === undefined ? '' : `.${fraction}`);
}

function count(text: string, mark: string): number {
  return text.split(mark).length - 1;
}
