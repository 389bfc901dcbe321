import { expect, it } from 'vitest';
import type { Hello, Progress } from '../../../../shared/wire/callbacks.ts';
import { NOW, REQUEST, createInstance, createRun, itWithSql, onEveryEngine, at, bound } from './harness.ts';
import { expectFault } from '../../../support/expect-fault.ts';

const PROGRESS: Progress = {
  assigned: 3,
  pending: 1,
  stored: 1,
  gone: 1,
  failed: 0,
  requests: 2,
  minGapMs: 201.5,
  pageMs: null,
  uploadMs: 40,
  rendered: 1,
  canaries: 0,
  okAgoMs: 250.5,
  tried: 3,
  unavailable: 1,
  served: 2,
  restMs: 0,
  replies: { 200: 12, timeout: 1 },
};

function hello(more: Partial<Hello> = {}): Hello {
  const clock = '2026-11-21T02:15:00.000Z';
  return { instanceId: 'i-1', address: '127.0.0.9', publicKey: 'key', bundleSha256: 'x', clock, ...more };
}

onEveryEngine('FleetStore', (bench, engine) => {
  it('keeps the requests of several runs apart, however often and in whatever order they are read', async () => {
    const runs = [await createRun(bench(), 1), await createRun(bench(), 1)];
    const request = (run: number, slot: number) => ({ ...REQUEST, clientToken: `${run}/${slot}` });
    const tokens = async (run: number) =>
      (await bound(bench(), runs[run]!.id).fleet.instances()).map((i) => i.request.clientToken);
    const claim = (run: number, slot: number) =>
      bound(bench(), runs[run]!.id).fleet.claim({
        slot,
        epoch: 1,
        request: request(run, slot),
        token: `t${run}${slot}`,
      });
    await claim(0, 0);
    await claim(1, 0);
    expect(await tokens(0)).toEqual(['0/0']);
    expect(await tokens(1)).toEqual(['1/0']);
    await claim(0, 1);
    expect(await Promise.all([tokens(0), tokens(1), tokens(0)])).toEqual([['0/0', '0/1'], ['1/0'], ['0/0', '0/1']]);
    expect((await bound(bench(), runs[0]!.id).fleet.get(at(1)))?.request).toEqual(request(0, 1));
  });

  itWithSql(engine)('reads the request of a claim once, and again when another claim has replaced it', async () => {
    const { id, fleet } = await createRun(bench(), 1);
    await fleet.claim({ slot: 0, epoch: 1, request: REQUEST, token: 'a' });
    await fleet.instances();
    const { knex } = bench().db;
    const other = JSON.stringify({ ...REQUEST, imageId: 'ami-2' });
    await knex('crawlfleet_launches').where({ run_id: id }).update({ request: other });
    expect((await fleet.instances())[0]?.request.imageId).toBe('ami-1');
    await knex('crawlfleet_launches').where({ run_id: id }).update({ token: 'b' });
    expect((await fleet.instances())[0]?.request.imageId).toBe('ami-2');
  });

  it('keeps a claim with the whole request, once', async () => {
    const { id, fleet } = await createRun(bench(), 1);
    const claim = { slot: 2, epoch: 1, request: REQUEST, token: 'secret' };
    expect(await fleet.claim(claim)).toBe(true);
    expect(await bound(bench(), id, { nowMs: NOW + 1 }).fleet.claim({ ...claim, token: 'other' })).toBe(false);
    expect(await fleet.get(at(2))).toEqual({
      slot: 2,
      epoch: 1,
      phase: 'claimed',
      phaseAtMs: NOW,
      reason: null,
      instanceId: null,
      address: null,
      zone: null,
      request: REQUEST,
      token: 'secret',
      attempts: 0,
      answer: null,
      lastError: null,
      claimedAtMs: NOW,
      launchedAtMs: null,
      terminatedAtMs: null,
      cloudState: null,
      stateReason: null,
      registered: false,
      publicKey: null,
      secretsKey: null,
      counter: 0,
      lastHeartbeatAtMs: null,
      progress: null,
      problem: null,
      sealed: false,
      rotateAtMs: null,
      manifestKey: null,
      manifestSha256: null,
      consoleOutput: null,
      incident: null,
    });
    expect(await fleet.get(at(2, 2))).toBeNull();
  });

  it('lets one of many claims of the same slot and epoch win', async () => {
    const { fleet } = await createRun(bench(), 1);
    const claims = Array.from({ length: 6 }, (_, i) =>
      fleet.claim({ slot: 0, epoch: 1, request: REQUEST, token: `t${i}` }),
    );
    expect((await Promise.all(claims)).filter(Boolean)).toHaveLength(1);
  });

  it('orders instances by slot and epoch, and returns only those of one run', async () => {
    const { id, fleet } = await createRun(bench(), 1);
    const other = await createRun(bench(), 1);
    await createInstance(bench(), other.id, 0);
    for (const [slot, epoch] of [
      [10, 1],
      [2, 2],
      [2, 1],
    ] as const)
      await createInstance(bench(), id, slot, epoch);
    const found = (await fleet.instances()).map((i) => [i.slot, i.epoch]);
    expect(found).toEqual([
      [2, 1],
      [2, 2],
      [10, 1],
    ]);
  });

  it('patches what may change and refuses an unknown claim', async () => {
    const { id, fleet } = await createRun(bench(), 1);
    await createInstance(bench(), id, 0);
    const patch = {
      instanceId: 'i-9',
      address: '127.0.0.2',
      zone: 'a',
      attempts: 2,
      answer: { kind: 'refused', cause: 'pool', message: 'no capacity' },
      lastError: 'Target.Timeout',
      launchedAtMs: NOW + 5,
      terminatedAtMs: NOW + 6,
      cloudState: 'running',
      stateReason: { code: 'Server.InternalError', message: 'an error on launch' },
      registered: true,
      sealed: true,
      rotateAtMs: NOW + 7,
      manifestKey: 'k',
      manifestSha256: 's',
      consoleOutput: 'boot 日本語'.repeat(8_000),
      problem: null,
    } as const;
    await fleet.patch(at(0), patch);
    expect(await fleet.get(at(0))).toMatchObject(patch);
    await fleet.patch(at(0), {});
    await expect(fleet.patch(at(5), { attempts: 1 })).rejects.toMatchObject({ code: 'internal' });
  });

  it('moves an instance only from the phase it is in', async () => {
    const { id, fleet } = await createRun(bench(), 1);
    await createInstance(bench(), id, 0);
    expect(
      await bound(bench(), id, { nowMs: NOW + 7 }).fleet.move(at(0), 'crawling', 'lost', { reason: 'silent' }),
    ).toBe(true);
    expect(
      await bound(bench(), id, { nowMs: NOW + 8 }).fleet.move(at(0), 'crawling', 'lost', { reason: 'silent' }),
    ).toBe(false);
    expect(await fleet.get(at(0))).toMatchObject({ phase: 'lost', phaseAtMs: NOW + 7, reason: 'silent' });
    const event = {
      atMs: NOW + 7,
      kind: 'instance',
      slot: 0,
      epoch: 1,
      from: 'crawling',
      to: 'lost',
      detail: 'silent',
    };
    expect(await bench().stores.of(id).run.events(1)).toEqual([event]);
    await expect(fleet.move(at(0), 'lost', 'ready')).rejects.toMatchObject({ code: 'internal' });
  });

  it('records the end of a machine in the move that reports it, and keeps an earlier known time', async () => {
    const { id, fleet } = await createRun(bench(), 1);
    for (const slot of [0, 1]) {
      await createInstance(bench(), id, slot);
      await bound(bench(), id, { nowMs: NOW + 7 }).fleet.move(at(slot), 'crawling', 'lost', { reason: 'silent' });
    }
    await fleet.patch(at(1), { terminatedAtMs: NOW + 3 });
    for (const slot of [0, 1]) await bound(bench(), id, { nowMs: NOW + 9 }).fleet.move(at(slot), 'lost', 'terminated');
    expect((await fleet.instances()).map((i) => i.terminatedAtMs)).toEqual([NOW + 9, NOW + 3]);
  });

  it('records the manifest of a live instance, once, and drops it when the instance is lost', async () => {
    const { fence } = bench();
    const { id, fleet } = await createRun(bench(), 1);
    await createInstance(bench(), id, 0);
    const first = { manifestKey: 'k', manifestSha256: null };
    expect(await fleet.noteManifest(at(0), first)).toBe(true);
    expect(await fleet.noteManifest(at(0), { manifestKey: 'k', manifestSha256: 's' })).toBe(false);
    expect(await fleet.get(at(0))).toMatchObject(first);
    await fleet.move(at(0), 'crawling', 'lost', { reason: 'silent' });
    const none = { phase: 'lost', manifestKey: null, manifestSha256: null };
    expect(await fleet.get(at(0))).toMatchObject(none);
    expect(await fleet.noteManifest(at(0), first)).toBe(false);
    expect(await fleet.get(at(0))).toMatchObject(none);
    await expectFault(bound(bench(), id, { fence: fence - 1 }).fleet.noteManifest(at(0), first), 'lock-held');
  });

  it('binds the key of the first hello and recognizes any other key', async () => {
    const { id, fleet } = await createRun(bench(), 1);
    const say = (more: Partial<Hello> = {}) => bound(bench(), id, { nowMs: NOW + 3 }).fleet.hello(at(1), hello(more));
    expect(await say()).toBe('unknown');
    await fleet.claim({ slot: 1, epoch: 1, request: REQUEST, token: 't' });
    expect(await say()).toBe('unknown');
    await fleet.patch(at(1), { instanceId: 'i-1' });
    expect(await say()).toBe('unknown');
    await fleet.move(at(1), 'claimed', 'pending');
    expect(await say({ instanceId: 'i-2' })).toBe('other-instance');
    expect(await say()).toBe('accepted');
    expect(await fleet.get(at(1))).toMatchObject({
      phase: 'ready',
      phaseAtMs: NOW + 3,
      publicKey: 'key',
      address: '127.0.0.9',
    });
    expect(await say()).toBe('repeated');
    expect(await say({ publicKey: 'stolen' })).toBe('other-key');
    await fleet.move(at(1), 'ready', 'crawling');
    expect(await say()).toBe('repeated');
    await fleet.move(at(1), 'crawling', 'lost');
    expect(await say()).toBe('too-late');
  });

  it('has the secrets key of the last hello that names one', async () => {
    const { fleet } = await createRun(bench(), 1);
    await fleet.claim({ slot: 1, epoch: 1, request: REQUEST, token: 't' });
    await fleet.patch(at(1), { instanceId: 'i-1' });
    await fleet.move(at(1), 'claimed', 'pending');
    const secretsKeyAfter = async (more: Partial<Hello>): Promise<string | null | undefined> => {
      await fleet.hello(at(1), hello(more));
      return (await fleet.get(at(1)))?.secretsKey;
    };
    expect([
      await secretsKeyAfter({ secretsKey: 'one' }),
      await secretsKeyAfter({ secretsKey: 'two' }),
      await secretsKeyAfter({}),
    ]).toEqual(['one', 'two', 'two']);
    await fleet.hello(at(1), hello({ publicKey: 'stolen', secretsKey: 'stolen' }));
    expect((await fleet.get(at(1)))?.secretsKey).toBe('two');
  });

  it('accepts a first hello only before the instance is given up', async () => {
    const { fleet } = await createRun(bench(), 1);
    await fleet.claim({ slot: 1, epoch: 1, request: REQUEST, token: 't' });
    await fleet.patch(at(1), { instanceId: 'i-1' });
    await fleet.move(at(1), 'claimed', 'lost', { reason: 'never said hello' });
    expect(await fleet.hello(at(1), hello())).toBe('too-late');
  });

  it('accepts one of two concurrent hellos with different keys', async () => {
    const { fleet } = await createRun(bench(), 1);
    await fleet.claim({ slot: 1, epoch: 1, request: REQUEST, token: 't' });
    await fleet.patch(at(1), { instanceId: 'i-1' });
    await fleet.move(at(1), 'claimed', 'pending');
    const results = await Promise.all(['a', 'b', 'c'].map((publicKey) => fleet.hello(at(1), hello({ publicKey }))));
    expect(results.sort()).toEqual(['accepted', 'other-key', 'other-key']);
  });

  it('accepts a heartbeat with a higher counter and refuses a replay', async () => {
    const { id, fleet } = await createRun(bench(), 1);
    await createInstance(bench(), id, 0);
    const beat = (counter: number, nowMs: number) =>
      bound(bench(), id, { nowMs }).fleet.heartbeat(at(0), { counter, progress: PROGRESS, problem: 'disk full' });
    expect(await beat(3, NOW + 10)).toBe(true);
    expect(await beat(3, NOW + 20)).toBe(false);
    expect(await beat(2, NOW + 30)).toBe(false);
    const expected = { counter: 3, lastHeartbeatAtMs: NOW + 10, progress: PROGRESS, problem: 'disk full' };
    expect(await fleet.get(at(0))).toMatchObject(expected);
    const many = await Promise.all(Array.from({ length: 8 }, () => beat(4, NOW + 40)));
    expect(many.filter(Boolean)).toHaveLength(1);
    await fleet.move(at(0), 'crawling', 'lost');
    expect(await beat(5, NOW + 50)).toBe(false);
    expect(await fleet.get(at(0))).toMatchObject({ counter: 4, lastHeartbeatAtMs: NOW + 40 });
  });

  it('records no heartbeat of an instance that is given up: its hosts are free by the last one', async () => {
    const { id } = await createRun(bench(), 1);
    await createInstance(bench(), id, 0);
    const store = (ms: number) => bound(bench(), id, { nowMs: NOW + ms }).fleet;
    const beat = (counter: number) => ({ counter, progress: PROGRESS, problem: null });
    expect(await store(10).heartbeat(at(0), beat(1))).toBe(true);
    await store(20).move(at(0), 'crawling', 'lost');
    expect(await store(30).heartbeat(at(0), beat(2))).toBe(false);
    expect(await store(30).get(at(0))).toMatchObject({ counter: 1, lastHeartbeatAtMs: NOW + 10 });
  });
});
