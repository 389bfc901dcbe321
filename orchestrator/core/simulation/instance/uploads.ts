/**
 * What a modelled instance stores in the bucket: its parts, and the manifest that closes its epoch. One object at a
 * time.
 */
import type { KeyObject } from 'node:crypto';
import { crc32 } from 'node:zlib';
import { manifestKey, partKey } from '../../../../shared/domain/keys.ts';
import type { ObjectStore } from '../../../../shared/ports/object-store.ts';
import type { Completion, Progress } from '../../../../shared/wire/callbacks.ts';
import { encodeManifest, type ItemResult, PART_PRODUCTS } from '../../../../shared/wire/part.ts';
import { signPart } from '../../../../shared/wire/part-signature.ts';
import type { InstanceSettings } from '../../../../shared/wire/settings.ts';
import { sha256Hex, type Signatures } from '../../../../shared/wire/signature.ts';
import type { Life } from './life.ts';
import type { Shard } from './shard.ts';

/** Results by the hash of their part: to read them again would take more time than the rest of the model. */
export type WrittenParts = Map<string, readonly ItemResult[]>;

export interface UploadParts {
  id: string;
  settings: InstanceSettings;
  life: Life;
  shard: Shard;
  objects: ObjectStore;
  uploadMs: number;
  signatures: Signatures;
  /** Notes what is in its parts. */
  written: WrittenParts;
  /** Signs parts and manifest. */
  privateKey: KeyObject;
  /** A part is in the bucket, or the bucket takes nothing. */
  onChange: () => void;
}

interface Manifest {
  bytes: Uint8Array;
  completion: Completion;
  isStored: boolean;
}

/** The pause between two tries of what did not succeed. */
export const RETRY_MS = 1_000;

export class SimulatedUploads {
  /** Why the bucket takes nothing; null while it does. */
  problem: string | null = null;
  /** The longest; null before the first one of this process. */
  slowestMs: number | null = null;
  readonly #p: UploadParts;
  /** When the oldest result has waited long enough. */
  #dueMs = Infinity;
  #nextTryMs = -Infinity;
  #isUploading = false;
  /** How many uploads in a row were refused for lack of a right. */
  #refusals = 0;
  #manifest: Manifest | null = null;

  constructor(parts: UploadParts) {
    this.#p = parts;
  }

  /** The bucket denies it the right to store. */
  get isRefused(): boolean {
    return this.#refusals > 1;
  }

  get hasManifest(): boolean {
    return this.#manifest !== null;
  }

  /** Everything that there will be is in parts, and these are in the bucket. */
  get isEmpty(): boolean {
    return this.#p.shard.uncut === 0 && this.#p.shard.cut === null;
  }

