/** What every ObjectStore must do, run for the fake and for the SDK adapter at each available endpoint. */
import { createHash } from 'node:crypto';
import { afterAll, beforeAll, describe, expect } from 'vitest';
import type { ObjectInfo, ObjectStore } from '../../../../shared/ports/object-store.ts';
import { contractCases } from './contract-case.ts';

export interface ObjectStoreFixture {
  store: ObjectStore;
  /** Fetches a presigned URL as an instance would: without credentials. */
  fetchUrl(url: string): Promise<Uint8Array>;
  stop(): Promise<void>;
}

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);
const text = (body: Uint8Array | null): string | null => (body === null ? null : new TextDecoder().decode(body));

async function all(listing: AsyncIterable<ObjectInfo>): Promise<ObjectInfo[]> {
  const found: ObjectInfo[] = [];
  for await (const info of listing) found.push(info);
  return found;
}

export function describeObjectStoreContract(
  name: string,
  make: () => Promise<ObjectStoreFixture>,
  endpoint = 'none',
): void {
  describe(`ObjectStore: ${name}`, () => {
    const { it, end } = contractCases('ObjectStore', endpoint);
    let fixture: ObjectStoreFixture;
    let store: ObjectStore;

    beforeAll(async () => {
      fixture = await make();
      store = fixture.store;
    });
    afterAll(() => fixture?.stop());

    it('returns the bytes that were put, including an empty object', async () => {
      const body = Uint8Array.from({ length: 70_000 }, (_, i) => (i * 31) % 256);
      expect(await store.putIfAbsent('bytes/a', body, 'application/gzip')).toBe('created');
      expect(await store.putIfAbsent('bytes/empty', new Uint8Array(), 'text/plain')).toBe('created');
      expect(await store.get('bytes/a')).toEqual(body);
      expect(await store.get('bytes/empty')).toEqual(new Uint8Array());
    });

    it('returns no object larger than the requested maximum', async () => {
      await store.putIfAbsent('bounded/a', new Uint8Array(70_000), 'application/gzip');
      expect(await store.get('bounded/a', 70_000)).toHaveLength(70_000);
      await expect(store.get('bounded/a', 69_999)).rejects.toMatchObject({ code: 'object-corrupt' });
    });

    it('does not overwrite an existing object', async () => {
      expect(await store.putIfAbsent('once/a', bytes('first'), 'text/plain')).toBe('created');
      expect(await store.putIfAbsent('once/a', bytes('second'), 'text/plain')).toBe('exists');
      expect(text(await store.get('once/a'))).toBe('first');
    });

    it('lets one of many writers of the same key win, and all readers see that one', async () => {
      const answers = await Promise.all(
        Array.from({ length: 8 }, (_, i) => store.putIfAbsent('race/a', bytes(`writer ${i}`), 'text/plain')),
      );
      expect(answers.filter((a) => a === 'created')).toHaveLength(1);
      expect(text(await store.get('race/a'))).toBe(`writer ${answers.indexOf('created')}`);
    });

    it('stores a large object from a stream, once, and reports that it exists', async () => {
      const chunk = Uint8Array.from({ length: 1_000_000 }, (_, i) => (i * 17) % 251);
      const hash = createHash('sha256');
      for (let i = 0; i < 9; i++) hash.update(chunk);
      const source = {
        sizeBytes: 9_000_000,
        sha256: hash.digest('hex'),
        async *open() {
          for (let i = 0; i < 9; i++) yield chunk;
        },
      };
      expect(await store.exists('large/a')).toBe(false);
      expect(await store.putSourceIfAbsent('large/a', source, 'application/gzip')).toBe('created');
      expect(await store.exists('large/a')).toBe(true);
      expect(await store.putSourceIfAbsent('large/a', source, 'application/gzip')).toBe('exists');
      const body = await store.get('large/a');
      expect(createHash('sha256').update(body!).digest('hex')).toBe(source.sha256);
    });

    it('returns null for a missing object', async () => {
      expect(await store.get('missing/a')).toBeNull();
    });

    it('lists what is below a prefix, in key order, over more than one page', async () => {
      const keys = Array.from({ length: 1_050 }, (_, i) => `many/${String(i).padStart(5, '0')}`);
      for (let at = 0; at < keys.length; at += 50) {
        await Promise.all(keys.slice(at, at + 50).map((key) => store.putIfAbsent(key, bytes('x'), 'text/plain')));
      }
      await store.putIfAbsent('many-more/0', bytes('x'), 'text/plain');
      const found = await all(store.list('many/'));
      expect(found.map((o) => o.key)).toEqual(keys);
      expect(found.every((o) => o.sizeBytes === 1)).toBe(true);
      expect(await all(store.list('nothing/'))).toEqual([]);
    });

    it('keeps keys with spaces, plus signs and other scripts apart', async () => {
      const keys = ['odd/a b', 'odd/a%20b', 'odd/a+b', 'odd/日本'];
      for (const key of keys) await store.putIfAbsent(key, bytes(key), 'text/plain');
      for (const key of keys) expect(text(await store.get(key))).toBe(key);
      expect((await all(store.list('odd/'))).map((o) => o.key)).toEqual(keys);
    });

    it('serves an object to any client that has its presigned URL', async () => {
      await store.putIfAbsent('signed/a b', bytes('signed'), 'text/plain');
      expect(text(await fixture.fetchUrl(await store.presignGet('signed/a b', 60_000)))).toBe('signed');
    });

    end();
  });
}
