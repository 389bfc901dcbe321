/** An object store in memory, for unit tests and simulation. Keeps state and can be told to fail. */
import type { ObjectInfo, ObjectStore } from '../ports/object-store.ts';

export class MemoryObjectStore implements ObjectStore {
  readonly objects = new Map<string, Uint8Array>();
  /** Called before every operation; throw from it to make the operation fail. */
  onCall: (operation: 'put' | 'get' | 'list', key: string) => void = () => {};

  async putIfAbsent(key: string, body: Uint8Array): Promise<'created' | 'exists'> {
    this.onCall('put', key);
    if (this.objects.has(key)) return 'exists';
    this.objects.set(key, Uint8Array.from(body));
    return 'created';
  }

  async get(key: string): Promise<Uint8Array | null> {
    this.onCall('get', key);
    return this.objects.get(key) ?? null;
  }

  async *list(prefix: string): AsyncIterable<ObjectInfo> {
    this.onCall('list', prefix);
    for (const key of [...this.objects.keys()].sort()) {
      if (key.startsWith(prefix)) yield { key, sizeBytes: this.objects.get(key)!.length };
    }
  }

  async presignGet(key: string): Promise<string> {
    return `memory://${key}`;
  }
}
