/**
 * The bytes of a part: gzip NDJSON. The same lines always yield the same bytes, so a repeated upload has the same key.
 */
import { gzipSync } from 'node:zlib';
import { partKey } from '../../shared/domain/keys.ts';
import { sha256Hex } from '../../shared/wire/signature.ts';
import type { PartRef } from '../../shared/wire/callbacks.ts';

export interface PartOwner {
  run: string;
  slot: number;
  epoch: number;
}

/** Bytes and name of part `seq`. Node writes no time into the gzip header; level and memory are fixed here. */
export function buildPart(
  owner: PartOwner,
  seq: number,
  lines: readonly string[],
): { bytes: Uint8Array; part: PartRef } {
  const bytes = gzipSync(`${lines.join('\n')}\n`, { level: 6, memLevel: 8 });
  const sha256 = sha256Hex(bytes);
  const key = partKey(owner.run, owner.slot, owner.epoch, seq, sha256);
  return { bytes, part: { seq, key, sha256, sizeBytes: bytes.length, products: lines.length } };
}
