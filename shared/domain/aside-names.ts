/** Names that elements of a page, or keys of its JSON, have when they are not about the product of the page. */
const OTHER_PRICES =
  'old was before regular crossed strike\\w* through line-?through rrp uvp msrp list-?price compare\\w* original previous standard retail used from ' +
  'shipping delivery versand\\w* postage install?ments? financ\\w* credit monthly rate unit-?price per-?unit base-?price grundpreis tax vat excl net ' +
  'sav(?:e|ing|ings) discount\\w* coupon\\w* voucher\\w* points? deposit warranty insurance';
const OTHER_PRODUCTS =
  'cart basket bag mini\\w* related similar recommend\\w* up-?sell\\w* cross-?sell\\w* accessor\\w* carousel\\w* slider\\w* swiper\\w* slick\\w* recent\\w* ' +
  'sponsor\\w* also swatch\\w* variations? bundle\\w* teaser\\w* filter\\w* facet\\w* menu\\w* nav\\w* header footer side-?bar modal popup review\\w*';

/**
 * Names of other prices than the one asked for the product, and of parts of a page that are about other things; with
 * `-`, `_` or a blank between words.
 */
export const ASIDE_NAMES = new RegExp(
  `(?:^|[-_\\s])(?:${`${OTHER_PRICES} ${OTHER_PRODUCTS}`.replaceAll(' ', '|')})(?:$|[-_\\s])`,
  'i',
);
