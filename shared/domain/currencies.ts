/**
 * Currencies in price texts: ISO 4217 codes, symbols, and how amounts are usually written. Maintained by hand: the data
 * of `Intl` depends on the machine's Node, and covers neither symbols shared by several currencies nor currencies whose
 * fractions are no longer used (docs/decisions/0013-extraction.md).
 */

export type DecimalMark = '.' | ',';

/**
 * How amounts of a currency are written. `whole`: without a fraction, even where ISO defines one. `three`: with three
 * fraction digits. `point` and `comma`: that is the decimal mark, and fractions have two digits. `either`: unknown.
 */
export type AmountStyle = 'whole' | 'three' | 'point' | 'comma' | 'either';

const STYLES: Record<AmountStyle, string> = {
  whole:
    'BIF CLP COP DJF GNF HUF IDR IQD IRR ISK KHR KMF KRW LAK LBP MGA MMK MNT PYG RWF SYP UGX UZS VND VUV XAF XOF XPF YER',
  three: 'BHD JOD KWD OMR',
  comma:
    'ALL AMD ANG AOA ARS AWG AZN BAM BGN BOB BRL BYN CVE CZK DKK DZD EUR GEL KGS KZT MAD MDL MKD MZN NOK PLN RON RSD RUB SEK SRD STN TJS TMT TRY UAH UYU VES',
  point:
    'AED AFN AUD BBD BDT BMD BND BSD BTN BWP BZD CAD CHF CNY DOP EGP ERN ETB FJD FKP GBP GHS GIP GMD GTQ GYD HKD HNL HTG ILS INR JMD JPY KES KPW KYD LKR LRD LSL MOP MRU MUR MVR MWK MXN MYR NAD NGN NIO NPR NZD PAB PEN PGK PHP PKR QAR SAR SBD SCR SDG SGD SHP SLE SOS SSP SVC SZL THB TOP TTD TWD TZS USD WST XCD ZAR ZMW ZWG',
  either: 'CDF CRC CUP LYD TND',
};

/** Every ISO 4217 code in use for payments. */
const STYLE_OF: ReadonlyMap<string, AmountStyle> = new Map(
  Object.entries(STYLES).flatMap(([style, codes]) => codes.split(' ').map((code) => [code, style as AmountStyle])),
);

export function isCurrencyCode(text: string): boolean {
  return STYLE_OF.has(text);
}

/** What a text reveals about the currency of an amount. */
export interface Currency {
  /** The currency's code; null where several currencies share the symbol. */
  code: string | null;
  style: AmountStyle;
  /** The codes of those that share the symbol; empty where `code` is known. */
  among: readonly string[];
}

/** What a code says of the currency. Never throws: an unknown code has no style. */
export function currencyOf(code: string): Currency {
  return { code, style: STYLE_OF.get(code) ?? 'either', among: [] };
}

/** Symbols and local names of one currency each; SHARED has those of several. */
const SYMBOLS: Record<string, string> = {
  AED: 'د.إ AED. Dhs',
  AUD: 'A$ AU$',
  AZN: '₼',
  BDT: '৳',
  BGN: 'лв лв.',
  BRL: 'R$',
  CAD: 'C$ CA$ CDN$',
  CHF: 'Fr. SFr SFr. sFr.',
  CNY: 'CN¥ RMB',
  CRC: '₡',
  CZK: 'Kč kč KČ',
  DOP: 'RD$',
  EGP: 'ج.م E£',
  EUR: '€ Euro euro EURO Euros euros',
  GBP: '£',
  GEL: '₾',
  GHS: '₵ GH₵',
  HKD: 'HK$',
  // Not `ft`: `1.250 ft` are feet.
  HUF: 'Ft',
  IDR: 'Rp rp RP',
  ILS: '₪',
  INR: '₹',
  JPY: '円 JP¥',
  KES: 'KSh Ksh KSH',
  KHR: '៛',
  KRW: '₩ 원',
  KWD: 'د.ك KD',
  KZT: '₸ тг',
  LAK: '₭',
  LBP: 'ل.ل',
  MNT: '₮',
  MXN: 'MX$ Mex$',
  MYR: 'RM',
  NGN: '₦',
  NZD: 'NZ$',
  OMR: 'ر.ع',
  PAB: 'B/ B/.',
  PEN: 'S/ S/.',
  PHP: '₱',
  PLN: 'zł ZŁ Zł zl',
  PYG: '₲',
  QAR: 'ر.ق',
  BHD: 'د.ب BD',
  RSD: 'дин din',
  RUB: '₽',
  SAR: 'ر.س',
  SGD: 'S$',
  THB: '฿ บาท',
  TND: 'د.ت DT',
  TRY: '₺ TL',
  TWD: 'NT$ NT',
  TZS: 'TSh',
  UAH: '₴ грн',
  UGX: 'USh',
  USD: 'US$ U$S',
  UZS: "so'm сум",
  VND: '₫ đ vnđ VNĐ',
  ZAR: 'R',
};

interface SharedSymbols {
  symbols: string;
  /** How amounts beside them are written. */
  style: AmountStyle;
  /** The currencies written with them: others beside such a symbol are words, as in `GEL PEN $2.50`. */
  codes: string;
}

