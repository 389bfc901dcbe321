/**
 * Yes or no, from the words that shops use. Ignores case and surrounding white space; of a schema.org URL such as
 * `https://schema.org/InStock` the last part counts. Anything else (also `PreOrder`: neither) is no value.
 */
const YES = [
  'true',
  'yes',
  'y',
  'on',
  '1',
  'in stock',
  'available',
  'instock',
  'instoreonly',
  'onlineonly',
  'limitedavailability',
];
const NO = [
  'false',
  'no',
  'n',
  'off',
  '0',
  'out of stock',
  'sold out',
  'unavailable',
  'not available',
  'outofstock',
  'soldout',
  'discontinued',
];

const MEANING = new Map([...YES.map((word) => [word, true] as const), ...NO.map((word) => [word, false] as const)]);
const MAX_CHARS = 200;

/** True or false; null when the value is neither. */
export function toBoolean(value: string | number | boolean): boolean | null {
  if (typeof value === 'boolean') return value;
  const text = String(value).slice(0, MAX_CHARS).replace(/\s+/g, ' ').trim().toLowerCase();
  return MEANING.get(text.replace(/^https?:\/\/schema\.org\//, '')) ?? null;
}
