/** An object store in memory, for unit tests and simulation. Keeps state and fails when configured to. */
import type { Clock } from '../../../../shared/ports/clock.ts';
import {
  MAX_OBJECT_BYTES,
  type ObjectInfo,
  type ObjectSource,
  type ObjectStore,
  objectTooLarge,
} from '../../../../shared/ports/object-store.ts';

export class MemoryObjectStore implements ObjectStore {
  readonly objects = new Map<string, Uint8Array>();
  readonly #modifiedAtMs = new Map<string, number>();
  readonly #clock: Clock | null;
  /** Called before every operation; throw from it to make the operation fail. */
  onCall: (operation: 'put' | 'get' | 'list' | 'exists', key: string) => void = () => {};

  /** @param clock if given, the store reports when each object was written */
  constructor(clock: Clock | null = null) {
    this.#clock = clock;
  }

  async putIfAbsent(key: string, body: Uint8Array): Promise<'created' | 'exists'> {
    this.onCall('put', key);
    if (this.objects.has(key)) return 'exists';
    this.objects.set(key, body);
    if (this.#clock) this.#modifiedAtMs.set(key, this.#clock.now());
    return 'created';
  }

  async putSourceIfAbsent(key: string, source: ObjectSource): Promise<'created' | 'exists'> {
    const body = new Uint8Array(source.sizeBytes);
    let at = 0;
    for await (const chunk of source.open()) {
      body.set(chunk, at);
      at += chunk.length;
    }
    if (at !== source.sizeBytes) throw new Error(`the source gives ${at} bytes, not ${source.sizeBytes}`);
    return this.putIfAbsent(key, body);
  }

  async exists(key: string): Promise<boolean> {
    this.onCall('exists', key);
    return this.objects.has(key);
  }

  async get(key: string, maxBytes = MAX_OBJECT_BYTES): Promise<Uint8Array | null> {
    this.onCall('get', key);
    const bytes = this.objects.get(key) ?? null;
    if (bytes !== null && bytes.length > maxBytes) throw objectTooLarge(key, maxBytes);
    return bytes;
  }

  async *list(prefix: string): AsyncIterable<ObjectInfo> {
    this.onCall('list', prefix);
    for (const [key, bytes] of [...this.objects].sort(([a], [b]) => (a < b ? -1 : 1))) {
      if (!key.startsWith(prefix)) continue;
      const modifiedAtMs = this.#modifiedAtMs.get(key);
      yield { key, sizeBytes: bytes.length, ...(modifiedAtMs === undefined ? {} : { modifiedAtMs }) };
    }
  }

  async presignGet(key: string): Promise<string> {
    return `memory://${key}`;
  }

  /** What an instance reads at such a URL: it needs no right. Null when there is no object. */
  read(url: string): Uint8Array | null {
    return this.objects.get(url.slice('memory://'.length)) ?? null;
  }
}
