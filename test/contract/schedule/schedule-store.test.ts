/** The record of a schedule on both engines and in memory: one due time, one start, whoever asks and however late. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { VirtualClock } from '../../support/virtual-clock.ts';
import type { Database } from '../../../orchestrator/db/connect.ts';
import { openDatabase } from '../../../orchestrator/db/connect.ts';
import { MemoryScheduleStore } from '../../../orchestrator/db/memory/memory-schedule-store.ts';
import { migrate } from '../../../orchestrator/db/migrate.ts';
import { KnexScheduleStore } from '../../../orchestrator/db/schedule-store.ts';
import type { RunResult, ScheduleStore } from '../../../orchestrator/schedule/slots.ts';
import { eachEngine } from '../../support/mariadb/database.ts';

const SPEC = '0 2 * * * UTC';
const LEASE_MS = 3_600_000;
const RESULT: RunResult = {
  run: '20261121-020001-abcd',
  state: 'completed',
  exitCode: 0,
  reason: null,
  onTime: true,
  products: { planned: 3, stored: 2, gone: 1, failed: 0 },
  cost: 0.12,
  hint: '日本語',
};

type Make = (clock: VirtualClock) => ScheduleStore;

function keepsTheContract(make: () => Make): void {
  let clock: VirtualClock;
  let store: ScheduleStore;
  let due: number;
  let fence: number;

  async function lead(owner = 'here:1:1'): Promise<number> {
    const first = await store.takeLead(owner, SPEC, LEASE_MS);
    const taken = 'fence' in first ? first : await store.takeLead(owner, SPEC, LEASE_MS, first.heldBy);
    if (!('fence' in taken)) throw new Error('the lead is not to be had');
    return taken.fence;
  }
  const start = async (): Promise<void> => {
    clock = new VirtualClock(Date.UTC(2026, 10, 21, 2));
    store = make()(clock);
    due = clock.now();
    fence = await lead();
  };

  it('starts a due time once', async () => {
    await start();
    const tries = await Promise.all([1, 2, 3].map(() => store.claim(due, 'started', null, fence).catch(() => false)));
    expect(tries.filter(Boolean)).toHaveLength(1);
    expect(await store.claim(due, 'skipped', 'again', fence)).toBe(false);
    expect(await store.get(due)).toMatchObject({ dueAtMs: due, state: 'started', runner: null, told: false });
  });

  it('takes nothing from who has lost the lead', async () => {
    await start();
    const second = await lead('other:2:2');
    expect(second).toBeGreaterThan(fence);
    expect(await store.keepLead(fence, LEASE_MS)).toBe(false);
    expect(await store.claim(due, 'started', null, fence)).toBe(false);
    expect(await store.get(due)).toBeNull();
    expect(await store.claim(due, 'started', null, second)).toBe(true);
    expect(await store.change(due, 'started', { state: 'missed' }, fence)).toBe(false);
    await store.leaveLead(fence);
    expect(await store.keepLead(second, LEASE_MS)).toBe(true);
  });

  it('lets one process sign in, and only under the fence it was started with', async () => {
    await start();
    await store.claim(due, 'started', null, fence);
    const second = await lead('other:2:2');
    await store.change(due, 'started', { state: 'queued' }, second);
    await store.change(due, 'queued', { state: 'started' }, second);
    expect(await store.signIn(due, fence, 'here:8:8')).toBe(false);
    expect(await store.signIn(due, second, 'here:9:9')).toBe(true);
    expect(await store.signIn(due, second, 'here:10:10')).toBe(false);
    expect(await store.get(due)).toMatchObject({ runner: 'here:9:9', startedAtMs: clock.now() });
    expect(await store.signOut(due, 'here:10:10', RESULT)).toBe(false);
    expect(await store.signOut(due, 'here:9:9', RESULT)).toBe(true);
    expect(await store.get(due)).toMatchObject({ state: 'done', result: RESULT, endedAtMs: clock.now() });
  });

  it('gives the lead to one, and to another when it is given back, has run out, or its owner is dead', async () => {
    await start();
    const held = await store.takeLead('other:2:2', SPEC, LEASE_MS);
    expect(held).toMatchObject({ heldBy: { owner: 'here:1:1' } });
    await store.leaveLead(fence);
    expect(await store.takeLead('other:2:2', SPEC, LEASE_MS)).toMatchObject({ fence: expect.any(Number) });
    expect(await store.takeLead('third:3:3', SPEC, LEASE_MS)).toMatchObject({ heldBy: { owner: 'other:2:2' } });
    expect(await lead('third:3:3')).toBeGreaterThan(fence);
  });

  it('knows from when on an expression counts', async () => {
    await start();
    const again = await store.takeLead('here:1:1', SPEC, LEASE_MS, (await held()).heldBy);
    const sinceMs = (again as { sinceMs: number }).sinceMs;
    await clock.advance(5_000);
    const same = await store.takeLead('here:1:1', SPEC, LEASE_MS, (await held()).heldBy);
    expect(same).toMatchObject({ sinceMs });
    const other = await store.takeLead('here:1:1', '0 * * * * UTC', LEASE_MS, (await held()).heldBy);
    expect(other).toMatchObject({ sinceMs: clock.now() });
  });
  const held = async () =>
    (await store.takeLead('x:1:1', SPEC, LEASE_MS)) as { heldBy: { owner: string; expiresAtMs: number } };

  it('writes a due time again that was missed under a clock that was ahead', async () => {
    await start();
    await clock.advance(10_000);
    await store.claim(due + 5_000, 'missed', null, fence);
    expect(await store.claim(due + 5_000, 'started', null, fence)).toBe(false);
    // The same due time, looked at by a clock that is right again.
    const right = make()(new VirtualClock(due + 5_000));
    if (right instanceof KnexScheduleStore) expect(await right.claim(due + 5_000, 'started', null, fence)).toBe(true);
  });

  it('writes it again also when it has been told meanwhile, by the right clock', async () => {
    await start();
    await clock.advance(10_000);
    await store.claim(due + 5_000, 'missed', null, fence);
    const right = make()(new VirtualClock(due + 1_000));
    if (!(right instanceof KnexScheduleStore)) return;
    await right.markTold(due + 5_000, 'missed', fence);
    expect(await right.get(due + 5_000)).toMatchObject({ told: true, fence });
    expect(await right.decidedUpTo(due + 6_000)).toBeNull();
    expect(await right.claim(due + 5_000, 'started', null, fence)).toBe(true);
    expect(await right.get(due + 5_000)).toMatchObject({ told: false, runner: null, runId: null });
    expect(await right.decidedUpTo(due + 6_000)).toBe(due + 5_000);
    expect(await right.decidedUpTo(due + 4_000)).toBeNull();
  });

  it('ties a run to the due time whose process stores it, and to no other', async () => {
    await start();
    await store.claim(due, 'started', null, fence);
    expect(await store.bindRun(due, 'here:9:9', 'run-a')).toBe(false);
    await store.signIn(due, fence, 'here:9:9');
    expect(await store.bindRun(due, 'here:10:10', 'run-b')).toBe(false);
    expect(await store.bindRun(due, 'here:9:9', 'run-a')).toBe(true);
    expect(await store.bindRun(due, 'here:9:9', 'run-a')).toBe(true);
    expect(await store.get(due)).toMatchObject({ runId: 'run-a' });
    await store.change(due, 'started', { state: 'queued', runner: null, runId: null }, fence);
    expect(await store.bindRun(due, 'here:9:9', 'run-a')).toBe(false);
    expect(await store.get(due)).toMatchObject({ runId: null });
  });

  it('lists what is open, what nobody outside knows, and the newest first', async () => {
    await start();
    for (const [i, state] of (['done', 'missed', 'queued', 'started', 'skipped'] as const).entries())
      await store.claim(due + i, state, `why ${i}`, fence);
    expect((await store.open()).map((s) => s.state)).toEqual(['queued', 'started']);
    await store.markTold(due, 'done', fence);
    expect((await store.untold(due)).map((s) => [s.state, s.reason])).toEqual([
      ['missed', 'why 1'],
      ['skipped', 'why 4'],
    ]);
    expect(await store.untold(clock.now() + 1)).toEqual([]);
    expect((await store.list(2)).map((s) => s.dueAtMs)).toEqual([due + 4, due + 3]);
  });
}

eachEngine('F41 the record of a schedule', (database) => {
  const opened: Database[] = [];
  let names = 0;
  let name = '';
  let url = '';
  beforeAll(async () => {
    url = database().url;
    const db = await openDatabase(url);
    opened.push(db);
    await migrate(db);
  });
  afterAll(async () => {
    for (const db of opened) await db.close();
  });
  let last: VirtualClock | null = null;
  keepsTheContract(() => (clock) => {
    // A second clock in one test looks at the same schedule.
    if (last === null || clock.now() === Date.UTC(2026, 10, 21, 2)) name = `schedule ${++names}`;
    last = clock;
    return new KnexScheduleStore({ ...opened[0]!, clock }, name);
  });

  it('keeps schedules of other names apart', async () => {
    const [a, b] = ['a', 'b'].map((n) => new KnexScheduleStore(opened[0]!, n));
    const fences = await Promise.all([a!, b!].map(async (s) => s.takeLead('here:1:1', SPEC, LEASE_MS)));
    for (const [i, store] of [a!, b!].entries())
      expect(await store.claim(1_000, 'started', null, (fences[i] as { fence: number }).fence)).toBe(true);
  });

  it('of two daemons on connections of their own starts each of many due times once', async () => {
    const second = await openDatabase(url);
    opened.push(second);
    const stores = [opened[0]!, second].map((db) => new KnexScheduleStore(db, 'race'));
    const first = (await stores[0]!.takeLead('here:1:1', SPEC, LEASE_MS)) as { fence: number };
    const tries = await Promise.all(
      Array.from({ length: 20 }, (_, i) =>
        Promise.all(stores.map((s) => s.claim(10_000 + i, 'started', null, first.fence).catch(() => false))),
      ),
    );
    expect(tries.map((pair) => pair.filter(Boolean).length)).toEqual(Array.from({ length: 20 }, () => 1));
  });
});

describe('F41 the record of a schedule in memory', () => {
  keepsTheContract(() => (clock) => new MemoryScheduleStore(clock));
});
