/** The objects an instance leaves in S3: parts (gzip NDJSON, one line a product) and the manifest that closes an epoch. */
import type { KeyObject } from 'node:crypto';
import { sign, verify } from 'node:crypto';
import { z } from 'zod';
import { FAILURE_REASONS } from '../domain/outcome.ts';
import { partRefSchema, progressSchema } from './callbacks.ts';

/** A part holds at most this many products, so that loading one needs bounded memory and one transaction. */
export const PART_PRODUCTS = 1_000;

const value = z.union([z.string(), z.number(), z.null(), z.array(z.union([z.string(), z.number()]))]);
const common = {
  n: z.int().positive(),
  id: z.string().min(1),
  url: z.string(),
  /** When the outcome was known. */
  at: z.iso.datetime(),
  attempts: z.int().positive(),
};

/** One line of a part: the outcome of one product. */
export const itemResultSchema = z.discriminatedUnion('outcome', [
  z.strictObject({ ...common, outcome: z.literal('stored'), row: z.record(z.string(), value) }),
  z.strictObject({ ...common, outcome: z.literal('gone'), status: z.int() }),
  z.strictObject({
    ...common,
    outcome: z.literal('failed'),
    reason: z.enum(FAILURE_REASONS),
    /** One line for people: the status, the error, the field that was missing. */
    detail: z.string().max(500),
  }),
]);
export type ItemResult = z.infer<typeof itemResultSchema>;

export const manifestSchema = z.strictObject({
  version: z.literal(1),
  run: z.string(),
  slot: z.int(),
  epoch: z.int(),
  instanceId: z.string(),
  /** The main server closes the epoch of a lost instance with what is in the bucket. */
  closedBy: z.enum(['instance', 'main-server']),
  closedAt: z.iso.datetime(),
  parts: z.array(partRefSchema),
  progress: progressSchema,
});
export type Manifest = z.infer<typeof manifestSchema>;

/** The object in the bucket: the manifest's exact text, and a signature over it by the instance's key (or the run's). */
export const signedManifestSchema = z.strictObject({ manifest: z.string(), signature: z.string() });

/** The bytes to store for a manifest. */
export function encodeManifest(manifest: Manifest, privateKey: KeyObject): Uint8Array {
  const text = JSON.stringify(manifest);
  const signature = sign(null, Buffer.from(text), privateKey).toString('base64');
  return Buffer.from(JSON.stringify({ manifest: text, signature }));
}

/** The manifest in these bytes; throws when the form or the signature is wrong. */
export function decodeManifest(bytes: Uint8Array, publicKey: KeyObject): Manifest {
  const { manifest, signature } = signedManifestSchema.parse(JSON.parse(Buffer.from(bytes).toString('utf8')));
  if (!verify(null, Buffer.from(manifest), publicKey, Buffer.from(signature, 'base64')))
    throw new Error('the manifest is not signed by its instance');
  return manifestSchema.parse(JSON.parse(manifest));
}
