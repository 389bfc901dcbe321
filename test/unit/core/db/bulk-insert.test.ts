import type { Knex } from 'knex';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { bulkInsert } from '../../../../orchestrator/core/db/bulk-insert.ts';
import type { Database } from '../../../../orchestrator/core/db/connect.ts';

/** A MySQL connection that refuses some values and counts its statements. */
function fakeServer(isBad: (value: string) => boolean) {
  const taken: string[] = [];
  const sizes: number[] = [];
  const connection = {
    execute(_: { sql: string }, values: string[], done: (error: Error | null) => void) {
      sizes.push(values.length);
      if (values.some(isBad)) return done(Object.assign(new Error('too long'), { code: 'ER_DATA_TOO_LONG' }));
      taken.push(...values);
      done(null);
    },
  };
  const trx = { client: { acquireConnection: () => Promise.resolve(connection) } } as unknown as Knex.Transaction;
  return { trx, taken, sizes };
}

const TARGET = { table: 't', columns: ['a'], existing: 'keep' } as const;
const db = (maxPacketBytes: number) => ({ engine: 'mysql', maxPacketBytes }) as Database;

describe('bulkInsert', () => {
  it('inserts all rows except the refused ones, in a bounded number of statements, whatever the batches', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.tuple(fc.boolean(), fc.integer({ min: 0, max: 300 })), { maxLength: 300 }),
        fc.integer({ min: 3_000, max: 20_000 }),
        async (rows, packet) => {
          const values = rows.map(
            ([bad, length], i) => `${bad && i % 5 === 0 ? 'bad' : 'good'}-${i}-${'x'.repeat(length)}`,
          );
          const server = fakeServer((v) => v.startsWith('bad'));
          const refused = await bulkInsert(
            server.trx,
            db(packet),
            TARGET,
            values.map((v) => [v]),
          );
          const bad = values.flatMap((v, i) => (v.startsWith('bad') ? [i] : []));
          expect(refused.map((r) => r.index)).toEqual(bad);
          expect(server.taken).toEqual(values.filter((v) => v.startsWith('good')));
          const batches = Math.ceil(values.reduce((sum, v) => sum + v.length + 12, 0) / (packet / 4)) + 1;
          expect(server.sizes.length).toBeLessThanOrEqual(batches + 2 * bad.length * Math.ceil(Math.log2(1_001)));
        },
      ),
      { numRuns: 50 },
    );
  });

  it('skips the rows after a refused row of the same group, in few statements', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.array(fc.boolean(), { maxLength: 30 }), { maxLength: 40 }),
        fc.integer({ min: 3_000, max: 20_000 }),
        async (groups, packet) => {
          const rows = groups.flatMap((bad, g) => bad.map((b, i) => [`g${g}`, `${b ? 'bad' : 'good'}-${g}-${i}`]));
          const server = fakeServer((v) => v.startsWith('bad'));
          const target = { table: 't', columns: ['id', 'a'], existing: 'keep', together: true } as const;
          const refused = await bulkInsert(server.trx, db(packet), target, rows);
          const firstBad = groups.flatMap((bad, g) => (bad.includes(true) ? [`bad-${g}-${bad.indexOf(true)}`] : []));
          expect(refused.map((r) => rows[r.index]![1])).toEqual(firstBad);
          const taken = new Set(server.taken);
          for (const [g, bad] of groups.entries())
            if (!bad.includes(true)) for (const i of bad.keys()) expect(taken).toContain(`good-${g}-${i}`);
          const batches = Math.ceil((rows.length * 60) / (packet / 4)) + 1;
          expect(server.sizes.length).toBeLessThanOrEqual(batches + 2 * firstBad.length * Math.ceil(Math.log2(1_001)));
        },
      ),
      { numRuns: 50 },
    );
  });

  it('sends at most 1,000 rows and half a packet at once', async () => {
    const server = fakeServer(() => false);
    await bulkInsert(
      server.trx,
      db(100_000),
      TARGET,
      Array.from({ length: 2_500 }, () => ['x']),
    );
    await bulkInsert(
      server.trx,
      db(100_000),
      TARGET,
      Array.from({ length: 6 }, () => ['x'.repeat(20_000)]),
    );
    expect(server.sizes).toEqual([1_000, 1_000, 500, 2, 2, 2]);
  });

  it('does not send a row larger than a packet', async () => {
    const server = fakeServer(() => false);
    const refused = await bulkInsert(server.trx, db(100_000), TARGET, [['a'], ['x'.repeat(100_000)], ['b']]);
    expect(refused).toEqual([{ index: 1, detail: 'ER_NET_PACKET_TOO_LARGE: 100012 bytes' }]);
    expect(server.taken).toEqual(['a', 'b']);
  });
});
