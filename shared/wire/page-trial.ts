/**
 * A trial of one page: the request of `orchestrator extract` to the program crawl-api/extract-page, and its answer. One
 * JSON document each, on stdin and stdout.
 */
import { z } from 'zod';
import { FAILURE_REASONS } from '../domain/outcome.ts';
import { mappingSchema } from './mapping-schema.ts';
import { robotsPolicySchema } from './callbacks.ts';
import { chainValueSchema, keyedRowSchema, leftOutSchema } from './part.ts';
import { secretsSchema } from './secrets.ts';
import { siteSettingsSchema } from './site-settings.ts';

export const pageTrialSchema = z.strictObject({
  mapping: mappingSchema,
  /** The URL of the page; with `file`, the URL that the file stands for. */
  url: z.string(),
  /** The product's ID, which the requests of further pages may have; omitted: it is not known. */
  id: z.string().exactOptional(),
  /** What a POST request sends; omitted: the page is requested by GET. */
  post: z.strictObject({ body: z.string(), contentType: z.string().exactOptional() }).exactOptional(),
  /** Absolute path of a file with the page's bytes; null for a request to `url`. */
  file: z.string().nullable(),
  /** Further pages of the product are read, too; omitted: they are not. */
  further: z
    .strictObject({
      /** The rules of the page's host and of site.follow.hosts. */
      robots: robotsPolicySchema,
      /** The prefixes of site.follow.deny. */
      deny: z.array(z.string()),
      /** Maximum pages to read, its own among them. */
      pages: z.int().positive(),
    })
    .exactOptional(),
  /** Answer also with the page itself, for `init`. */
  survey: z.boolean().exactOptional(),
  site: siteSettingsSchema.extend({ render: z.enum(['http', 'browser']) }),
  /** What stands for secrets in `site.userHeaders`; omitted: none is needed. */
  secrets: secretsSchema.exactOptional(),
  /** The browser to use; null searches for one. */
  chromiumPath: z.string().nullable(),
});
export type PageTrial = z.infer<typeof pageTrialSchema>;

/** A field's values after one step. */
const stepTraceSchema = z.object({
  /** The step itself, such as `css .price`. */
  step: z.string(),
  /** The field's source that it belongs to, from 0. */
  source: z.number(),
  /** Number of values after it. */
  count: z.number(),
  /** The first of them, truncated. */
  values: z.array(chainValueSchema),
});
export type StepTrace = z.infer<typeof stepTraceSchema>;

/**
 * A page, and selectors for what it shows; each list with the most telling ones first, empty where nothing is clear.
 */
const surveySchema = z.strictObject({
  /** The decoded text; of a browser as it was when it was read. */
  text: z.string(),
  /** The heading that names what the page is about. */
  heading: z.array(z.string()),
  /** The price beside it. */
  price: z.array(z.string()),
});

const hopSchema = z.object({ url: z.string(), status: z.number().nullable() });

const furtherSchema = z.strictObject({
  /** Every request in order. */
  requests: z.array(hopSchema),
  rows: z.array(keyedRowSchema.extend({ key: z.string().nullable() })).nullable(),
  /** The first required field that no page has; null when there is none. */
  missing: z.string().nullable(),
  leftOut: leftOutSchema,
  /** Links that a run would follow, beyond the pages that the trial may read. */
  notRead: z.int(),
  /** Pages that were left out may have rows of the product. */
  partial: z.boolean(),
  /** The page that fails the product; null: none. */
  failed: z.strictObject({ reason: z.string(), detail: z.string() }).nullable(),
});
export type FurtherAnswer = z.infer<typeof furtherSchema>;

export const trialAnswerSchema = z.discriminatedUnion('outcome', [
  z.strictObject({
    outcome: z.literal('read'),
    /** Every request in order; the last one returned the page. Empty for a file. */
    requests: z.array(hopSchema),
    kind: z.enum(['html', 'xml', 'json']),
    /** Name of the mapping that was used; null when none applies to this URL. */
    mapping: z.string().nullable(),
    rows: z.array(keyedRowSchema.extend({ key: z.string().nullable() })).nullable(),
    /** The first required field without a value, `rows` or `mapping`; null when the product would be stored. */
    missing: z.string().nullable(),
    links: z.array(z.string()),
    /** What the product is with its further pages; omitted where none was to be read. */
    further: furtherSchema.exactOptional(),
    /** The survey of the page, where it was asked for. */
    survey: surveySchema.exactOptional(),
    /** The paths that have a value on this page, by `json_ld` or `microdata`, where one of a field gave nothing. */
    paths: z.array(z.strictObject({ source: z.string(), paths: z.array(z.string()) })),
    /** How each field got its value; with rows those of the first record. */
    trace: z.array(
      z.strictObject({
        field: z.string(),
        /** The source that gave the value; null without a value from the page. */
        source: z.number().nullable(),
        steps: z.array(stepTraceSchema),
      }),
    ),
  }),
  z.strictObject({
    outcome: z.literal('failed'),
    requests: z.array(hopSchema),
    reason: z.enum([...FAILURE_REASONS, 'gone']),
    detail: z.string(),
  }),
  /** The trial itself failed: an AppError. */
  z.strictObject({ outcome: z.literal('error'), code: z.string(), message: z.string(), hint: z.string().nullable() }),
]);
export type TrialAnswer = z.infer<typeof trialAnswerSchema>;
