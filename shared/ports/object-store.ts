/** Where parts, manifests and bundles go: one bucket, as far as we use S3. */

export interface ObjectInfo {
  key: string;
  sizeBytes: number;
}

export interface ObjectStore {
  /** Writes the object unless the key exists (one conditional request, no check before it). `exists` is a normal result. */
  putIfAbsent(key: string, body: Uint8Array, contentType: string): Promise<'created' | 'exists'>;
  /** The whole object; null when there is none. */
  get(key: string): Promise<Uint8Array | null>;
  /** Every object below the prefix, in key order. */
  list(prefix: string): AsyncIterable<ObjectInfo>;
  /** A URL that gives the object to anybody for `expiresMs`. */
  presignGet(key: string, expiresMs: number): Promise<string>;
}
