/**
 * The run's description, written to the bucket before its first launch, so that its results can be used if the database
 * is lost.
 */
import { type KeyObject, sign, verify } from 'node:crypto';
import { z } from 'zod';
import { parseForeign } from './foreign-json.ts';
import { importPublicKey } from './signature.ts';

const runDescriptionSchema = z.strictObject({
  version: z.literal(1),
  run: z.string(),
  parent: z.string().nullable(),
  startedAt: z.iso.datetime(),
  deadline: z.iso.datetime(),
  dryRun: z.boolean(),
  planned: z.int().nonnegative(),
  duplicates: z.int().nonnegative(),
  /** Base64 SPKI of the run's key, which signs this and the main server's manifests. */
  publicKey: z.string(),
  /** The settings and the plan from the run's row, without secrets. */
  settings: z.record(z.string(), z.unknown()),
  plan: z.record(z.string(), z.unknown()),
  /** The lists of products, in order: each line of such an object is one product `{ n, id }`. */
  products: z.array(
    z.strictObject({ key: z.string(), sha256: z.string().regex(/^[0-9a-f]{64}$/), products: z.int().positive() }),
  ),
});
export type RunDescription = z.infer<typeof runDescriptionSchema>;

export const listedProductSchema = z.strictObject({ n: z.int().positive(), id: z.string().min(1) });

const signedSchema = z.strictObject({ description: z.string(), signature: z.string() });

/** The bytes to store: the exact text, and a signature over it with the run's key. */
export function encodeRunDescription(description: RunDescription, privateKey: KeyObject): Uint8Array {
  const text = JSON.stringify(description);
  const signature = sign(null, Buffer.from(text), privateKey).toString('base64');
  return Buffer.from(JSON.stringify({ description: text, signature }));
}

/**
 * The description in these bytes; throws when the form or the signature is wrong. It contains its own verification key,
 * so this proves integrity, not authorship. The bucket's policy ensures that only the main server may write it.
 */
export function decodeRunDescription(bytes: Uint8Array): RunDescription {
  const { description, signature } = parseForeign(signedSchema, bytes);
  const parsed = parseForeign(runDescriptionSchema, Buffer.from(description));
  if (!verify(null, Buffer.from(description), importPublicKey(parsed.publicKey), Buffer.from(signature, 'base64')))
    throw new Error('the description is not signed by its run');
  return parsed;
}
