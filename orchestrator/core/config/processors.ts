/** The processors of a chain: both forms of a mapping and the JSON Schema are derived from this table. */
import { z } from 'zod';
import type { DecimalMark } from '../../../shared/domain/currencies.ts';
import type { Step } from '../../../shared/domain/mapping.ts';
import { findStepFault } from '../../../shared/adapters/step-check.ts';

export const text = () => z.string({ error: 'must be a text' }).min(1, 'must not be empty');
export const flag = () => z.boolean({ error: 'must be true or false' });
export const scalar = () =>
  z.union([z.string(), z.number(), z.boolean()], { error: 'must be a text, a number, true or false' });
const group = () => z.int({ error: 'must be a whole number' }).min(0, 'must not be negative');

export interface ProcessorForm<Shape extends z.ZodRawShape = z.ZodRawShape> {
  parameters: z.ZodObject<Shape>;
  /** `{ split: "," }` is `{ split: { by: "," } }`. */
  main: (keyof Shape & string) | null;
  toStep(parameters: z.output<z.ZodObject<Shape>>): Step;
}

function form<Shape extends z.ZodRawShape>(
  shape: Shape,
  main: (keyof Shape & string) | null,
  toStep: (parameters: z.output<z.ZodObject<Shape>>) => Step,
): ProcessorForm {
  return { parameters: z.strictObject(shape), main, toStep };
}

const plain = (type: 'trim' | 'lower' | 'upper' | 'boolean' | 'first' | 'all' | 'url') =>
  form({}, null, () => ({ type }));

const decimal = () =>
  z
    .enum(['.', ',', 'auto'], { error: 'must be ".", "," or auto' })
    .exactOptional()
    .describe(
      'The decimal mark. auto, the default: by currency and form, and if those are ambiguous, by the whole column.',
    );
const currency = () =>
  z
    .string()
    .regex(/^[A-Z]{3}$/, 'must be an ISO 4217 code such as EUR')
    .exactOptional()
    .describe('ISO 4217 code for prices whose text does not contain it.');
export const numberOptions = () => z.strictObject({ decimal: decimal() });
export const priceOptions = () => z.strictObject({ currency: currency(), decimal: decimal() });

/** The options in the form of a step: `auto` means no decimal mark. */
export function stepOptions(options: { decimal?: '.' | ',' | 'auto'; currency?: string }): {
  decimal?: DecimalMark;
  currency?: string;
} {
  const { decimal: mark, currency: code } = options;
  return {
    ...(mark === undefined || mark === 'auto' ? {} : { decimal: mark }),
    ...(code === undefined ? {} : { currency: code }),
  };
}

export const nodeOption = () => text().describe('Read this type of schema.org instead of the product of the page.');
const linkedData = (type: 'json_ld' | 'microdata', description: string) =>
  form({ path: text().describe(description), node: nodeOption().nullish() }, 'path', ({ path, node }) => ({
    type,
    path,
    ...(node ? { node } : {}),
  }));

const number = (type: 'number' | 'integer') => form(numberOptions().shape, null, (p) => ({ type, ...stepOptions(p) }));

export const PROCESSORS: ReadonlyMap<string, ProcessorForm> = new Map<string, ProcessorForm>([
  [
    'css',
    form(
      {
        selector: text().describe('CSS selector.'),
        attribute: text().nullish().describe('Take this attribute instead of the text.'),
      },
      'selector',
      ({ selector, attribute }) => ({ type: 'css', selector, ...(attribute ? { attribute } : {}) }),
    ),
  ],
  ['xpath', form({ expression: text().describe('XPath 1.0.') }, 'expression', (p) => ({ type: 'xpath', ...p }))],
  [
    'jsonpath',
    form({ expression: text().describe('JSONPath (RFC 9535).') }, 'expression', (p) => ({ type: 'jsonpath', ...p })),
  ],
  ['json_ld', linkedData('json_ld', 'Dotted path in the JSON-LD of the page, such as offers.price.')],
  ['microdata', linkedData('microdata', 'Dotted path in the microdata of the page, such as offers.price.')],
  [
    'regex',
    form(
      {
        pattern: text().describe('RE2 pattern.'),
        group: group()
          .nullish()
          .describe('Which group to take; 0 is the whole match. Default: the first group, where the pattern has one.'),
      },
      'pattern',
      (p) => regexStep(p.pattern, p.group ?? null),
    ),
  ],
  ['trim', plain('trim')],
  [
    'replace',
    form(
      {
        find: text().describe('Text to find, literally: no pattern.'),
        with: z.string({ error: 'must be a text' }).describe('The replacement.'),
      },
      null,
      (p) => ({ type: 'replace', ...p }),
    ),
  ],
  ['lower', plain('lower')],
  ['upper', plain('upper')],
  ['split', form({ by: text().describe('Where to cut.') }, 'by', (p) => ({ type: 'split', ...p }))],
  ['number', number('number')],
  ['integer', number('integer')],
  ['price', form(priceOptions().shape, null, (p) => ({ type: 'price', ...stepOptions(p) }))],
  [
    'currency',
    form({ currency: currency() }, null, ({ currency: code }) => ({
      type: 'currency',
      ...(code === undefined ? {} : { currency: code }),
    })),
  ],
  ['boolean', plain('boolean')],
  [
    'date',
    form(
      {
        format: text().nullish().describe('Luxon tokens such as yyyy-MM-dd; ISO 8601 without it.'),
        locale: text().nullish().describe('Language of month names, such as ja or fr.'),
      },
      'format',
      ({ format, locale }) => ({ type: 'date', format: format ?? null, locale: locale ?? null }),
    ),
  ],
  ['url', plain('url')],
  ['first', plain('first')],
  ['all', plain('all')],
  [
    'join',
    form({ by: z.string({ error: 'must be a text' }).describe('The separator.') }, 'by', (p) => ({
      type: 'join',
      ...p,
    })),
  ],
  [
    'default',
    form({ value: scalar().describe('Used when no value is left.') }, 'value', (p) => ({ type: 'default', ...p })),
  ],
]);

export const PROCESSOR_NAMES: readonly string[] = [...PROCESSORS.keys()];

/**
 * The step of a pattern; without `group` it takes the first group, if there is one: a group is there to select
 * something.
 */
export function regexStep(pattern: string, group: number | null): Step {
  if (group !== null) return { type: 'regex', pattern, group };
  const first: Step = { type: 'regex', pattern, group: 1 };
  return findStepFault(first, { first: true, inRows: false }) === null ? first : { ...first, group: 0 };
}
