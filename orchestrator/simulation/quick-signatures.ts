/**
 * Signatures that cost next to nothing: who signed which message, without the bytes of its body. In a closed world nobody signs with a
 * key that is not his, and what Ed25519 proves is tested elsewhere; checking it would be most of the time of a simulated run.
 */
import type { KeyObject } from 'node:crypto';
import { createPublicKey } from 'node:crypto';
import type { Envelope, Signatures } from '../../shared/wire/signature.ts';
import { exportPublicKey } from '../../shared/wire/signature.ts';

const names = new WeakMap<KeyObject, string>();

/** The public key as text, for either half of a pair. */
function nameOf(key: KeyObject): string {
  let name = names.get(key);
  if (name === undefined) {
    name = exportPublicKey(key.type === 'private' ? createPublicKey(key) : key);
    names.set(key, name);
  }
  return name;
}

function signatureOf(key: KeyObject, envelope: Envelope, body: Uint8Array | string): string {
  const { method, path, run, slot, epoch, counter } = envelope;
  return `${nameOf(key)} ${method} ${path} ${run} ${slot} ${epoch} ${counter} ${body.length}`;
}

export const QUICK_SIGNATURES: Signatures = {
  sign: signatureOf,
  verify: (publicKey, envelope, body, signature) => signature === signatureOf(publicKey, envelope, body),
};
