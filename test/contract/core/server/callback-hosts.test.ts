/** What operators ask of hosts while a run crawls them: in the replies to heartbeats, until they are heard of. */
import { beforeEach, describe, expect, it } from 'vitest';
import { ANY_HOST } from '../../../../shared/domain/domains.ts';
import type { Base } from '../run-stage.ts';
import type { CallbackStage } from './callback-stage.ts';
import { useCallbackStage } from './use-callback-stage.ts';

const HOST = 'a.example';
const OTHER = 'b.example';

describe('hosts of an operator', () => {
  let stage: CallbackStage;
  let base: Base;
  const shape = { site: { productUrl: ANY_HOST }, products: 4, chunkSize: 2 };
  useCallbackStage((given, own) => ([stage, base] = [given, own]), shape);

  beforeEach(async () => {
    const { knex } = base.db;
    const where = { run_id: stage.run.id };
    for (const n of [1, 2, 3, 4])
      await knex('crawlfleet_items')
        .where({ ...where, n })
        .update({ path: `http://www.${n <= 2 ? HOST : OTHER}/${n}` });
    await knex('crawlfleet_chunks').where(where).update({ left_ms: 1_000 });
    await knex('crawlfleet_hosts').del();
    await stage.look();
  });

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

describe('a run of one site', () => {
  let stage: CallbackStage;
  useCallbackStage((given) => (stage = given));

  it('sends no statement about hosts', async () => {
    const caller = await stage.ready(0);
    stage.core.work.hostWishes = () => Promise.reject(new Error('not here'));
    expect(await caller.orders()).not.toHaveProperty('hosts');
  });
});
