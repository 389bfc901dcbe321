/** What the names say that shops give to their elements: ids, classes and the like are English nearly everywhere. */
import type { Element } from '../extract/dom/queries.ts';

export const TITLE_NAMES = /title|name|heading|headline/i;
export const PRICE_NAMES = /pri[cs]e|preis|prix|preci|prezz|prijs|cena|cijena|hinta|fiyat|harga/i;

const OTHER_PRICES =
  'old was before regular crossed strike\\w* through line-?through rrp uvp msrp list-?price compare\\w* original previous standard retail used from ' +
  'shipping delivery versand\\w* postage install?ments? financ\\w* credit monthly rate unit-?price per-?unit base-?price grundpreis tax vat excl net ' +
  'sav(?:e|ing|ings) discount\\w* coupon\\w* voucher\\w* points? deposit warranty insurance';
const OTHER_PRODUCTS =
  'cart basket bag mini\\w* related similar recommend\\w* upsell\\w* cross-?sell\\w* accessor\\w* carousel\\w* slider\\w* swiper\\w* slick\\w* recent\\w* ' +
  'sponsor\\w* also swatch\\w* variations? bundle\\w* teaser\\w* filter\\w* facet\\w* menu\\w* nav\\w* header footer side-?bar modal popup review\\w*';

/** Names of other prices than the one asked for the product, and of parts of a page that are about other things. */
export const ASIDE_NAMES = new RegExp(
  `(?:^|[-_\\s])(?:${`${OTHER_PRICES} ${OTHER_PRODUCTS}`.replaceAll(' ', '|')})(?:$|[-_\\s])`,
  'i',
);
export const ASIDE_TAGS: ReadonlySet<string> = new Set(
  'header footer nav aside dialog del s strike select template noscript head script style'.split(' '),
);

export const namesOf = ({ attribs: { id = '', class: classes = '', itemprop = '' } }: Element): string =>
  `${id} ${classes} ${itemprop}`;