/** Symbols that do not identify the currency, but may determine how amounts are written. */
const SHARED: readonly SharedSymbols[] = [
  {
    symbols: '$',
    // Where the comma is the decimal mark, three digits never follow it.
    style: 'point',
    // Not CUP, MOP and TOP: `MUG CUP $5`, `FLOOR MOP $20`.
    codes:
      'ARS AUD BBD BMD BND BRL BSD BZD CAD CLP COP CVE DOP FJD GYD HKD JMD KYD LRD MXN NAD NZD SBD SGD SRD TTD TWD USD UYU XCD',
  },
  { symbols: '¥', style: 'point', codes: 'CNY JPY' },
  { symbols: '元', style: 'point', codes: 'CNY HKD TWD' },
  { symbols: 'Rs', style: 'point', codes: 'INR LKR MUR NPR PKR SCR' },
  { symbols: 'kr Kr KR', style: 'comma', codes: 'DKK ISK NOK SEK' },
  { symbols: 'lei Lei LEI Lei.', style: 'comma', codes: 'MDL RON' },
  { symbols: 'руб Руб р', style: 'comma', codes: 'BYN RUB' },
  { symbols: 'Bs', style: 'comma', codes: 'BOB VES' },
  { symbols: 'FCFA CFA F.CFA', style: 'whole', codes: 'XAF XOF' },
  { symbols: 'ریال تومان', style: 'whole', codes: 'IRR' },
  { symbols: 'DH DHs Dh', style: 'either', codes: 'AED MAD' },
];

const KNOWN: ReadonlyMap<string, Currency> = new Map([
  ...[...STYLE_OF.keys()].map((code): [string, Currency] => [code, currencyOf(code)]),
  ...Object.entries(SYMBOLS).flatMap(([code, symbols]) =>
    symbols.split(' ').map((symbol): [string, Currency] => [symbol, currencyOf(code)]),
  ),
  ...SHARED.flatMap(({ symbols, style, codes }) =>
    symbols.split(' ').map((symbol): [string, Currency] => [symbol, { code: null, style, among: codes.split(' ') }]),
  ),
]);

const isLetter = (char: string | undefined): boolean => /\p{L}/u.test(char ?? '');

/**
 * Any of them, longest first (`HK$` is not `$`), names only as whole words. In four groups, because a class of all
 * letters beside each of them would take seconds to compile.
 */
const ANY = [false, true]
  .flatMap((endsInLetter) => [false, true].map((beginsWithLetter) => ({ beginsWithLetter, endsInLetter })))
  .flatMap(({ beginsWithLetter, endsInLetter }) => {
    const symbols = [...KNOWN.keys()]
      .filter((symbol) => isLetter(symbol[0]) === beginsWithLetter && isWord(symbol) === endsInLetter)
      .sort((one, other) => other.length - one.length)
      .map((symbol) => symbol.replace(/[.*+?^${}()|[\]\\/]/g, String.raw`\$&`))
      // `US $` is `US$`.
      .map((symbol) => symbol.replace(/^([A-Z][A-Za-z]+)(?=\\\$|¥)/, '$1 ?'));
    if (symbols.length === 0) return [];
    return `${beginsWithLetter ? String.raw`(?<!\p{L})` : ''}(?:${symbols.join('|')})${endsInLetter ? String.raw`(?!\p{L})` : ''}`;
  })
  .join('|');

/** Symbols that no letter may follow, except Chinese, Japanese, Korean and Thai, which use no space. */
function isWord(symbol: string): boolean {
  return isLetter(symbol.at(-1)) && !/^[円元원บ]/.test(symbol);
}

const AT_END = new RegExp(String.raw`(?:${ANY})(?=[.:]?\s?$)`, 'u');
/** The code before a shared symbol (`MXN $5`), unless it belongs to an amount before it. */
const CODE_AT_END = /(?<!\d\s?|\p{L})[A-Z]{3}(?= ?$)/u;
/** The code behind a shared symbol: `5 $ USD`. */
const CODE_AT_START = /^ ?([A-Z]{3})(?!\p{L}| ?\d)/u;
const AT_START = new RegExp(String.raw`^\s?(${ANY})`, 'u');

/** A currency at one end of a text, and its length including what joins it to the amount. */
export interface FoundCurrency {
  currency: Currency;
  chars: number;
}

/** The currency at the end of the text before an amount: `nur EUR `. A dot or colon may follow it. */
export function currencyBefore(text: string): FoundCurrency | null {
  const tail = text.slice(-16);
  const match = AT_END.exec(tail);
  const currency = match && known(match[0]);
  if (match === null || currency === null) return null;
  const code = CODE_AT_END.exec(tail.slice(0, match.index));
  if (code !== null && currency.among.includes(code[0]))
    return { currency: currencyOf(code[0]), chars: tail.length - code.index };
  return { currency, chars: tail.length - match.index };
}

/** The currency at the start of the text after an amount: ` € incl. VAT`. */
export function currencyBehind(text: string): FoundCurrency | null {
  const [all, symbol] = AT_START.exec(text.slice(0, 12)) ?? [];
  const currency = symbol === undefined ? null : known(symbol);
  if (all === undefined || currency === null) return null;
  const chars = all.length;
  const [more, code] = CODE_AT_START.exec(text.slice(chars, chars + 6)) ?? [];
  return more !== undefined && code !== undefined && currency.among.includes(code)
    ? { currency: currencyOf(code), chars: chars + more.length }
    : { currency, chars };
}

const known = (symbol: string): Currency | null => KNOWN.get(symbol) ?? KNOWN.get(symbol.replace(' ', '')) ?? null;
