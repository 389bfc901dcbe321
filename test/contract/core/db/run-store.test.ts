import { NO_PROGRESS } from '../../../../shared/wire/callbacks.ts';
import { describe, expect, it } from 'vitest';
import { openDatabase } from '../../../../orchestrator/core/db/connect.ts';
import { createStores } from '../../../../orchestrator/core/db/create-stores.ts';
import type { HostPace, OperatorPace } from '../../../../orchestrator/core/plan/host-pace.ts';
import type { RunSettings } from '../../../../orchestrator/core/model/run-settings.ts';
import type { StopRequest } from '../../../../orchestrator/core/model/stores.ts';
import {
  at,
  type Bench,
  bound,
  createRun,
  itWithSql,
  NOW,
  onBothEngines,
  onEveryEngine,
  settings,
  toLoading,
} from './harness.ts';
import { expectFault } from '../../../support/expect-fault.ts';
import { LOCK_NAMES, lockRequest } from '../../../support/lock-request.ts';
import { features } from '../../../support/features.ts';

const paceOf = (host: string, delayMs: number, runId: string): HostPace => ({
  host,
  intervalMs: delayMs,
  cap: { addresses: 4, delayMs, beforeMs: 1_000, atMs: NOW, runId },
});

const aPace: Omit<OperatorPace, 'runId'> = {
  atMs: NOW,
  intervalMs: 20_000,
  pausedUntilMs: null,
  addresses: 4,
  isForNextPlan: false,
};

