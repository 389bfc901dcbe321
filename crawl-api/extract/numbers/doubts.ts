/** What around a number shows that its digits are not the value, or that they may not be an amount at all. */
import { BORDER } from '../text-breaks.ts';

const LARGE =
  /^(?:\^|[kmb](?![\p{L}\d])| ?(?:thousand|million|billion|lakh|lac|crore)s?(?!\p{L})| ?(?:tsd|tys|tis|mil|mio|mill|mrd|mld|mln|bn|cr|tausend|tusen|duizend|mille|mila|ezer|millionen|milliarden|millions|millones|milhões|milioni|millió|milyon|тыс|тысяч|хил|млн|млрд|ribu|rb|juta|jt|nghìn|ngàn|triệu|tr|tỷ)(?!\p{L})| ?[万萬億亿千천만억])/iu;
/** These multiply behind a currency (`Rp 169 k`, `Rs 1.5L`); elsewhere they may be a size or a unit. */
const LARGE_PRICE = /^ ?[kKMBLT](?![\p{L}\d])/u;
const CENTS = /^ ?[¢￠]|^p(?!\p{L})/u;
/** Signs of cents in a price; elsewhere they may be carats or degrees. */
const CENTS_OF_PRICE = /^ ?(?:c|cts?|cents?|коп)(?!\p{L})/iu;
/** `1'299'5`: pieces of a number that is none. */
const PIECE_BEFORE = /\d'$/;
const PIECE_BEHIND = /^'\d/;
/** The border of an element at one end of the digits: they may be a part of a number. */
const BORDER_BEHIND = new RegExp(String.raw`^[.,]?${BORDER}`);
/** The minus sign of accountants: `12.50-`. */
const MINUS_BEHIND = /^[-−–](?=\s|$)/;
const TELEPHONE = /^\d(?:\D?\d){7}/;
/** The amount is a limit: `free delivery over $50`, `5,000円以上送料無料`. */
const LIMIT_BEFORE =
  /(?<![\p{L}-])(?:over|above|under|below|up to|more than|less than|über|unter|bis zu|mehr als|weniger als|plus de|moins de|jusqu'à|más de|menos de|hasta|oltre|più di|meno di|fino a|boven|meer dan|minder dan|över|powyżej|poniżej|nad|свыше|более|до) $/iu;
const LIMIT_BEHIND = /^ ?(?:以上|以下|이상|이하|(?:ve )?üzeri|and (?:over|up|more)|or more)/iu;

/** The texts around a number. */
export interface Place {
  digits: string;
  before: string;
  /** The text before the currency that precedes the digits. */
  outside: string;
  behind: string;
  /** The text behind the currency that follows the digits. */
  beyond: string;
}

export interface Clues {
  /** Whether a currency precedes the digits, and whether one follows. */
  ahead: boolean;
  behind: boolean;
  isNegative: boolean;
  isPrice: boolean;
}

export function isDoubtful({ digits, before, outside, behind, beyond }: Place, clues: Clues): boolean {
  const isPriced = clues.ahead || clues.behind;
  if (before.endsWith(BORDER) || BORDER_BEHIND.test(behind) || LARGE.test(behind)) return true;
  if (clues.isPrice || isPriced) {
    if (PIECE_BEFORE.test(before) || PIECE_BEHIND.test(behind)) return true;
    if ((clues.isNegative || /[.,]\d{2}$/.test(digits)) && MINUS_BEHIND.test(behind)) return true;
  }
  if (isPriced)
    return (!clues.behind && LARGE_PRICE.test(behind)) || LIMIT_BEFORE.test(outside) || LIMIT_BEHIND.test(beyond);
  if (CENTS.test(behind) || (clues.isPrice && CENTS_OF_PRICE.test(behind))) return true;
  return before.endsWith('+') && TELEPHONE.test(digits);
}
