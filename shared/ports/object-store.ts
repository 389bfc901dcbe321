/** Where parts, manifests and bundles go: one bucket, as far as we use S3. */
import { AppError } from '../domain/errors.ts';

/** No object that is read whole is larger: a part is some megabytes, and 100 instances' worth of manifest one. */
export const MAX_OBJECT_BYTES = 64_000_000;

/** For an object that is larger than it may be. */
export const objectTooLarge = (key: string, maxBytes: number): AppError =>
  new AppError('object-corrupt', `the object ${key} has more bytes than the ${maxBytes} that it may have`);

export interface ObjectInfo {
  key: string;
  sizeBytes: number;
  /** When it was written, by the store's clock; left out where the store does not say. */
  modifiedAtMs?: number;
}

/** Bytes that are too many to be held in memory. */
export interface ObjectSource {
  sizeBytes: number;
  /** Of the bytes, in hex; the store compares it. */
  sha256: string;
  /** From the first byte on, as often as it is called. */
  open(): AsyncIterable<Uint8Array>;
}

export interface ObjectStore {
  /** Writes the object unless the key exists (one conditional request, no check before it). `exists` is a normal result. */
  putIfAbsent(key: string, body: Uint8Array, contentType: string): Promise<'created' | 'exists'>;
  /** The same for a large object. An upload that breaks off is tried again from its beginning. */
  putSourceIfAbsent(key: string, source: ObjectSource, contentType: string): Promise<'created' | 'exists'>;
  /** True when there is such an object. */
  exists(key: string): Promise<boolean>;
  /**
   * The whole object; null when there is none. Throws `object-corrupt` when it is larger than `maxBytes` (or MAX_OBJECT_BYTES), and holds
   * no more than that of it meanwhile: instances write to the bucket, and one may write what it likes.
   */
  get(key: string, maxBytes?: number): Promise<Uint8Array | null>;
  /** Every object below the prefix, in key order. */
  list(prefix: string): AsyncIterable<ObjectInfo>;
  /** A URL that gives the object to anybody for `expiresMs`. */
  presignGet(key: string, expiresMs: number): Promise<string>;
}