onEveryEngine('RunStore', (bench, engine) => {
  it('returns a run as it was created', async () => {
    const { created, id } = await createRun(bench(), 12);
    expect(await bench().stores.runs.get(id)).toEqual({
      ...created,
      phase: 'planned',
      reason: null,
      exitCode: null,
      finishedAtMs: null,
      prunedAtMs: null,
      balancers: {},
      request: null,
      report: null,
    });
    expect(await bench().stores.runs.get('20200101-000000-none')).toBeNull();
  });

  it('refuses to create a run twice', async () => {
    const { created } = await createRun(bench(), 2);
    await expectFault(bench().stores.runs.create(created, ['a', 'b'], bench().fence, NOW), 'internal');
  });

  itWithSql(engine)('lists the newest run first', async () => {
    const older = await createRun(bench(), 1);
    const newer = await createRun(bench(), 1);
    const ids = (await bench().stores.runs.list(2)).map((r) => r.id);
    expect(ids).toEqual([newer.id, older.id]);
  });

  itWithSql(engine)('finds the runs that have not ended, or have no report, newest first', async () => {
    const { runs } = bench().stores;
    const [open, unreported, ended] = [
      await createRun(bench(), 1),
      await createRun(bench(), 1),
      await createRun(bench(), 1),
    ].map(({ id }) => id);
    const isThere = async (...ids: (string | undefined)[]): Promise<string[]> =>
      (await runs.unfinished()).map(({ id }) => id).filter((id) => ids.includes(id));
    await bench().db.knex('crawlfleet_runs').whereNot({ id: open! }).update({ phase: 'completed', report: '{}' });
    await bench().db.knex('crawlfleet_runs').where({ id: unreported! }).update({ report: null });
    expect(await isThere(open, unreported, ended)).toEqual([unreported, open]);
  });

  it('moves a run only from the phase it is in, with one event', async () => {
    const { id } = await createRun(bench(), 1);
    expect(await bound(bench(), id, { nowMs: NOW + 1 }).run.move('planned', 'launching')).toBe(true);
    expect(await bound(bench(), id, { nowMs: NOW + 2 }).run.move('planned', 'launching')).toBe(false);
    expect(await bench().stores.of(id).run.events(10)).toEqual([
      { atMs: NOW + 1, kind: 'run', slot: null, epoch: null, from: 'planned', to: 'launching', detail: null },
      { atMs: NOW, kind: 'run', slot: null, epoch: null, from: null, to: 'planned', detail: null },
    ]);
  });

  it('lets one of many concurrent movers win', async () => {
    const { run } = await createRun(bench(), 1);
    const moves = Array.from({ length: 8 }, () => run.move('planned', 'launching'));
    expect((await Promise.all(moves)).filter(Boolean)).toHaveLength(1);
  });

  it('refuses a move that the state machine does not have', async () => {
    const { run } = await createRun(bench(), 1);
    await expectFault(run.move('planned', 'loading'), 'internal');
  });

  it('records the end of a run with its exit code and reason', async () => {
    const { runs } = bench().stores;
    const { id } = await createRun(bench(), 0);
    await bound(bench(), id, { nowMs: NOW + 9 }).run.move('planned', 'completed', {
      exitCode: 0,
      reason: 'nothing to do',
    });
    const expected = { phase: 'completed', exitCode: 0, reason: 'nothing to do', finishedAtMs: NOW + 9 };
    expect(await runs.get(id)).toMatchObject(expected);
  });

  const wisher = (bench: Bench, id: string) => async (request: StopRequest) => [
    await bound(bench, id).run.setRequest(request),
    (await bench.stores.runs.get(id))?.request,
  ];

  it('accepts a stop request only while the run is active, and none over another one but cancel', async () => {
    const { runs } = bench().stores;
    const wish = wisher(bench(), (await createRun(bench(), 1)).id);
    expect(await wish('banned')).toEqual([true, 'banned']);
    expect(await wish('banned')).toEqual([true, 'banned']);
    expect(await wish('site-changed')).toEqual([false, 'banned']);
    expect(await wish('no-balancer')).toEqual([false, 'banned']);
    // The crawl has stopped already, and the reason decides what can be retried.
    expect(await wish('stop')).toEqual([false, 'banned']);
    expect(await wish('cancel')).toEqual([true, 'cancel']);
    expect(await wish('cancel')).toEqual([true, 'cancel']);
    expect(await wish('stop')).toEqual([false, 'cancel']);
    expect(await runs.setRequest('unknown', 'stop')).toBe(false);
  });

  it('keeps a person’s stop request against those of the main server', async () => {
    const wish = wisher(bench(), (await createRun(bench(), 1)).id);
    expect(await wish('stop')).toEqual([true, 'stop']);
    expect(await wish('stop')).toEqual([true, 'stop']);
    expect(await wish('banned')).toEqual([false, 'stop']);
  });

  it('accepts no stop request of a main server that has lost its lock, but always one of a person', async () => {
    const { runs } = bench().stores;
    const { id } = await createRun(bench(), 1);
    await expectFault(bound(bench(), id, { fence: bench().fence - 1 }).run.setRequest('no-balancer'), 'lock-held');
    expect((await runs.get(id))?.request).toBeNull();
    expect(await runs.setRequest(id, 'stop')).toBe(true);
  });

  it('accepts no stop request for a run that has ended or is held', async () => {
    const { runs } = bench().stores;
    const ended = await createRun(bench(), 0);
    await ended.run.move('planned', 'completed', { exitCode: 0 });
    const held = await createRun(bench(), 1);
    await toLoading(bench(), held.id);
    await held.run.move('loading', 'held', { exitCode: 13 });
    for (const { id } of [ended, held]) {
      for (const request of ['stop', 'cancel', 'banned'] as const)
        expect(await bound(bench(), id).run.setRequest(request)).toBe(false);
      expect((await runs.get(id))?.request).toBeNull();
    }
  });

  it('holds no run that is to be cancelled', async () => {
    const { runs } = bench().stores;
    const { id, run } = await createRun(bench(), 1);
    await toLoading(bench(), id);
    await runs.setRequest(id, 'cancel');
    expect(await run.move('loading', 'held', { exitCode: 13 })).toBe(false);
    expect(await runs.get(id)).toMatchObject({ phase: 'loading' });
  });

  it('discards a held run with its cancel in one move, and keeps the time at which it was held', async () => {
    const { runs } = bench().stores;
    const { id } = await createRun(bench(), 1);
    await toLoading(bench(), id);
    await bound(bench(), id, { nowMs: NOW + 7 }).run.move('loading', 'held', { exitCode: 13 });
    const detail = { exitCode: 11, request: 'cancel' } as const;
    expect(await bound(bench(), id, { nowMs: NOW + 9_000 }).run.move('held', 'cancelled', detail)).toBe(true);
    expect(await runs.get(id)).toMatchObject({ phase: 'cancelled', request: 'cancel', finishedAtMs: NOW + 7 });
  });

  it('returns the newest events of one kind, whatever happened since', async () => {
    const { id } = await createRun(bench(), 1);
    const alarm = { atMs: NOW, kind: 'alarm', slot: null, epoch: null, from: null, to: null };
    for (const detail of ['first', 'second'])
      await bench()
        .stores.of(id)
        .run.addEvent({ ...alarm, detail });
    await toLoading(bench(), id);
    expect((await bench().stores.of(id).run.events(10, 'alarm')).map((e) => e.detail)).toEqual(['second', 'first']);
    expect((await bench().stores.of(id).run.events(1, 'alarm')).map((e) => e.detail)).toEqual(['second']);
  });

  it('keeps balancer, request, report and alarms', async () => {
    const { runs } = bench().stores;
    const { id, run } = await createRun(bench(), 1);
    const balancer = { url: 'http://127.0.0.1:1', loadBalancerArn: 'a', targetGroupArn: 'b', listenerArn: 'c' };
    await run.setBalancer('eu-west-1', balancer);
    await runs.setRequest(id, 'stop');
    await run.setReport({ run: id } as never);
    await bench()
      .stores.of(id)
      .run.addEvent({ atMs: NOW, kind: 'alarm', slot: 1, epoch: 2, from: null, to: null, detail: 'x' });
    expect(await runs.get(id)).toMatchObject({
      balancers: { 'eu-west-1': balancer },
      request: 'stop',
      report: { run: id },
    });
    expect((await bench().stores.of(id).run.events(1))[0]).toMatchObject({
      kind: 'alarm',
      slot: 1,
      epoch: 2,
      detail: 'x',
    });
    await run.setBalancer('eu-west-1', null);
    await run.setEnd(4, 'left behind');
    expect(await runs.get(id)).toMatchObject({ balancers: {}, exitCode: 4, reason: 'left behind' });
  });

  it('keeps what the hosts of the site ask for', async () => {
    const { id, run } = await createRun(bench(), 1);
    await run.setPaces([paceOf('shop.example', 4_000, id)]);
    expect((await bench().stores.runs.get(id))!.paces).toEqual([paceOf('shop.example', 4_000, id)]);
    await expectFault(bound(bench(), id, { fence: bench().fence - 1 }).run.setPaces([]), 'lock-held');
  });

  itWithSql(engine)('finds what a host asked of its last run, probes apart, as stored or else as planned', async () => {
    const { runs } = bench().stores;
    const lastPace = (host: string) => runs.lastPace(host, 0);
    const of = (host: string, change: object = {}) => {
      const own = settings('paces');
      return { settings: { ...own, site: { ...own.site, productUrl: `https://${host}/{id}`, ...change } } };
    };
    await createRun(bench(), 1, of('www.paces-a.example'));
    expect(await lastPace('paces-a.example')).toMatchObject({ host: 'paces-a.example' });
    expect((await lastPace('paces-a.example'))!.cap).toBeUndefined();
    const asked = paceOf('paces-a.example', 4_000, 'earlier');
    const { run, id, created } = await createRun(bench(), 1, of('paces-a.example'));
    const plan = JSON.stringify({ ...created.plan, paces: [asked] });
    await bench().db.knex('crawlfleet_runs').where({ id }).update({ plan });
    await createRun(bench(), 1, of('paces-b.example'));
    await createRun(bench(), 1, of('paces-a.example', { maxRequests: 5 }));
    expect(await lastPace('paces-a.example')).toEqual(asked);
    await run.setPaces([paceOf('paces-a.example', 8_000, 'this')]);
    expect(await lastPace('paces-a.example')).toEqual(paceOf('paces-a.example', 8_000, 'this'));
    expect(await lastPace('paces-c.example')).toBeNull();
    const pace = { ...aPace, runId: id, isForNextPlan: true };
    await runs.setOperatorPace(id, pace);
    expect((await lastPace('paces-a.example'))!.operatorPace).toEqual(pace);
    await runs.setOperatorPace(id, { ...pace, isForNextPlan: false });
    expect((await lastPace('paces-a.example'))!.operatorPace).toBeUndefined();
  });

  itWithSql(engine)(
    'remembers a host that has banned an address, by the page of the evidence, probes apart',
    async () => {
      const { runs } = bench().stores;
      const hosts = ['bans-a.example', 'bans-b.example'];
      const urls = hosts.map((host) => ({ url: `https://${host}/{id}`, weight: 1 }));
      const ban = async (rule: string, change: object, url = 'https://bans-a.example/P1'): Promise<void> => {
        const own = settings('bans');
        const { id } = await createRun(bench(), 1, {
          settings: { ...own, site: { ...own.site, productUrl: urls, ...change } },
        });
        const evidence = JSON.stringify({ rule, url, status: 403, headers: {}, body: '' });
        const at = { run_id: id, slot: 0, epoch: 1, seq: 1, verdict: 'banned', rule, at: 5_000 };
        await bench()
          .db.knex('crawlfleet_incidents')
          .insert({ ...at, evidence });
      };
      const seen = (sinceMs: number) =>
        Promise.all(hosts.map(async (host) => (await runs.lastPace(host, sinceMs))?.bannedLately === true));
      await ban('all-gone', {});
      await ban('status-403', { maxRequests: 5 });
      expect(await seen(0)).toEqual([false, false]);
      await ban('status-403', {});
      expect([await seen(5_000), await seen(5_001)]).toEqual([
        [true, false],
        [false, false],
      ]);
      await ban('status-429', {}, '');
      expect(await seen(5_000)).toEqual([true, true]);
    },
  );

  it('keeps what the operator asks for while the run goes on; of an ended one only a reset', async () => {
    const { runs } = bench().stores;
    const { id, run } = await createRun(bench(), 1);
    const pace = { ...aPace, runId: id };
    expect(await runs.setOperatorPace(id, pace)).toBe(true);
    expect((await runs.get(id))!.operatorPace).toEqual(pace);
    await toLoading(bench(), id);
    await run.move('loading', 'failed', { exitCode: 12, reason: 'x' });
    expect(await runs.setOperatorPace(id, { ...pace, atMs: 2 })).toBe(false);
    const reset = { ...pace, intervalMs: null, addresses: null };
    expect(await runs.setOperatorPace(id, reset)).toBe(true);
    expect((await runs.get(id))!.operatorPace).toEqual(reset);
    expect(await runs.setOperatorPace('no-such-run', reset)).toBe(false);
  });

  it('keeps a balancer for each region, also when they are stored at once', async () => {
    const { runs } = bench().stores;
    const { id, run } = await createRun(bench(), 1);
    const at = (url: string) => ({ url, loadBalancerArn: 'a', targetGroupArn: 'b', listenerArn: 'c' });
    const regions = ['eu-west-1', 'eu-central-1', 'us-east-1'];
    await Promise.all(regions.map((region) => run.setBalancer(region, at(region))));
    await run.setBalancer('us-east-1', null);
    const { balancers } = (await runs.get(id))!;
    expect(balancers).toEqual({ 'eu-west-1': at('eu-west-1'), 'eu-central-1': at('eu-central-1') });
  });

  itWithSql(engine)('reads the one balancer of a run of an earlier version as that of its region', async () => {
    const aws = { region: 'eu-west-1' } as RunSettings['aws'];
    const { id } = await createRun(bench(), 1, { settings: { ...settings('earlier'), aws } });
    const balancer = { url: 'http://127.0.0.1:1', loadBalancerArn: 'a', targetGroupArn: 'b', listenerArn: 'c' };
    await bench()
      .db.knex('crawlfleet_runs')
      .where({ id })
      .update({ balancer: JSON.stringify(balancer) });
    expect((await bench().stores.runs.get(id))?.balancers).toEqual({ 'eu-west-1': balancer });
  });

  itWithSql(engine)('keeps product IDs apart that differ in case, accents or trailing spaces', async () => {
    const ids = ['a', 'A', 'á', 'a ', ' a', 'ａ', '日本語', 'o\'b"\\;--', '\u00e9', 'e\u0301', '🦊', 'x'.repeat(500)];
    const { id, work } = await createRun(bench(), ids, { chunkSize: 100 });
    const [chunk] = await work.waiting(1, new Set());
    expect(chunk?.products.map((p) => p.id)).toEqual(ids);
    for (const product of ids) {
      const found = await bench().db.knex('crawlfleet_items').where({ run_id: id, product_id: product });
      expect(found).toHaveLength(1);
    }
  });

  it('accepts 30,000 products in one transaction', async () => {
    const { work } = await createRun(bench(), 30_000, { chunkSize: 75 });
    expect(await work.outcomes()).toMatchObject({ planned: 30_000, open: 30_000 });
    expect(await work.counts()).toMatchObject({ chunks: 400, waiting: 400 });
  });
});

