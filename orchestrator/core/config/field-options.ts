/** The options of a field in the short form. docs/mapping.schema.json is generated from this. */
/* oxlint-disable unicorn/no-thenable -- `then` is an option of the short form; here it is data and never called */
import { z } from 'zod';
import type { Assertion } from '../../../shared/domain/mapping.ts';
import { flag, nodeOption, numberOptions, priceOptions, scalar, text } from './processors.ts';

const replacement = z.strictObject(
  { find: text(), with: z.string({ error: 'must be a text' }) },
  {
    error: (issue) =>
      issue.code === 'invalid_type' ? 'must be { find: "…", with: "…" } or a list of them' : undefined,
  },
);
const DATE = 'must be true, a format such as "yyyy-MM-dd", or { format, locale }';
const NUMBER = 'must be true or false, or { decimal } with ",", "." or auto';
const PRICE = 'must be true or false, or { currency, decimal } such as { currency: EUR }';
const CHANGE = 'must be a share such as 80%';
const REGEX = 'must be a pattern, or { pattern, group }';

const selectOptions = {
  css: text().exactOptional().describe('CSS selector: the text of each match, or with attr that attribute.'),
  xpath: text().exactOptional().describe('XPath 1.0 expression.'),
  jsonpath: text().exactOptional().describe('JSONPath (RFC 9535), in a page that is JSON.'),
  json_ld: text().exactOptional().describe('Dotted path in the JSON-LD of the page, such as offers.price.'),
  microdata: text().exactOptional().describe('Dotted path in the microdata of the page, such as offers.price.'),
  regex: z
    .union([text(), z.strictObject({ pattern: text(), group: z.int().min(0).exactOptional() })], { error: REGEX })
    .exactOptional()
    .describe('RE2 pattern: in the source of the page, or in the values of the selector beside it.'),
  attr: text().exactOptional().describe('Name of an attribute, with css.'),
  node: nodeOption().exactOptional(),
};

const processOptions = {
  trim: flag().exactOptional().describe('Fold white space and cut it at the ends; on unless false.'),
  replace: z
    .union([replacement, z.array(replacement).min(1)], { error: 'must be { find: "…", with: "…" } or a list of them' })
    .exactOptional()
    .describe('Replace every occurrence of a text.'),
  split: text().exactOptional().describe('Cut each value at this text.'),
  lower: flag().exactOptional().describe('Lower case.'),
  upper: flag().exactOptional().describe('Upper case.'),
  number: z
    .union([flag(), numberOptions()], { error: NUMBER })
    .exactOptional()
    .describe('The number in the text; column type double.'),
  integer: z
    .union([flag(), numberOptions()], { error: NUMBER })
    .exactOptional()
    .describe('The whole number in the text; column type bigint.'),
  price: z
    .union([flag(), priceOptions()], { error: PRICE })
    .exactOptional()
    .describe('The price in the text: its amount in this column (double), its ISO 4217 currency in <name>_currency.'),
  boolean: flag().exactOptional().describe('Yes or no; column type boolean.'),
  date: z
    .union([z.boolean(), text(), z.strictObject({ format: text().exactOptional(), locale: text().exactOptional() })], {
      error: DATE,
    })
    .exactOptional()
    .describe('A date: true for ISO 8601, or its format in Luxon tokens.'),
  url: flag().exactOptional().describe('Make a link absolute.'),
  first: flag().exactOptional().describe('Take the first value that the other steps can use.'),
  all: flag().exactOptional().describe('Keep every value, as a JSON array.'),
  join: z.string({ error: 'must be a text' }).exactOptional().describe('Join the values, with this text between them.'),
  default: scalar().exactOptional().describe('The value if the page has none.'),
  then: z
    .array(z.unknown(), { error: 'must be a list of steps such as [trim, { split: "," }, integer]' })
    .min(1, 'must not be empty')
    .exactOptional()
    .describe('Steps in your own order, in place of the options above; nothing is implied.'),
};

const ASSERT = 'must have min, max, matches, one_of or max_change, and may have else';
export const assertOptions = z
  .strictObject(
    {
      min: z.number({ error: 'must be a number' }).exactOptional().describe('Smallest number.'),
      max: z.number({ error: 'must be a number' }).exactOptional().describe('Largest number.'),
      matches: text().exactOptional().describe('RE2 pattern that matches somewhere in the text.'),
      one_of: z.array(scalar()).min(1, 'must not be empty').exactOptional().describe('The only values.'),
      max_change: z
        .union([text(), z.number()], { error: CHANGE })
        .refine((value) => parseChange(value) !== null, CHANGE)
        .exactOptional()
        .describe('Largest change against the row that stands, such as 80%.'),
      else: z
        .enum(['empty', 'fail', 'hold'], { error: 'must be empty, fail or hold' })
        .exactOptional()
        .describe('What becomes of a value that breaks it: no value (the default), no product, or the run is held.'),
    },
    { error: (issue) => (issue.code === 'invalid_type' ? ASSERT : undefined) },
  )
  .refine((value) => Object.keys(value).some((key) => key !== 'else'), ASSERT);

export function toAssertion(options: z.output<typeof assertOptions>): Assertion {
  const { one_of: oneOf, max_change: change, else: otherwise = 'empty', ...limits } = options;
  const maxChange = change === undefined ? null : parseChange(change);
  return {
    ...limits,
    ...(oneOf === undefined ? {} : { oneOf }),
    ...(maxChange === null ? {} : { maxChange }),
    else: otherwise,
  };
}

/** A share above zero, which may be above 100 %; null for anything else. */
function parseChange(value: string | number): number | null {
  const match = /^(\d+(?:\.\d+)?)(%?)$/.exec(String(value).trim());
  const share = match === null ? 0 : Number(match[1]) / (match[2] === '%' ? 100 : 1);
  return share > 0 ? share : null;
}

export const fieldOptions = z.strictObject({
  ...selectOptions,
  ...processOptions,
  required: flag().exactOptional().describe('A page without this value counts as failed.'),
  assert: assertOptions.exactOptional().describe('What the value must be to be stored.'),
});
export const parserOptions = z.strictObject({
  ...selectOptions,
  ...processOptions,
  description: text().exactOptional().describe('What the link leads to.'),
});
export const selectorOptions = z.strictObject({
  css: text().exactOptional(),
  xpath: text().exactOptional(),
  jsonpath: text().exactOptional(),
});

export type FieldOptions = z.output<typeof fieldOptions>;
export type ChainOptions = Omit<FieldOptions, 'required' | 'assert'>;
