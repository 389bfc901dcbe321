/** When each run asked which of many hosts, over a year of runs. */
import { expect, it } from 'vitest';
import {
  HOST_REQUESTS,
  readRequestsOfHost,
  storeHostRequests,
} from '../../../../orchestrator/core/db/host-requests.ts';
import { prune } from '../../../../orchestrator/core/db/prune.ts';
import type { HostRequests } from '../../../../orchestrator/core/verify/host-requests.ts';
import { createRun, NOW, onBothEngines, publish, settings } from './harness.ts';

const DAY = 86_400_000;

const asked = (host: string, change: Partial<HostRequests> = {}): HostRequests => ({
  host,
  slot: 0,
  epoch: 1,
  address: '192.0.2.7',
  firstMs: NOW,
  lastMs: NOW + 60_000,
  requests: 5,
  intervalMs: 15_000,
  ...change,
});

onBothEngines('Requests to hosts', (bench, engine) => {
  it('are kept by run and instance, and read by host, the newest first', async () => {
    const { db } = bench();
    const before = asked('read.example', { firstMs: NOW - DAY, lastMs: NOW - DAY + 1 });
    await storeHostRequests(db, 'night-1', [before, asked('other.example')]);
    const own = [asked('read.example'), asked('read.example', { slot: 3, address: null, firstMs: NOW + 1 })];
    await storeHostRequests(db, 'night-2', own);
    // Repeated by a main server that takes the run up, it changes nothing.
    await storeHostRequests(db, 'night-2', own.slice(0, 1));
    expect(await readRequestsOfHost(db, 'read.example')).toEqual([
      { runId: 'night-2', ...own[1] },
      { runId: 'night-2', ...own[0] },
      { runId: 'night-1', ...before },
    ]);
    expect(await readRequestsOfHost(db, 'example')).toEqual([]);
  });

  it('go after a year, and with them what is known of a host that no one needs', async () => {
    const { db, stores } = bench();
    const table = `asked_${engine}`;
    const night = async (atMs: number): Promise<string> => {
      const { id } = await createRun(bench(), 1, { settings: settings(table) });
      await publish(bench(), id, atMs);
      return id;
    };
    const [old, late] = [await night(NOW - 370 * DAY), await night(NOW - 360 * DAY)];
    const { id: open } = await createRun(bench(), 1, { settings: settings(table) });
    for (const id of [old, late, open]) await storeHostRequests(db, id, [asked('pruned.example')]);
    const row = { slot: 0, epoch: 1, first_n: 1, last_n: 1 };
    await db.knex('crawlfleet_hosts').insert([
      { host: 'gone.pruned', run_id: old, ...row, delay_ms: 20_000, not_before: NOW - DAY },
      { host: 'lost.pruned', run_id: 'no-such-run', ...row },
      { host: 'resting.pruned', run_id: old, ...row, not_before: NOW + 1 },
      { host: 'late.pruned', run_id: late, ...row, delay_ms: 20_000 },
      { host: 'open.pruned', run_id: open, ...row },
    ]);
    await stores.runs.setHost('denied.pruned', { denied: true });
    await stores.runs.setHost('paced.pruned', { paceMs: 60_000 });
    await stores.runs.setHost('undone.pruned', { denied: true });
    await stores.runs.setHost('undone.pruned', { denied: null });
    await db
      .knex('crawlfleet_hosts')
      .where({ host: 'undone.pruned' })
      .update({ wished_at: NOW - 370 * DAY });
    const rule = { tables: [table], beforeMs: NOW - DAY, nowMs: NOW, signal: new AbortController().signal };
    expect(await prune(db, { ...rule, tables: ['another'] })).toMatchObject({ runs: [], rows: 3 });
    expect((await readRequestsOfHost(db, 'pruned.example')).length).toBe(3);
    await prune(db, rule);
    expect((await readRequestsOfHost(db, 'pruned.example')).map(({ runId }) => runId).sort()).toEqual(
      [late, open].sort(),
    );
    const left: { host: string }[] = await db
      .knex('crawlfleet_hosts')
      .where('host', 'like', '%.pruned')
      .orderBy('host');
    const names = ['denied', 'late', 'open', 'paced', 'resting'];
    expect(left.map(({ host }) => host)).toEqual(names.map((name) => `${name}.pruned`));
    // Where old runs are kept for longer, so is this.
    await db.knex(HOST_REQUESTS).where({ run_id: late }).update({ run_id: old });
    await prune(db, { ...rule, beforeMs: NOW - 400 * DAY });
    expect((await readRequestsOfHost(db, 'pruned.example')).length).toBe(2);
  });
});