onBothEngines('The lock', (bench) => {
  it('has one owner until it is released, expires or is taken from a dead one', async () => {
    const { runs } = bench().stores;
    await runs.releaseLock(bench().fence);
    const first = await runs.acquireLock(lockRequest('a', NOW, 1_000));
    const fence = 'fence' in first ? first.fence : 0;
    expect(fence).toBeGreaterThan(bench().fence);
    const held = { heldBy: { name: LOCK_NAMES[0], owner: 'a', runId: null, expiresAtMs: NOW + 1_000 } };
    expect(await runs.acquireLock(lockRequest('b', NOW + 999, 1_000))).toEqual(held);

    expect(await runs.renewLock(fence, NOW + 500, 1_000, 'run-1')).toBe(true);
    const holder = { name: LOCK_NAMES[0]!, owner: 'a', runId: 'run-1', expiresAtMs: NOW + 1_500 };
    expect(await runs.acquireLock(lockRequest('b', NOW + 1_000, 1_000))).toEqual({ heldBy: holder });
    expect(await runs.acquireLock(lockRequest('b', NOW + 1_000, 1_000, { ...holder, owner: 'c' }))).toEqual({
      heldBy: holder,
    });

    const second = await runs.acquireLock(lockRequest('b', NOW + 1_000, 1_000, holder));
    expect(second).toEqual({ fence: fence + 1 });
    expect(await runs.renewLock(fence, NOW + 1_001, 1_000, null)).toBe(false);
    expect(await runs.acquireLock(lockRequest('c', NOW + 2_000, 1_000))).toEqual({ fence: fence + 2 });
    await runs.releaseLock(fence + 1);
    expect(await runs.acquireLock(lockRequest('d', NOW + 2_001, 1_000))).toMatchObject({ heldBy: { owner: 'c' } });
    await runs.releaseLock(fence + 2);
    expect(await runs.acquireLock(lockRequest('d', NOW + 2_002, 1_000))).toHaveProperty('fence');
  });

  describe('of a host and a table', () => {
    const requestOf = (owner: string, ...names: string[]) => ({ owner, names, nowMs: NOW, leaseMs: 1_000 });
    const take = async (owner: string, ...names: string[]): Promise<number> => {
      const taken = await bench().stores.runs.acquireLock(requestOf(owner, ...names));
      if ('fence' in taken) return taken.fence;
      throw new Error(`held by ${taken.heldBy.owner}`);
    };

    it('refuses a request for one of its names, and allows others', async () => {
      const { runs } = bench().stores;
      await take('a', 'host:a', 'table:a');
      await take('b', 'host:b', 'table:b');
      const heldBy = (owner: string, name: string) => ({
        heldBy: { name, owner, runId: null, expiresAtMs: NOW + 1_000 },
      });
      expect(await runs.acquireLock(requestOf('c', 'host:c', 'table:a'))).toEqual(heldBy('a', 'table:a'));
      expect(await runs.acquireLock(requestOf('c', 'host:b', 'table:c'))).toEqual(heldBy('b', 'host:b'));
      await take('c', 'host:c', 'table:c');
      const owners = async (...names: string[]) => (await runs.guard!.holders(names)).map(({ owner }) => owner).sort();
      expect(await owners('host:a', 'table:a', 'host:c', 'host:d')).toEqual(['a', 'c']);
      expect((await runs.guard!.holders()).map(({ owner }) => owner)).toContain('b');
    });

    it('fences off a holder that loses one of its locks, and frees the others', async () => {
      const { runs } = bench().stores;
      const old = await take('a', 'host:e', 'table:e');
      const late = { ...requestOf('b', 'host:f', 'table:e'), nowMs: NOW + 1_000 };
      const taken = await runs.acquireLock(late);
      expect(taken).toHaveProperty('fence');
      expect(await runs.renewLock(old, NOW + 1_001, 1_000, null)).toBe(false);
      await expect(createRun({ ...bench(), fence: old }, 1)).rejects.toMatchObject({ code: 'lock-held' });
      const again = await take('c', 'host:e');
      await runs.releaseLock(old);
      expect(await runs.renewLock(again, NOW + 500, 1_000, 'run-1')).toBe(true);
    });

    it('does not deadlock when several main servers request overlapping locks', async () => {
      const { runs } = bench().stores;
      const ask = (owner: string, names: string[]) => runs.acquireLock(requestOf(owner, ...names));
      const answers = await Promise.all([
        ask('a', ['host:x', 'table:y']),
        ask('b', ['table:y', 'host:x']),
        ask('c', ['table:z', 'host:x']),
      ]);
      expect(answers.filter((answer) => 'fence' in answer)).toHaveLength(1);
    });
  });

  it('goes to exactly one of several main servers that request it at once', async () => {
    const { runs } = bench().stores;
    const later = NOW + 86_400_000;
    const others = await Promise.all([1, 2, 3].map(() => openDatabase(bench().url)));
    try {
      const asked = others.map((db, i) =>
        createStores(db, features).runs.acquireLock(lockRequest(`server-${i}`, later, 60_000)),
      );
      const answers = await Promise.all([...asked, runs.acquireLock(lockRequest('server-own', later, 60_000))]);
      expect(answers.filter((a) => 'fence' in a)).toHaveLength(1);
    } finally {
      await Promise.all(others.map((db) => db.close()));
    }
  });
});

