/** Names and keys of a new run. */
import type { Random } from '../../shared/ports/random.ts';
import { createKeyPair, exportPrivateKey, exportPublicKey } from '../../shared/wire/signature.ts';

/** `20261121-021500-k3f9`: sorts by time, short enough for ELBv2 names, safe in keys and table names. */
export function newRunId(nowMs: number, random: Random): string {
  const stamp = new Date(nowMs).toISOString().replace(/[-:]/g, '').replace('T', '-').slice(0, 15);
  const alphabet = 'abcdefghjkmnpqrstuvwxyz23456789';
  const tail = Array.from({ length: 4 }, () => alphabet[Math.floor(random.next() * alphabet.length)]).join('');
  return `${stamp}-${tail}`;
}

/** The run's own Ed25519 pair: it signs offers and orders. */
export function newRunKeys(): { privateKey: string; publicKey: string } {
  const { privateKey, publicKey } = createKeyPair();
  return { privateKey: exportPrivateKey(privateKey), publicKey: exportPublicKey(publicKey) };
}
