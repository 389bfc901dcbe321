/** The store for parts, manifests and bundles: one bucket, with the S3 operations that crawlfleet uses. */
import { AppError } from '../domain/errors.ts';

/** Maximum size of an object that is read whole: a part is some megabytes, and the manifests of 100 instances one. */
export const MAX_OBJECT_BYTES = 64_000_000;

/** The error for an object that is too large. */
export const objectTooLarge = (key: string, maxBytes: number): AppError =>
  new AppError('object-corrupt', `the object ${key} exceeds the limit of ${maxBytes} bytes`);

export interface ObjectInfo {
  key: string;
  sizeBytes: number;
  /** When it was written, by the store's clock; left out where the store does not report it. */
  modifiedAtMs?: number;
}

/** Data that is too large for memory. */
export interface ObjectSource {
  sizeBytes: number;
  /** The SHA-256 of the bytes, in hex; the store compares it. */
  sha256: string;
  /** Opens a stream from the first byte; may be called repeatedly. */
  open(): AsyncIterable<Uint8Array>;
}

export interface ObjectStore {
  /**
   * Writes the object unless the key exists (one conditional request, no check before it). `exists` is a normal result.
   */
  putIfAbsent(key: string, body: Uint8Array, contentType: string): Promise<'created' | 'exists'>;
  /** The same for a large object. An interrupted upload is retried from the beginning. */
  putSourceIfAbsent(key: string, source: ObjectSource, contentType: string): Promise<'created' | 'exists'>;
  /** True when there is such an object. */
  exists(key: string): Promise<boolean>;
  /**
   * The whole object; null when there is none. Throws `object-corrupt` when it is larger than `maxBytes` (or
   * MAX_OBJECT_BYTES), and never buffers more than that: instances write to the bucket, and one may write anything.
   */
  get(key: string, maxBytes?: number): Promise<Uint8Array | null>;
  /** Every object below the prefix, in key order. */
  list(prefix: string): AsyncIterable<ObjectInfo>;
  /** A URL from which anyone can read the object for `expiresMs`. */
  presignGet(key: string, expiresMs: number): Promise<string>;
}
