/** Short names of texts. */
import { hash as digest } from 'node:crypto';

export const HASH_BYTES = 16;

/** The first 16 bytes of the key's SHA-256. */
export function hashOf(key: string): Buffer {
  // As text and back: asking for a Buffer of 32 bytes takes three times as long.
  return Buffer.from(digest('sha256', key, 'binary').slice(0, HASH_BYTES), 'latin1');
}
