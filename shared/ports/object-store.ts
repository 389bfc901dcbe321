/** Where parts, manifests and bundles go: one bucket, as far as we use S3. */

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
  /** The whole object; null when there is none. */
  get(key: string): Promise<Uint8Array | null>;
  /** Every object below the prefix, in key order. */
  list(prefix: string): AsyncIterable<ObjectInfo>;
  /** A URL that gives the object to anybody for `expiresMs`. */
  presignGet(key: string, expiresMs: number): Promise<string>;
}