onEveryEngine('A main server that has lost its lock', (bench) => {
  it('changes nothing and gets an error, whatever it tries to write', async () => {
    const { runs } = bench().stores;
    const { id, work } = await createRun(bench(), 10);
    const old = bench().fence;
    const late = bound(bench(), id, { fence: old });
    const taken = await runs.acquireLock(lockRequest('other', NOW + 86_400_000, 1_000));
    expect(taken).toHaveProperty('fence');
    const claim = { slot: 0, epoch: 1, request: { userData: '' } as never, token: 't' };
    const progress = { ...NO_PROGRESS };
    const hello = { instanceId: 'i', address: 'a', publicKey: 'k', bundleSha256: '', clock: '' };
    const part = { seq: 0, key: 'k', sha256: 'f'.repeat(64), sizeBytes: 1, products: 1 };
    const writes: [string, () => Promise<unknown>][] = [
      ['create', () => createRun({ ...bench(), fence: old }, 1)],
      ['move', () => late.run.move('planned', 'launching')],
      ['setBalancer', () => late.run.setBalancer('any', null)],
      ['setEnd', () => late.run.setEnd(4, '')],
      ['setReport', () => late.run.setReport({} as never)],
      ['claim', () => late.fleet.claim(claim)],
      ['patch', () => late.fleet.patch(at(0), { attempts: 1 })],
      ['instance move', () => late.fleet.move(at(0), 'claimed', 'pending')],
      ['hello', () => late.fleet.hello(at(0), hello)],
      ['heartbeat', () => late.fleet.heartbeat(at(0), { counter: 1, progress, problem: null })],
      ['grant', () => late.work.grant(at(0), ['1-1'], 9)],
      ['release', () => late.work.returnChunks(at(0))],
      ['failRest', () => late.work.failRest('deadline')],
      ['register', () => late.results.register(at(0), [part])],
      ['load', () => late.results.load({ ...at(0), seq: 0 }, [])],
      ['failPart', () => late.results.failPart({ ...at(0), seq: 0 }, 'x')],
      ['publish', () => late.results.publish('completed', { exitCode: 0, reason: null })],
    ];
    for (const [name, write] of writes) await expect(write(), name).rejects.toMatchObject({ code: 'lock-held' });
    expect(await runs.get(id)).toMatchObject({ phase: 'planned' });
    expect(await work.outcomes()).toMatchObject({ open: 10 });
  });
});
