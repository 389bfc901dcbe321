/**
 * An object in the bucket that proves who wrote it: its exact text under a name that says what it is, and an Ed25519
 * signature over that text.
 */
import { type KeyObject, sign, verify } from 'node:crypto';
import { z } from 'zod';
import { parseForeign } from './foreign-json.ts';

/** One kind of signed object. */
export interface SignedObject {
  /** The bytes to store. */
  encode(value: unknown, privateKey: KeyObject): Uint8Array;
  /** The signed text, unchecked; throws an Error of one sentence when the form is wrong. */
  read(bytes: Uint8Array): { text: Buffer; isSignedBy: (publicKey: KeyObject) => boolean };
}

export function signedObject(name: string): SignedObject {
  const schema = z.strictObject({ [name]: z.string(), signature: z.string() });
  return {
    encode(value, privateKey) {
      const text = JSON.stringify(value);
      const signature = sign(null, Buffer.from(text), privateKey).toString('base64');
      return Buffer.from(JSON.stringify({ [name]: text, signature }));
    },
    read(bytes) {
      const object = parseForeign(schema, bytes);
      const text = Buffer.from(object[name]!);
      const signature = Buffer.from(object.signature!, 'base64');
      return { text, isSignedBy: (publicKey) => verify(null, text, publicKey, signature) };
    },
  };
}
