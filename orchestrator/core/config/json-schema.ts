/** The JSON Schema of a mapping file, for editors: the shapes of both forms, from the schemas of the readers. */
/* oxlint-disable unicorn/no-thenable -- `then` is an option of the short form; here it is data and never called */
import { z } from 'zod';
import { assertOptions, fieldOptions, parserOptions, selectorOptions } from './field-options.ts';
import { PROCESSORS } from './processors.ts';
import { requestSection } from './request-section.ts';

const [firstStep, ...otherSteps] = [...PROCESSORS].map(([name, { parameters }]) =>
  z.strictObject({
    type: z.literal(name),
    parameters: parameters.safeParse({}).success ? parameters.exactOptional() : parameters,
  }),
);
const typedStep = z.discriminatedUnion('type', [firstStep!, ...otherSteps]).meta({ id: 'Processor' });

/** Names alone and names with parameters, as in `then`. */
const shortStep = z
  .union([
    z.enum([...PROCESSORS].filter(([, { parameters }]) => parameters.safeParse({}).success).map(([name]) => name)),
    ...[...PROCESSORS].map(([name, { parameters, main }]) => {
      const bare = main === null ? z.literal(true) : parameters.shape[main]!;
      return z.strictObject({ [name]: z.union([parameters, bare as z.ZodType]) });
    }),
  ])
  .meta({ id: 'Step' });

const then = z
  .array(shortStep)
  .min(1)
  .exactOptional()
  .describe(fieldOptions.shape.then.description ?? '');
const source = z.union([z.string().min(1), fieldOptions.extend({ then })]).meta({ id: 'Source' });
const field = z
  .union([source, z.array(source).min(1).describe('Several sources: the first that yields something counts.')])
  .meta({ id: 'Field' });
const selector = z.union([z.string().min(1), selectorOptions]);

const request = requestSection()
  .exactOptional()
  .describe('How pages of these URLs are requested, in place of `site.request` and GET.');

const shortPage = z
  .strictObject({
    name: z.string().min(1).exactOptional(),
    url_patterns: z.array(z.string().min(1)).exactOptional().describe('RE2 patterns of the URLs this mapping is for.'),
    request,
    url_parsers: z
      .array(z.union([z.string().min(1), parserOptions.extend({ then })]))
      .exactOptional()
      .describe('Links to further pages of the same product; for `orchestrator discover`, to what is crawled next.'),
    rows: z
      .strictObject({ each: selector, key: z.string().min(1), empty: selector.exactOptional() })
      .exactOptional()
      .describe('A page holds many records.'),
    fields: z.record(z.string().regex(/^[A-Za-z][A-Za-z0-9_]{0,63}$/), field),
  })
  .meta({ id: 'ShortMapping' });

/** Pages of links, which `orchestrator discover` goes through. */
const linkPage = shortPage
  .pick({ name: true, url_parsers: true })
  .extend({ url_patterns: z.array(z.string().min(1)).min(1) })
  .meta({ id: 'LinkMapping' });

const processors = z.array(typedStep).min(1);
const chainPage = z
  .strictObject({
    name: z.string().min(1).exactOptional(),
    url_patterns: z.array(z.strictObject({ type: z.literal('regex'), pattern: z.string().min(1) })).exactOptional(),
    request,
    url_parsers: z.array(z.strictObject({ description: z.string().exactOptional(), processors })).exactOptional(),
    rows: z.strictObject({ each: typedStep, key: z.string().min(1), empty: typedStep.exactOptional() }).exactOptional(),
    fields: z
      .array(
        z.strictObject({
          name: z.string().min(1),
          processors: z.union([processors, z.array(processors).min(1)]),
          required: z.boolean().exactOptional(),
          assert: assertOptions.exactOptional(),
        }),
      )
      .min(1),
  })
  .meta({ id: 'ChainMapping' });

const page = z.union([shortPage, chainPage, linkPage]);

/** The schema of the file as a plain JSON value. */
export function mappingJsonSchema(): object {
  const file = z.union([page, z.array(page).min(1), z.strictObject({ mappings: z.array(page).min(1) })]);
  return z.toJSONSchema(file, { io: 'input' });
}
