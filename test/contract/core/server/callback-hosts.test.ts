/** Hosts of a run of many in heartbeats and the replies: what operators ask of them, and how long they rest. */
import { beforeEach, describe, expect, it } from 'vitest';
import { ANY_HOST } from '../../../../shared/domain/domains.ts';
import type { Base } from '../run-stage.ts';
import type { CallbackStage } from './callback-stage.ts';
import { useCallbackStage } from './use-callback-stage.ts';

const HOST = 'a.example';
const OTHER = 'b.example';

const SHAPE = { site: { productUrl: ANY_HOST }, products: 4, chunkSize: 2 };

/** Two chunks, each with one host. */
async function cutByHost(stage: CallbackStage, { db: { knex } }: Base): Promise<void> {
  const where = { run_id: stage.run.id };
  for (const n of [1, 2, 3, 4])
    await knex('crawlfleet_items')
      .where({ ...where, n })
      .update({ path: `http://www.${n <= 2 ? HOST : OTHER}/${n}` });
  await knex('crawlfleet_chunks').where(where).update({ left_ms: 1_000 });
  await knex('crawlfleet_hosts').del();
  await stage.look();
}

describe('hosts of an operator', () => {
  let stage: CallbackStage;
  let base: Base;
  useCallbackStage((given, own) => ([stage, base] = [given, own]), SHAPE);
  beforeEach(() => cutByHost(stage, base));

  /** As long as an instance waits for its next heartbeat. */
  const wait = async (): Promise<void> => {
    await stage.clock.advance((await stage.look()).limits.heartbeatMs);
  };

  it('come with the next heartbeat of each instance until it has heard of them', async () => {
    const [owner, another] = [await stage.ready(0), await stage.ready(1)];
    expect((await owner.orders({ offered: ['1-1'] })).grants).toEqual(['1-1']);
    await base.stores.runs.setHost(HOST, { denied: true });
    // A host of no grant in this run is for its grant.
    await base.stores.runs.setHost(OTHER, { paceMs: 60_000 });
    await wait();
    const first = await owner.orders();
    expect(first.hosts).toEqual([{ host: HOST, denied: true }]);
    const repeated = await owner.orders();
    expect([repeated.hosts, repeated.wishes]).toEqual([first.hosts, first.wishes]);
    const heard = await owner.orders({ wishes: first.wishes! });
    expect([heard.hosts, heard.wishes]).toEqual([undefined, undefined]);
    expect((await another.orders()).hosts).toEqual(first.hosts);
    await wait();
    const granted = await owner.orders({ wishes: first.wishes!, offered: ['2-1'] });
    expect([granted.grants, granted.hosts]).toEqual([['2-1'], [{ host: OTHER, paceMs: 60_000 }]]);
    await base.stores.runs.setHost(HOST, { denied: null, paceMs: 30_000 });
    await wait();
    const asked = await owner.orders({ wishes: first.wishes! });
    expect(asked.hosts).toContainEqual({ host: HOST, paceMs: 30_000 });
  });

  it('are read from a column that is found by an index', async () => {
    const plan = (await base.db.knex.raw('explain query plan select * from crawlfleet_hosts where wished_at >= 1')) as {
      detail: string;
    }[];
    expect(plan.map(({ detail }) => detail).join()).toContain('crawlfleet_hosts_wished');
  });
});

describe('rests of hosts', () => {
  let stage: CallbackStage;
  let base: Base;
  useCallbackStage((given, own) => ([stage, base] = [given, own]), SHAPE);
  beforeEach(() => cutByHost(stage, base));

  /** Sets the clock of the main server. */
  const setClock = (aheadMs: number): void => {
    const { clock } = stage;
    const now = clock.now.bind(clock);
    clock.now = () => now() + aheadMs;
  };
  const untilOf = async (host: string): Promise<number> =>
    (await base.stores.runs.hostRow(host))!.notBeforeMs! - stage.clock.now();

  it('do not end early when the clock of the main server is set ahead', async () => {
    const [owner, next] = [await stage.ready(0), await stage.ready(1)];
    await owner.orders({ offered: ['1-1'] });
    await owner.orders({ hosts: [{ host: HOST, waitMs: 100_000, refusals: 2 }] });
    await stage.core.work.returnChunks({ slot: 0, epoch: 1 }, stage.clock.now() + 20_000);
    setClock(150_000);
    expect((await next.orders({ offered: ['1-2'] })).grants).toEqual([]);
    expect(await untilOf(HOST)).toBe(100_000);
    await stage.clock.advance(20_000);
    expect((await next.orders({ offered: ['1-2'] })).grants).toEqual([]);
    await stage.clock.advance(80_000);
    expect((await next.orders({ offered: ['1-2'] })).grants).toEqual(['1-2']);
  });

  it('are as long as before when it is set back, and those that begin then too', async () => {
    const [owner, next] = [await stage.ready(0), await stage.ready(1)];
    await owner.orders({ offered: ['1-1'] });
    await stage.core.work.returnChunks({ slot: 0, epoch: 1 }, stage.clock.now() + 20_000);
    setClock(-3_000_000);
    await stage.look();
    expect(await untilOf(HOST)).toBe(20_000);
    await stage.clock.advance(20_000);
    expect((await next.orders({ offered: ['1-2'] })).grants).toEqual(['1-2']);
    await next.orders({ hosts: [{ host: HOST, waitMs: 50_000, refusals: 2 }] });
    await stage.look();
    expect(await untilOf(HOST)).toBe(50_000);
  });

  it('are moved once, also when many heartbeats come and the database fails meanwhile', async () => {
    const owner = await stage.ready(0);
    await owner.orders({ offered: ['1-1'] });
    await stage.core.work.returnChunks({ slot: 0, epoch: 1 }, stage.clock.now() + 20_000);
    const { work } = stage.core;
    const moveRests = work.moveRests.bind(work);
    let calls = 0;
    work.moveRests = (...by) => (++calls === 1 ? Promise.reject(new Error('gone')) : moveRests(...by));
    setClock(3_600_000);
    await expect(stage.look()).rejects.toThrow('gone');
    await Promise.all([owner.orders(), stage.look(), stage.look()]);
    expect(calls).toBe(2);
    expect(await untilOf(HOST)).toBe(20_000);
  });
});

describe('a run of one site', () => {
  let stage: CallbackStage;
  useCallbackStage((given) => (stage = given));

  it('sends no statement about hosts', async () => {
    const caller = await stage.ready(0);
    stage.core.work.hostWishes = () => Promise.reject(new Error('not here'));
    expect(await caller.orders()).not.toHaveProperty('hosts');
  });
});
