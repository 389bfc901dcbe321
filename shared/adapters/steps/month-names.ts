/** Names of months in a text, in every form in which Node writes them in one language. */

/** Regions in which Node writes some months of a language differently than without a region. */
const REGIONS = 'AF AO AT BJ CA CN DZ FI IN IQ MA ME MR MX PE PK XK'.split(' ');

interface Names {
  numbers: ReadonlyMap<string, number>;
  pattern: RegExp;
}

const known = new Map<string, Names | null>();

/** The text with one month's name as its number: once for each name in it, with and without the point behind it. */
export function* withMonthNumbers(text: string, locale: string): Generator<string> {
  const names = namesOf(locale);
  if (names === null) return;
  for (const { 0: found, 1: name = found, index } of text.matchAll(names.pattern)) {
    const number = names.numbers.get(normalize(name));
    const behind = text.slice(index + found.length);
    yield text.slice(0, index) + String(number) + behind;
    if (found !== name) yield `${text.slice(0, index)}${number}.${behind}`;
  }
}

function namesOf(locale: string): Names | null {
  let names = known.get(locale);
  if (names === undefined) known.set(locale, (names = collectNames(locale)));
  return names;
}

function collectNames(locale: string): Names | null {
  const { language, script } = new Intl.Locale(locale);
  const root = script === undefined ? language : `${language}-${script}`;
  const numbers = new Map<string, number>();
  // The locale's own names come first: another region may use one for another month.
  for (const one of [locale, root, ...REGIONS.map((region) => `${root}-${region}`)]) {
    for (const [name, number] of monthsOf(one)) if (!numbers.has(name)) numbers.set(name, number);
  }
  if (numbers.size === 0) return null;
  const any = [...numbers.keys()]
    .sort((one, other) => other.length - one.length)
    .map((name) => name.replace(/[.*+?^${}()|[\]\\/]/g, String.raw`\$&`))
    .join('|');
  return { numbers, pattern: new RegExp(String.raw`(?<![\p{L}\p{M}])(${any})\.?(?![\p{L}\p{M}])`, 'giu') };
}

/** Short and long, as part of a date and alone; without those that have digits, such as 9月. */
function* monthsOf(locale: string): Generator<[name: string, number: number]> {
  for (const month of ['short', 'long'] as const) {
    for (const day of ['numeric', undefined] as const) {
      const format = new Intl.DateTimeFormat(locale, { month, day, calendar: 'gregory', timeZone: 'UTC' });
      for (let number = 1; number <= 12; number++) {
        const parts = format.formatToParts(Date.UTC(2024, number - 1, 5));
        const name = normalize(parts.find(({ type }) => type === 'month')?.value ?? '');
        if (/\p{L}/u.test(name) && !/\p{Nd}/u.test(name)) yield [name, number];
      }
    }
  }
}

function normalize(name: string): string {
  return name.normalize('NFC').replace(/\s+/g, ' ').replace(/\.$/, '').toLowerCase();
}
