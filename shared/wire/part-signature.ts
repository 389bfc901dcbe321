/**
 * Who wrote a part, or an object of the request log: an Ed25519 signature in the gzip header, in an extra field (RFC
 * 1952, 2.3.1.1) that every other reader of gzip skips. So it is checked before anything is unpacked, and a part is
 * still one object of plain gzip.
 */
import type { KeyObject } from 'node:crypto';
import type { EpochId } from '../domain/epoch-id.ts';
import { ED25519, sha256Hex, type Signatures } from './signature.ts';

/** The place for which a part is signed: in any other it proves nothing. */
export interface PartName extends EpochId {
  run: string;
  seq: number;
  /** Omitted: a part. */
  of?: 'part' | 'requests';
}

/** Bytes before the extra field; byte 3 has the flags. */
const HEADER_BYTES = 10;
const FLAGS_AT = 3;
const FEXTRA = 4;
const SIGNATURE_BYTES = 64;
/** Length of the extra field, then the one subfield in it: `CF` and its length. All numbers are little-endian. */
const FIELD_HEAD = Buffer.from([4 + SIGNATURE_BYTES, 0, 0x43, 0x46, SIGNATURE_BYTES, 0]);
const FIELD_BYTES = FIELD_HEAD.length + SIGNATURE_BYTES;

function signedText({ of = 'part', run, slot, epoch, seq }: PartName, unsigned: Uint8Array): Buffer {
  return Buffer.from([`crawlfleet-${of}-1`, run, slot, epoch, seq, sha256Hex(unsigned)].join('\n'));
}

/**
 * The same gzip with a signature in its header; the same bytes for the same part and key. Takes what Node's zlib
 * writes.
 */
export function signPart(
  unsigned: Uint8Array,
  place: PartName,
  privateKey: KeyObject,
  signatures: Pick<Signatures, 'signText'> = ED25519,
): Buffer {
  const signature = signatures.signText(privateKey, signedText(place, unsigned));
  const header = Buffer.from(unsigned.subarray(0, HEADER_BYTES));
  header[FLAGS_AT]! |= FEXTRA;
  return Buffer.concat([header, FIELD_HEAD, signature, unsigned.subarray(HEADER_BYTES)]);
}

/**
 * True if the holder of the key has signed these bytes for this place; false for any other bytes, whatever they are.
 */
export function isSignedPart(
  bytes: Uint8Array,
  place: PartName,
  publicKey: KeyObject,
  signatures: Pick<Signatures, 'verifyText'> = ED25519,
): boolean {
  if (bytes.length < HEADER_BYTES + FIELD_BYTES || bytes[FLAGS_AT] !== FEXTRA) return false;
  const signatureAt = HEADER_BYTES + FIELD_HEAD.length;
  if (!FIELD_HEAD.equals(bytes.subarray(HEADER_BYTES, signatureAt))) return false;
  const unsigned = Buffer.concat([bytes.subarray(0, HEADER_BYTES), bytes.subarray(HEADER_BYTES + FIELD_BYTES)]);
  unsigned[FLAGS_AT] = 0;
  const signature = bytes.subarray(signatureAt, HEADER_BYTES + FIELD_BYTES);
  return signatures.verifyText(publicKey, signedText(place, unsigned), signature);
}
