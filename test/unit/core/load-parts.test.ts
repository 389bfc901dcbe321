import { gzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import type { LoadedPart, ResultStore } from '../../../orchestrator/core/model/stores.ts';
import type { ObjectStore } from '../../../shared/ports/object-store.ts';
import { VirtualClock } from '../../support/virtual-clock.ts';
import { aCore } from './fake-core.ts';
import { sha256Hex } from '../../../shared/wire/signature.ts';
import { countProducts, loadParts, readPart } from '../../../orchestrator/core/act/results/load-parts.ts';
import { type PartResults, piecesOf } from '../../../orchestrator/core/model/part-results.ts';

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

describe('A part that no instance makes', () => {
  const line = (rows: string): string => `${JSON.stringify({ ...STORED, rows: [] }).replace('[]', `[${rows}]`)}\n`;

  it.each([
    ['has a line longer than a product’s rows', line(`{"key":null,"row":{"a":"${'x'.repeat(12e6)}"}}`), /line of more/],
    ['is nested deep', `${'['.repeat(100_000)}\n`, /line 1: it is nested more than 16 deep/],
    ['has a line of many containers', line('{},'.repeat(400_000)), /line 1: it has more than 300000 values/],
    [
      'has more products than an instance puts into a part',
      `${JSON.stringify(FAILED)}\n`.repeat(1_001),
      /more than 1000 products/,
    ],
    [
      'has rows of ever other columns',
      line(Array.from({ length: 60_000 }, (_, i) => `{"key":"1","row":{"k${i}":1}}`).join(',')),
      /line 1: it has objects of more than 50000 shapes/,
    ],
    ['has wrong rows', line('0,'.repeat(1_000)), /line 1: .* is not valid JSON$/],
    ['has wrong values', line('0,0'), /line 1: rows: Invalid input$/],
    ['has other keys', '{"n":1,"outcome":"gone","\\u001b[2J":1}\n', /line 1: id: Invalid input\P{Cc}*$/u],
  ])('is refused in one sentence with its key when it %s', async (_what, text, fault) => {
    const refusal: unknown = await read(text).catch((error: unknown) => error);
    expect(refusal).toMatchObject({ code: 'object-corrupt' });
    const { message } = refusal as Error;
    expect(message).toMatch(/^the object part is not a part: /);
    expect(message).toMatch(fault);
    expect(message.length).toBeLessThan(500);
  });

  it('is not fetched when it is larger than any', async () => {
    const asked: (number | undefined)[] = [];
    const get = (_key: string, maxBytes?: number): Promise<null> => Promise.resolve((asked.push(maxBytes), null));
    const objects = { get } as unknown as ObjectStore;
    await expect(readPart(objects, { key: 'part', sha256: '', sizeBytes: 1e9 })).rejects.toThrow('no object part');
    expect(asked).toEqual([16e6]);
  });

  it('must have as many products as its instance reported', async () => {
    const body = gzipSync(`${JSON.stringify(STORED)}\n${JSON.stringify(FAILED)}\n`);
    const objects = { get: () => Promise.resolve(body) } as unknown as ObjectStore;
    const part = { key: 'part', sha256: sha256Hex(body), sizeBytes: body.length };
    await expect(readPart(objects, { ...part, products: 1 })).rejects.toThrow('more than 1 products');
    await expect(readPart(objects, { ...part, products: 3 })).rejects.toThrow('2 products, and not 3 as reported');
    expect(await readPart(objects, { ...part, products: 2 })).toHaveLength(2);
    expect(await countProducts(objects, part)).toBe(2);
  });
});

describe('A part larger than an instance makes it', () => {
  const text = 'x'.repeat(30_000);
  const results = Array.from({ length: 1_000 }, (_, i) => ({
    ...STORED,
    n: i + 1,
    rows: [{ key: null, row: { text } }],
  }));
  const lines = results.map((one) => `${JSON.stringify(one)}\n`);

  it('is read in pieces, as often as asked', async () => {
    const read1 = await read(lines.join(''));
    expect(Array.isArray(read1)).toBe(false);
    for (const _ of [1, 2]) {
      const pieces = await Array.fromAsync(piecesOf(read1));
      expect(pieces.length).toBeGreaterThan(2);
      expect(pieces.flat()).toEqual(results);
    }
  });

  it('ends at its first wrong line', async () => {
    const read1 = await read([...lines.slice(0, 999), '{}\n'].join(''));
    await expect(Array.fromAsync(piecesOf(read1))).rejects.toThrow(/not a part: line 1000: /);
  });

  it('is set aside with an alarm when a later piece is wrong, and loading goes on', async () => {
    const bodies = [gzipSync([...lines.slice(0, 999), '{}\n'].join('')), gzipSync(lines[0]!)];
    const parts = bodies.map((body, seq) => ({
      slot: 0,
      epoch: 1,
      seq,
      key: `${seq}`,
      sha256: sha256Hex(body),
      sizeBytes: body.length,
      products: seq === 0 ? 1_000 : 1,
    }));
    const [loaded, failed]: [number[], unknown[]] = [[], []];
    const core = aCore({
      clock: new VirtualClock(),
      objects: { get: (key: string) => Promise.resolve(bodies[Number(key)]) } as unknown as ObjectStore,
      results: {
        parts: () => Promise.resolve(parts),
        load: async ({ seq }: { seq: number }, given: PartResults) => {
          for await (const _ of piecesOf(given));
          loaded.push(seq);
          return {};
        },
        failPart: ({ seq }: { seq: number }, detail: string) => Promise.resolve(void failed.push([seq, detail])),
      } as unknown as ResultStore,
      oneAtATime: (work) => work(),
    });
    await loadParts(core);
    expect(loaded).toEqual([1]);
    expect(failed).toEqual([[0, expect.stringMatching(/^the object 0 is not a part: line 1000: /)]]);
    expect(core.alarms).toEqual([expect.stringMatching(/; its products count as not crawled$/)]);
  });
});

it('loads two parts at a time, and throws the first failure once the other is loaded', async () => {
  const body = new Uint8Array(gzipSync(''));
  const parts = [0, 1, 2, 3].map((seq) => ({ seq, key: `part ${seq}`, sha256: sha256Hex(body), sizeBytes: 1 }));
  const ends = parts.map(() => Promise.withResolvers<void>());
  const begun: number[] = [];
  const load = async ({ seq }: { seq: number }): Promise<LoadedPart> => {
    begun.push(seq);
    await ends[seq]!.promise;
    return { stored: 0, gone: 0, failed: 0 };
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
