/** The normalised mapping in user data. */
import type { RequestTemplate } from '../domain/request-template.ts';
import { z } from 'zod';
import type { Assertion, Mapping } from '../domain/mapping.ts';

const text = z.string().min(1);
const decimal = z.enum(['.', ',']).exactOptional();
const currency = z.string().length(3).exactOptional();

const selectSchemas = [
  z.strictObject({ type: z.literal('css'), selector: text, attribute: text.exactOptional() }),
  z.strictObject({ type: z.literal('xpath'), expression: text }),
  z.strictObject({ type: z.enum(['json_ld', 'microdata']), path: text, node: text.exactOptional() }),
  z.strictObject({ type: z.literal('jsonpath'), expression: text }),
  z.strictObject({ type: z.literal('regex'), pattern: text, group: z.int().nonnegative() }),
] as const;

const select = z.discriminatedUnion('type', [...selectSchemas]);
const step = z.discriminatedUnion('type', [
  ...selectSchemas,
  z.strictObject({ type: z.enum(['trim', 'lower', 'upper', 'boolean']) }),
  z.strictObject({ type: z.enum(['number', 'integer']), decimal }),
  z.strictObject({ type: z.literal('price'), decimal, currency }),
  z.strictObject({ type: z.literal('currency'), currency }),
  z.strictObject({ type: z.literal('replace'), find: text, with: z.string() }),
  z.strictObject({ type: z.literal('date'), format: text.nullable(), locale: text.nullable() }),
  z.strictObject({ type: z.literal('split'), by: text }),
  z.strictObject({ type: z.literal('join'), by: z.string() }),
  z.strictObject({ type: z.literal('first') }),
  z.strictObject({ type: z.literal('all') }),
  z.strictObject({ type: z.literal('default'), value: z.union([z.string(), z.number(), z.boolean()]) }),
  z.strictObject({ type: z.literal('url') }),
]);

const chain = z.array(step).min(1);

const assertion: z.ZodType<Assertion> = z.strictObject({
  min: z.number().exactOptional(),
  max: z.number().exactOptional(),
  matches: text.exactOptional(),
  oneOf: z
    .array(z.union([z.string(), z.number(), z.boolean()]))
    .min(1)
    .exactOptional(),
  maxChange: z.number().exactOptional(),
  else: z.enum(['empty', 'fail', 'hold']),
});

/** How a page is requested. */
export const requestSchema: z.ZodType<RequestTemplate> = z.discriminatedUnion('method', [
  z.strictObject({ method: z.literal('GET') }),
  z.strictObject({ method: z.literal('POST'), body: z.string(), contentType: text.exactOptional() }),
]);

export const mappingSchema: z.ZodType<Mapping> = z.strictObject({
  pages: z
    .array(
      z.strictObject({
        name: z.string(),
        urlPatterns: z.array(text),
        request: requestSchema.exactOptional(),
        urlParsers: z.array(z.strictObject({ description: z.string(), steps: chain })),
        rows: z.strictObject({ each: select, key: text, empty: select.nullable() }).nullable(),
        fields: z.array(
          z.strictObject({
            name: text,
            steps: chain,
            fallbacks: z.array(chain).min(1).exactOptional(),
            sourceOf: text.exactOptional(),
            required: z.boolean(),
            assert: assertion.exactOptional(),
          }),
        ),
      }),
    )
    .min(1),
});