  /** The process died: what it had begun has no end, and the wait of its results begins again. */
  restart(atMs: number): void {
    this.problem = null;
    this.slowestMs = null;
    this.#refusals = 0;
    this.#isUploading = false;
    this.#nextTryMs = atMs;
    if (this.#p.shard.uncut > 0) this.#dueMs = atMs + this.#p.settings.partMs;
  }

  /** The first result since the last part came at this time. */
  noteFirst(atMs: number): void {
    this.#dueMs = atMs + this.#p.settings.partMs;
  }

  /** Uploads what is there now; more may follow. */
  hurry(atMs: number): void {
    this.#dueMs = Math.min(this.#dueMs, atMs);
  }

  /** Uploads a part when it is time. `isClosing`: no more results follow. */
  advance(now: number, isClosing: boolean, forged: ItemResult[]): void {
    if (this.#isUploading || now < this.#nextTryMs) return;
    const { shard } = this.#p;
    const isDue = now >= this.#dueMs || isClosing || shard.uncut >= PART_PRODUCTS;
    if (shard.cut !== null || (shard.uncut > 0 && isDue)) this.#uploadPart(forged);
  }

  /** When it has to act again; Infinity for never. */
  dueMs(now: number, isClosing: boolean): number {
    if (this.#isUploading || (this.isEmpty && !isClosing)) return Infinity;
    const isDue = isClosing || this.#p.shard.cut !== null;
    return Math.max(now + 1, this.#nextTryMs, isDue ? now : this.#dueMs);
  }

  #uploadPart(forged: ItemResult[]): void {
    const { shard, settings, life, uploadMs, privateKey, signatures, written } = this.#p;
    const { seq, results } = shard.cut ?? shard.cutPart(forged.splice(0));
    const { run, slot, epoch } = settings;
    this.#isUploading = true;
    life.after(uploadMs, () => {
      const gzip = storedGzip(results.map((r) => JSON.stringify(r)).join('\n'));
      const bytes = signPart(gzip, { run, slot, epoch, seq }, privateKey, signatures);
      const sha256 = sha256Hex(bytes);
      written.set(sha256, results);
      const key = partKey(run, { slot, epoch, seq, sha256, session: this.#roleSession });
      this.#put(key, bytes, 'application/gzip', () => {
        shard.noteStored({ seq, key, sha256, sizeBytes: bytes.length, products: results.length });
        this.#p.onChange();
      });
    });
  }

  /** Stores the manifest, the same one in every try; `then` gets the message for the main server. */
  close(closedAtMs: number, progress: Progress, then: (completion: Completion) => void): void {
    if (this.#isUploading || closedAtMs < this.#nextTryMs) return;
    this.#nextTryMs = closedAtMs + this.#p.uploadMs + RETRY_MS;
    const { life, uploadMs } = this.#p;
    const manifest = (this.#manifest ??= this.#writeManifest(closedAtMs, progress));
    if (manifest.isStored) return then(manifest.completion);
    this.#isUploading = true;
    life.after(uploadMs, () =>
      this.#put(manifest.completion.manifestKey, manifest.bytes, 'application/json', () => {
        manifest.isStored = true;
        then(manifest.completion);
      }),
    );
  }

  #writeManifest(closedAtMs: number, progress: Progress): Manifest {
    const { settings, shard, id, privateKey } = this.#p;
    const { run, slot, epoch } = settings;
    const closedAt = new Date(closedAtMs).toISOString();
    const manifest = { version: 1, run, slot, epoch, instanceId: id, closedBy: 'instance', closedAt } as const;
    const damaged = shard.damaged ? { damaged: true as const } : {};
    const bytes = encodeManifest({ ...manifest, ...damaged, parts: [...shard.parts], progress }, privateKey);
    const key = manifestKey(run, slot, epoch, this.#roleSession);
    return { bytes, completion: { manifestKey: key, manifestSha256: sha256Hex(bytes) }, isStored: false };
  }

  #put(key: string, bytes: Uint8Array, contentType: string, then: () => void): void {
    const { life, objects, uploadMs, onChange } = this.#p;
    life.settle(objects.putIfAbsent(key, bytes, contentType), (failure) => {
      this.#isUploading = false;
      if (failure === null) {
        this.problem = null;
        this.#refusals = 0;
        this.slowestMs = Math.max(this.slowestMs ?? 0, uploadMs);
        return then();
      }
      // The bucket does not answer: what is in the journal waits.
      const isRefused = failure instanceof Error && failure.name === 'AccessDenied';
      this.#refusals = isRefused ? this.#refusals + 1 : 0;
      const isNews = this.problem === null || this.#refusals === 2;
      this.problem = 'the bucket does not take results';
      this.#nextTryMs = life.now() + RETRY_MS;
      if (isNews) onChange();
    });
  }

  get #roleSession(): string | null {
    return this.#p.settings.s3.roleSession === true ? `AROASIMULATED00000001:${this.#p.id}` : null;
  }
}

/** A gzip header without name and time (RFC 1952), and what one block holds as it is (RFC 1951, 3.2.4). */
const GZIP_HEADER = Buffer.from([0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff]);
const BLOCK_BYTES = 65_535;

/** The text as gzip that packs nothing: a compressor takes longer to set up than all else that a small part needs. */
function storedGzip(text: string): Buffer {
  const content = Buffer.from(text);
  const pieces = [GZIP_HEADER];
  for (let at = 0; at === 0 || at < content.length; at += BLOCK_BYTES) {
    const block = content.subarray(at, at + BLOCK_BYTES);
    const head = Buffer.alloc(5);
    head.writeUInt8(at + BLOCK_BYTES < content.length ? 0 : 1);
    head.writeUInt16LE(block.length, 1);
    head.writeUInt16LE(0xffff - block.length, 3);
    pieces.push(head, block);
  }
  const trailer = Buffer.alloc(8);
  trailer.writeUInt32LE(crc32(content));
  trailer.writeUInt32LE(content.length, 4);
  return Buffer.concat([...pieces, trailer]);
}
