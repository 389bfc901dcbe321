/** SQLite finds products by their numbers: to read all of a run's instead takes half a second of a million. */
import { expect, it } from 'vitest';
import type { ChunkRange } from '../../../../shared/domain/sharing.ts';
import { at, bound, createInstance, createRun, load, NOW, onBothEngines, stored } from './harness.ts';

const CHUNKS = 12;
const SIZE = 5;
const none: ReadonlySet<string> = new Set();

onBothEngines('Statements on the products of a run', (bench, engine) => {
  it('use the key for each of many ranges', async () => {
    if (engine === 'mysql') return;
    const { db, stores } = bench();
    const chunks = Array.from({ length: CHUNKS }, (_, i): ChunkRange => {
      const first = i * SIZE + 1;
      return { index: i + 1, first, last: first + SIZE - 1, hosts: { sliceOf: null, leftMs: 1_000 } };
    });
    const ids = Array.from({ length: CHUNKS * SIZE }, (_, i) => `p${i + 1}`);
    const urls = new Map(ids.map((id, i) => [id, `https://host${Math.floor(i / SIZE) % 6}.example/${id}`]));
    const { id } = await createRun(bench(), ids, { chunks, urls });
    await createInstance(bench(), id, 0);
    await stores.runs.setHost('host5.example', { denied: true });
    const said: { sql: string; bindings: unknown[] }[] = [];
    const note = (query: { sql: string; bindings: unknown[] }): void => void said.push(query);
    db.knex.on('query', note);
    const { work } = bound(bench(), id, { nowMs: NOW });
    const offered = await work.waiting(CHUNKS, none);
    await work.grant(
      at(0),
      offered.map((chunk) => chunk.id),
      CHUNKS,
    );
    await work.chunksOf(at(0));
    // Every other chunk: ranges of five.
    const numbers = ids.flatMap((_, i) => (Math.floor(i / SIZE) % 2 === 0 ? [i + 1] : []));
    await load(
      bench(),
      id,
      numbers.map((n) => stored(n, urls.get(`p${n}`))),
    );
    db.knex.off('query', note);
    const plans: string[] = [];
    for (const { sql, bindings } of said.filter((query) => /^(select|update) .*`crawlfleet_items`/.test(query.sql))) {
      const steps = (await db.knex.raw(`explain query plan ${sql}`, bindings as string[])) as { detail: string }[];
      plans.push(...steps.map(({ detail }) => detail).filter((detail) => detail.includes('crawlfleet_items')));
    }
    const writes = said.filter((query) => /^update .*`crawlfleet_items`/.test(query.sql));
    expect(writes.some(({ sql }) => sql.includes('`outcome` is null'))).toBe(true);
    expect(writes.some(({ sql }) => sql.includes('`seq` = ?'))).toBe(true);
    expect(plans.filter((plan) => !/\bn[=<>]/.test(plan))).toEqual([]);
  });
});
