/** S3's checksums, each as a running hash that returns the base64 used in headers. */
import { createHash } from 'node:crypto';
import { crc32 } from 'node:zlib';

export const CHECKSUMS = ['crc32', 'crc32c', 'crc64nvme', 'sha1', 'sha256'] as const;
export type ChecksumName = (typeof CHECKSUMS)[number];

export interface RunningChecksum {
  update(chunk: Uint8Array): void;
  /** Base64 of the big-endian value. */
  digest(): string;
}

export function startChecksum(name: ChecksumName): RunningChecksum {
  switch (name) {
    case 'crc32':
      return crc32Checksum((chunk, value) => crc32(chunk, value));
    case 'crc32c':
      return crc32Checksum(crc32c);
    case 'crc64nvme':
      return crc64Checksum();
    case 'sha1':
    case 'sha256': {
      const hash = createHash(name);
      return { update: (chunk) => void hash.update(chunk), digest: () => hash.digest('base64') };
    }
  }
}

function crc32Checksum(step: (chunk: Uint8Array, value: number) => number): RunningChecksum {
  let value = 0;
  return {
    update(chunk) {
      value = step(chunk, value);
    },
    digest() {
      const bytes = Buffer.alloc(4);
      bytes.writeUInt32BE(value >>> 0);
      return bytes.toString('base64');
    },
  };
}

/** Castagnoli's polynomial, reflected. */
const CRC32C_TABLE = Uint32Array.from({ length: 256 }, (_, n) => {
  let c = n;
  for (let k = 0; k < 8; k++) c = c & 1 ? (c >>> 1) ^ 0x82f63b78 : c >>> 1;
  return c >>> 0;
});

function crc32c(chunk: Uint8Array, value: number): number {
  let c = ~value >>> 0;
  for (let i = 0; i < chunk.length; i++) c = CRC32C_TABLE[(c ^ chunk[i]!) & 0xff]! ^ (c >>> 8);
  return ~c >>> 0;
}

/** The NVMe polynomial, reflected; stored in two halves because BigInt would be a hundred times slower. */
const CRC64_HIGH = new Uint32Array(256);
const CRC64_LOW = new Uint32Array(256);
for (let n = 0; n < 256; n++) {
  let value = BigInt(n);
  for (let k = 0; k < 8; k++) value = value & 1n ? (value >> 1n) ^ 0x9a6c9329ac4bc9b5n : value >> 1n;
  CRC64_HIGH[n] = Number(value >> 32n);
  CRC64_LOW[n] = Number(value & 0xffffffffn);
}

function crc64Checksum(): RunningChecksum {
  let high = 0xffffffff;
  let low = 0xffffffff;
  return {
    update(chunk) {
      for (let i = 0; i < chunk.length; i++) {
        const index = (low ^ chunk[i]!) & 0xff;
        low = (((low >>> 8) | (high << 24)) ^ CRC64_LOW[index]!) >>> 0;
        high = ((high >>> 8) ^ CRC64_HIGH[index]!) >>> 0;
      }
    },
    digest() {
      const bytes = Buffer.alloc(8);
      bytes.writeUInt32BE(~high >>> 0, 0);
      bytes.writeUInt32BE(~low >>> 0, 4);
      return bytes.toString('base64');
    },
  };
}
