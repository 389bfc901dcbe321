/**
 * Currencies as price texts show them: ISO 4217 codes, symbols, and how each is customarily written. Written by hand: what
 * `Intl` knows depends on the Node of the machine, and it knows neither which symbols several currencies share nor where
 * fractions have gone out of use (docs/decisions/extraction.md).
 */

export type DecimalMark = '.' | ',';

/**
 * How the amounts of a currency are written. `whole`: without a fraction, whatever ISO says. `three`: with three digits of
 * fraction. `point` and `comma`: that mark is the decimal one, and fractions have two digits. `either`: nothing can be said.
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

const STYLE_OF: ReadonlyMap<string, AmountStyle> = new Map(
  Object.entries(STYLES).flatMap(([style, codes]) => codes.split(' ').map((code) => [code, style as AmountStyle])),
);

/** Every ISO 4217 code in use for payments. */
export const CURRENCY_CODES: readonly string[] = [...STYLE_OF.keys()].sort();

export function isCurrencyCode(text: string): boolean {
  return STYLE_OF.has(text);
}

/** What a text says about the currency of an amount. `code` is null where several currencies share the symbol. */
export interface Currency {
  code: string | null;
  style: AmountStyle;
}

/** Throws nothing: an unknown code is of no style. */
export function currencyOf(code: string): Currency {
  return { code, style: STYLE_OF.get(code) ?? 'either' };
}

/** Symbols and local names of one currency each; those that several share stand in SHARED. */
const SYMBOLS: Record<string, string> = {
  AED: 'د.إ AED. Dhs',
  AUD: 'A$ AU$',
  AZN: '₼',
  BDT: '৳',
  BGN: 'лв лв.',
  BRL: 'R$',
  CAD: 'C$ CA$ CDN$',
  CHF: 'Fr. SFr SFr. sFr.',
  CRC: '₡',
  CZK: 'Kč kč KČ',
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

/** Symbols that do not tell which currency it is; how amounts are written they may tell. */
const SHARED: Record<AmountStyle, string> = {
  // US, Canadian and Australian dollars, pesos …: where the comma is the decimal mark, nobody prints three digits behind it.
  point: '$ ¥ 元 Rs',
  comma: 'kr Kr KR lei Lei LEI Lei. руб Руб р Bs',
  whole: 'FCFA CFA F.CFA ریال تومان',
  three: '',
  either: 'DH DHs Dh',
};

const KNOWN: ReadonlyMap<string, Currency> = new Map([
  ...CURRENCY_CODES.map((code): [string, Currency] => [code, currencyOf(code)]),
  ...Object.entries(SYMBOLS).flatMap(([code, symbols]) =>
    symbols.split(' ').map((symbol): [string, Currency] => [symbol, currencyOf(code)]),
  ),
  ...Object.entries(SHARED).flatMap(([style, symbols]) =>
    symbols
      .split(' ')
      .filter((symbol) => symbol !== '')
      .map((symbol): [string, Currency] => [symbol, { code: null, style: style as AmountStyle }]),
  ),
]);

const isLetter = (char: string | undefined): boolean => /\p{L}/u.test(char ?? '');

/**
 * Any of them, the longest first (`HK$` is no `$`), names only as whole words. In four groups, because a class of all letters beside each of
 * them would take seconds to compile.
 */
const ANY = [false, true]
  .flatMap((endsInLetter) => [false, true].map((beginsWithLetter) => ({ beginsWithLetter, endsInLetter })))
  .flatMap(({ beginsWithLetter, endsInLetter }) => {
    const symbols = [...KNOWN.keys()]
      .filter((symbol) => isLetter(symbol[0]) === beginsWithLetter && isWord(symbol) === endsInLetter)
      .sort((one, other) => other.length - one.length)
      .map((symbol) => symbol.replace(/[.*+?^${}()|[\]\\/]/g, String.raw`\$&`));
    if (symbols.length === 0) return [];
    return `${beginsWithLetter ? String.raw`(?<!\p{L})` : ''}(?:${symbols.join('|')})${endsInLetter ? String.raw`(?!\p{L})` : ''}`;
  })
  .join('|');

/** What may not go on with a letter; Chinese, Japanese, Korean and Thai set no space behind it. */
function isWord(symbol: string): boolean {
  return isLetter(symbol.at(-1)) && !/^[円元원บ]/.test(symbol);
}

const AT_END = new RegExp(String.raw`(?:${ANY})(?=[.:]?\s?$)`, 'u');
const AT_START = new RegExp(String.raw`^\s?(${ANY})`, 'u');

/** A currency at one end of a text, and how many characters it takes with what joins it to the amount. */
export interface FoundCurrency {
  currency: Currency;
  chars: number;
}

/** The currency with which the text ends, before an amount: `nur EUR `. A dot or a colon may stand between. */
export function currencyBefore(text: string): FoundCurrency | null {
  const tail = text.slice(-12);
  const match = AT_END.exec(tail);
  return match && { currency: KNOWN.get(match[0])!, chars: tail.length - match.index };
}

/** The currency with which the text begins, behind an amount: ` € incl. VAT`. */
export function currencyBehind(text: string): FoundCurrency | null {
  const match = AT_START.exec(text.slice(0, 12));
  return match && { currency: KNOWN.get(match[1]!)!, chars: match[0].length };
}
