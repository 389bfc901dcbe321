import { expect, it } from 'vitest';
import { MemoryObjectStore } from '../../../../orchestrator/core/simulation/cloud/memory-objects.ts';
import { watchStore } from '../../../../orchestrator/core/cloud/watched-store.ts';

function stage() {
  const store = new MemoryObjectStore();
  const heard: (string | null)[] = [];
  const watched = watchStore(store, 'my-bucket', (detail) => heard.push(detail));
  const list = async (): Promise<void> => {
    for await (const _ of watched.list('runs/')) return;
  };
  const fail = (name: string, operations: readonly string[] = ['put', 'get', 'list']): void => {
    store.onCall = (operation) => {
      if (operations.includes(operation)) throw Object.assign(new Error('made up'), { name });
    };
  };
  const mend = (): void => void (store.onCall = () => undefined);
  return { watched, heard, list, fail, mend };
}

it('reports once that the named bucket is gone, and once that it is back', async () => {
  const { watched, heard, list, fail, mend } = stage();
  fail('NoSuchBucket');
  await expect(list()).rejects.toThrow('made up');
  await expect(watched.get('a')).rejects.toThrow('made up');
  mend();
  expect(await watched.putIfAbsent('a', new Uint8Array(1), 'x')).toBe('created');
  await list();
  expect(heard).toEqual([expect.stringMatching(/^bucket my-bucket \(list\): .*NoSuchBucket/), null]);
});

it('does not clear a missing permission after a call of another kind', async () => {
  const { watched, heard, list, fail, mend } = stage();
  fail('AccessDenied', ['list']);
  await expect(list()).rejects.toThrow('made up');
  await watched.putIfAbsent('a', new Uint8Array(1), 'x');
  expect(heard).toHaveLength(1);
  mend();
  await list();
  expect(heard.at(-1)).toBeNull();
});

it('does not report a bucket that is slow or throttles', async () => {
  const { heard, list, fail } = stage();
  for (const name of ['SlowDown', 'TimeoutError', 'InternalError']) {
    fail(name);
    await expect(list()).rejects.toThrow('made up');
  }
  expect(heard).toEqual([]);
});

it('passes the size limit of a read on', async () => {
  const { watched } = stage();
  await watched.putIfAbsent('a', new Uint8Array(10), 'x');
  await expect(watched.get('a', 9)).rejects.toMatchObject({ code: 'object-corrupt' });
  expect(await watched.get('a', 10)).toHaveLength(10);
});
