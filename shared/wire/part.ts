/**
 * The objects an instance writes to S3: parts (gzip NDJSON, one line per product) and the manifest that closes an
 * epoch.
 */
import type { KeyObject } from 'node:crypto';
import { z } from 'zod';
import { type ChainValue, MAX_LINKS, type Row, type ShownMarks } from '../domain/mapping.ts';
import { MAX_AMBIGUOUS_CHARS } from '../domain/ambiguous-number.ts';
import { LEFT_OUT_REASONS, type LeftOut } from '../domain/left-out.ts';
import { FAILURE_REASONS } from '../domain/outcome.ts';
import { foreignList, parseForeign } from './foreign-json.ts';
import { logRefSchema } from './request-log.ts';
import { evidenceSchema, partRefSchema, progressSchema } from './callbacks.ts';
import { signedObject } from './signed-object.ts';
import { pageStampSchema, validatorsSchema } from './validators.ts';

/** A longer link is not reported. */
export const MAX_LINK_CHARS = 2_000;

/** Maximum products per part, so that loading one needs bounded memory and one transaction. */
export const PART_PRODUCTS = 1_000;

/** Gap left in the part numbers when records of the journal were lost: the numbers after them may have been used. */
export const SEQ_JUMP = 1_000;

/** Maximum bytes of JSON for all rows of one product. */
export const MAX_ROWS_BYTES = 8_000_000;
/** Maximum bytes of a line: besides its rows, up to 1,000 links of 2,000 characters, and what surrounds them. */
export const MAX_LINE_BYTES = 12_000_000;

/**
 * Hand-written: a union would try each of its types on every value of a million rows, half of the time to read a part.
 */
const row = z.custom<Row>(isRow);

function isRow(given: unknown): boolean {
  return typeof given === 'object' && given !== null && !Array.isArray(given) && Object.values(given).every(isValue);
}

function isValue(given: unknown): boolean {
  return given === null || (Array.isArray(given) ? given.every(isOne) : isOne(given));
}

function isOne(given: unknown): boolean {
  return isScalar(given) || isAmbiguousNumber(given);
}

/** A number that the main server resolves once it knows the column. */
function isAmbiguousNumber(given: unknown): boolean {
  if (typeof given !== 'object' || given === null) return false;
  const { text, point, comma, ...others } = given as Record<string, unknown>;
  return (
    typeof text === 'string' &&
    text.length <= MAX_AMBIGUOUS_CHARS &&
    isReading(point) &&
    isReading(comma) &&
    Object.keys(others).length === 0
  );
}

const isReading = (given: unknown): boolean => given === null || Number.isFinite(given);

const shownMarks = z.custom<ShownMarks>(
  (given) =>
    typeof given === 'object' && given !== null && Object.values(given).every((mark) => mark === '.' || mark === ','),
);

function isScalar(given: unknown): boolean {
  return typeof given === 'string' || typeof given === 'boolean' || Number.isFinite(given);
}

/** One row of the result table. */
export const keyedRowSchema = z.strictObject({
  key: z.string().min(1).nullable(),
  row,
  marks: shownMarks.exactOptional(),
});

/** One value of a chain. */
export const chainValueSchema = z.custom<ChainValue>(isOne);

export const leftOutSchema: z.ZodType<LeftOut> = z.partialRecord(
  z.enum(LEFT_OUT_REASONS),
  z.strictObject({ pages: z.int().positive(), example: z.string().max(MAX_LINK_CHARS) }),
);

const moveSchema = z.strictObject({
  /** Where its page is now. */
  page: z.string().max(MAX_LINK_CHARS),
  /** The robots.txt of another host that holds for that URL; omitted: that of its own origin. */
  robots: z.string().max(MAX_LINK_CHARS).exactOptional(),
});
export type Move = z.infer<typeof moveSchema>;

