/**
 * The run's description, written to the bucket before its first launch, so that its results can be used if the database
 * is lost.
 */
import type { KeyObject } from 'node:crypto';
import { z } from 'zod';
import { parseForeign } from './foreign-json.ts';
import { importPublicKey } from './signature.ts';
import { signedObject } from './signed-object.ts';

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
  /** The lists of products, in order: each line of such an object is one product `{ n, id, url? }`. */
  products: z.array(
    z.strictObject({ key: z.string(), sha256: z.string().regex(/^[0-9a-f]{64}$/), products: z.int().positive() }),
  ),
});
export type RunDescription = z.infer<typeof runDescriptionSchema>;

export const listedProductSchema = z.strictObject({
  n: z.int().positive(),
  id: z.string().min(1),
  /** Its own; omitted where the ID makes it. */
  url: z.string().min(1).exactOptional(),
});

const signedDescription = signedObject('description');

/** The bytes to store, signed with the run's key. */
export const encodeRunDescription = (description: RunDescription, privateKey: KeyObject): Uint8Array =>
  signedDescription.encode(description, privateKey);

/**
 * The description in these bytes; throws when the form or the signature is wrong. It contains its own verification key,
 * so this proves integrity, not authorship. The bucket's policy ensures that only the main server may write it.
 */
export function decodeRunDescription(bytes: Uint8Array): RunDescription {
  const { text, isSignedBy } = signedDescription.read(bytes);
  const description = parseForeign(runDescriptionSchema, text);
  if (!isSignedBy(importPublicKey(description.publicKey))) throw new Error('the description is not signed by its run');
  return description;
}
