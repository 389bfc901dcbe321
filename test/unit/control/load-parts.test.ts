import { gzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import type { ResultStore } from '../../../orchestrator/control/model/stores.ts';
import type { ObjectStore } from '../../../shared/ports/object-store.ts';
import { VirtualClock } from '../../support/virtual-clock.ts';
import { aCore } from './fake-core.ts';
import { sha256Hex } from '../../../shared/wire/signature.ts';
import { loadParts, readPart } from '../../../orchestrator/control/results/load-parts.ts';

const common = { url: 'https://shop.example/', at: '2026-11-21T02:15:30.123Z', attempts: 1 };
const STORED = {
  n: 1,
  id: '日本語',
  ...common,
  outcome: 'stored',
  rows: [{ key: 'a\u2028b', row: { title: '日\n本', ok: true } }],
};
const evidence = { rule: 'status-403', url: common.url, status: 403, headers: { server: 'x' }, body: 'no' };
const FAILED = { n: 2, id: 'p2', ...common, outcome: 'failed', reason: 'banned', detail: 'refused', evidence };

function read(text: string) {
  const body = gzipSync(text);
  const objects = { get: () => Promise.resolve(new Uint8Array(body)) } as unknown as ObjectStore;
  return readPart(objects, { key: 'part', sha256: sha256Hex(body), sizeBytes: body.length });
}

describe('readPart', () => {
  it.each([
    ['with a newline at the end', '\n'],
    ['without one', ''],
    ['with empty lines', '\n\n\n'],
  ])('reads one product per line, %s', async (_, end) => {
    expect(await read(`${JSON.stringify(STORED)}\n${JSON.stringify(FAILED)}${end}`)).toEqual([STORED, FAILED]);
  });

  it('reads a part without products', async () => {
    expect(await read('')).toEqual([]);
  });

  it.each([
    ['a line that is not JSON', '{"n":1'],
    ['a row with invalid values', JSON.stringify({ ...STORED, rows: [{ key: null, row: { title: {} } }] })],
    ['a row with a list of lists', JSON.stringify({ ...STORED, rows: [{ key: null, row: { title: [['a']] } }] })],
    [
      'a row with a list that contains only null',
      JSON.stringify({ ...STORED, rows: [{ key: null, row: { title: [null] } }] }),
    ],
    ['a row that is a list', JSON.stringify({ ...STORED, rows: [{ key: null, row: ['a'] }] })],
    ['a record without a row', JSON.stringify({ ...STORED, rows: [{ key: null }] })],
    ['a record with an empty key', JSON.stringify({ ...STORED, rows: [{ key: '', row: {} }] })],
  ])('refuses %s', async (_, line) => {
    await expect(read(`${JSON.stringify(FAILED)}\n${line}\n`)).rejects.toMatchObject({ code: 'object-corrupt' });
  });
});

it('loads two parts at a time, and throws the first failure once the other is loaded', async () => {
  const body = new Uint8Array(gzipSync(''));
  const parts = [0, 1, 2, 3].map((seq) => ({ seq, key: `part ${seq}`, sha256: sha256Hex(body), sizeBytes: 1 }));
  const ends = parts.map(() => Promise.withResolvers<void>());
  const begun: number[] = [];
  const load = ({ seq }: { seq: number }): Promise<void> => {
    begun.push(seq);
    return ends[seq]!.promise;
  };
  const core = aCore({
    clock: new VirtualClock(),
    objects: { get: () => Promise.resolve(body) } as unknown as ObjectStore,
    results: { parts: () => Promise.resolve(parts), load } as unknown as ResultStore,
    oneAtATime: (work) => work(),
  });
  let thrown: unknown = null;
  const loading = loadParts(core).catch((error: unknown) => void (thrown = error));
  const settle = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
  await settle();
  expect(begun).toEqual([0, 1]);
  ends[1]!.resolve();
  await settle();
  expect(begun).toEqual([0, 1, 2]);
  ends[0]!.reject(new Error('first'));
  await settle();
  expect(thrown).toBeNull();
  ends[2]!.resolve();
  ends[3]!.resolve();
  await loading;
  expect(thrown).toEqual(new Error('first'));
});