const common = {
  n: z.int().positive(),
  id: z.string().min(1),
  url: z.string(),
  /** When the outcome was known. */
  at: z.iso.datetime(),
  attempts: z.int().positive(),
  /** The failed attempt before this one. */
  first: z
    .strictObject({
      at: z.iso.datetime(),
      reason: z.enum(FAILURE_REASONS),
      detail: z.string().max(500),
      evidence: evidenceSchema.exactOptional(),
    })
    .exactOptional(),
};

/** One line of a part: the outcome of one product. */
export const itemResultSchema = z.discriminatedUnion('outcome', [
  z.strictObject({
    ...common,
    outcome: z.literal('stored'),
    /** One record with the key null; for a mapping with `rows` any number, each with its own key. */
    rows: foreignList(keyedRowSchema),
    /** Where the request for its page ended, if elsewhere than at `url`. */
    finalUrl: z.string().max(MAX_LINK_CHARS).exactOptional(),
    /** The page's links as absolute URLs, in a discovery. */
    links: foreignList(z.string().max(MAX_LINK_CHARS)).check(z.maxLength(MAX_LINKS)).exactOptional(),
    /** The page's validators, with `site.conditional`, if one page alone gave the rows. */
    page: pageStampSchema.exactOptional(),
    /** The site answered 304 to these: `rows` is empty, and the stored rows are still right. */
    unchanged: validatorsSchema.exactOptional(),
    /** The further pages that it comes without; omitted: none. */
    leftOut: leftOutSchema.exactOptional(),
    /** One of these may have rows of the product: `rows` are not all that it has. */
    partial: z.literal(true).exactOptional(),
  }),
  z.strictObject({ ...common, outcome: z.literal('gone'), status: z.int() }),
  z.strictObject({
    ...common,
    outcome: z.literal('failed'),
    reason: z.enum(FAILURE_REASONS),
    /** One line for users: the status, the error, the missing field. */
    detail: z.string().max(500),
    /** The reply, where there was one. */
    evidence: evidenceSchema.exactOptional(),
    /** Of many hosts: where the product goes on, at another host. The main server makes it a product of that host. */
    moved: moveSchema.exactOptional(),
  }),
]);
export type ItemResult = z.infer<typeof itemResultSchema>;

export const manifestSchema = z.strictObject({
  version: z.literal(1),
  run: z.string(),
  slot: z.int(),
  epoch: z.int(),
  instanceId: z.string(),
  /** The main server closes a lost instance's epoch with the parts in the bucket. */
  closedBy: z.enum(['instance', 'main-server']),
  closedAt: z.iso.datetime(),
  parts: foreignList(partRefSchema),
  /** The objects of its request log; omitted by instances that keep none. */
  requestLogs: foreignList(logRefSchema).exactOptional(),
  /** Its journal was damaged: it may have reported parts that it no longer knows of. They count, too. */
  damaged: z.literal(true).exactOptional(),
  progress: progressSchema,
});
export type Manifest = z.infer<typeof manifestSchema>;

/** Signed with the instance's key, or the run's. */
const signedManifest = signedObject('manifest');

/** The bytes to store for a manifest. */
export const encodeManifest = (manifest: Manifest, privateKey: KeyObject): Uint8Array =>
  signedManifest.encode(manifest, privateKey);

/**
 * The manifest in these bytes, without checking its signature; throws an Error of one sentence when the form is wrong.
 */
export const readUnsigned = (bytes: Uint8Array): Manifest =>
  parseForeign(manifestSchema, signedManifest.read(bytes).text);

/** The manifest in these bytes; throws an Error of one sentence when the form or the signature is wrong. */
export function decodeManifest(bytes: Uint8Array, publicKey: KeyObject): Manifest {
  const { text, isSignedBy } = signedManifest.read(bytes);
  if (!isSignedBy(publicKey)) throw new Error('the manifest is not signed by its instance');
  return parseForeign(manifestSchema, text);
}
