import { expect, it } from 'vitest';
import type { Hello, Progress } from '../../../shared/wire/callbacks.ts';
import { NOW, REQUEST, createInstance, createRun, onBothEngines } from './harness.ts';

const PROGRESS: Progress = {
  assigned: 3,
  pending: 1,
  stored: 1,
  gone: 1,
  failed: 0,
  requests: 2,
  minGapMs: 201.5,
  pageMs: null,
};

function hello(more: Partial<Hello> = {}): Hello {
  const clock = '2026-11-21T02:15:00.000Z';
  return { instanceId: 'i-1', address: '127.0.0.9', publicKey: 'key', bundleSha256: 'x', clock, ...more };
}

onBothEngines('FleetStore', (bench) => {
  it('keeps a claim with the whole request, once', async () => {
    const { fleet } = bench().stores;
    const { id } = await createRun(bench(), 1);
    const claim = { slot: 2, epoch: 1, request: REQUEST, token: 'secret' };
    expect(await fleet.claim(id, claim, bench().fence, NOW)).toBe(true);
    expect(await fleet.claim(id, { ...claim, token: 'other' }, bench().fence, NOW + 1)).toBe(false);
    expect(await fleet.get(id, 2, 1)).toEqual({
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
      lastError: null,
      claimedAtMs: NOW,
      launchedAtMs: null,
      terminatedAtMs: null,
      cloudState: null,
      registered: false,
      publicKey: null,
      counter: 0,
      lastHeartbeatAtMs: null,
      progress: null,
      problem: null,
      sealed: false,
      manifestKey: null,
      manifestSha256: null,
      consoleOutput: null,
    });
    expect(await fleet.get(id, 2, 2)).toBeNull();
  });

  it('lets one of many claims of the same slot and epoch win', async () => {
    const { fleet } = bench().stores;
    const { id } = await createRun(bench(), 1);
    const claims = Array.from({ length: 6 }, (_, i) =>
      fleet.claim(id, { slot: 0, epoch: 1, request: REQUEST, token: `t${i}` }, bench().fence, NOW),
    );
    expect((await Promise.all(claims)).filter(Boolean)).toHaveLength(1);
  });

  it('orders instances by slot and epoch, and keeps to one run', async () => {
    const { fleet } = bench().stores;
    const { id } = await createRun(bench(), 1);
    const other = await createRun(bench(), 1);
    await createInstance(bench(), other.id, 0);
    for (const [slot, epoch] of [
      [10, 1],
      [2, 2],
      [2, 1],
    ] as const)
      await createInstance(bench(), id, slot, epoch);
    const found = (await fleet.instances(id)).map((i) => [i.slot, i.epoch]);
    expect(found).toEqual([
      [2, 1],
      [2, 2],
      [10, 1],
    ]);
  });

  it('patches what may change and refuses an unknown claim', async () => {
    const { fleet } = bench().stores;
    const { id } = await createRun(bench(), 1);
    await createInstance(bench(), id, 0);
    const patch = {
      instanceId: 'i-9',
      address: '127.0.0.2',
      zone: 'a',
      attempts: 2,
      lastError: 'no capacity',
      launchedAtMs: NOW + 5,
      terminatedAtMs: NOW + 6,
      cloudState: 'running',
      registered: true,
      sealed: true,
      manifestKey: 'k',
      manifestSha256: 's',
      consoleOutput: 'boot 日本語'.repeat(8_000),
      problem: null,
    } as const;
    await fleet.patch(id, 0, 1, patch, bench().fence);
    expect(await fleet.get(id, 0, 1)).toMatchObject(patch);
    await fleet.patch(id, 0, 1, {}, bench().fence);
    await expect(fleet.patch(id, 5, 1, { attempts: 1 }, bench().fence)).rejects.toMatchObject({ code: 'internal' });
  });

  it('moves an instance only from the phase it is in', async () => {
    const { fleet, runs } = bench().stores;
    const { id } = await createRun(bench(), 1);
    await createInstance(bench(), id, 0);
    expect(await fleet.move(id, 0, 1, 'crawling', 'lost', bench().fence, NOW + 7, 'silent')).toBe(true);
    expect(await fleet.move(id, 0, 1, 'crawling', 'lost', bench().fence, NOW + 8, 'silent')).toBe(false);
    expect(await fleet.get(id, 0, 1)).toMatchObject({ phase: 'lost', phaseAtMs: NOW + 7, reason: 'silent' });
    const event = {
      atMs: NOW + 7,
      kind: 'instance',
      slot: 0,
      epoch: 1,
      from: 'crawling',
      to: 'lost',
      detail: 'silent',
    };
    expect(await runs.events(id, 1)).toEqual([event]);
    await expect(fleet.move(id, 0, 1, 'lost', 'ready', bench().fence, NOW)).rejects.toMatchObject({ code: 'internal' });
  });

  it('binds the key of the first hello and tells every other one apart', async () => {
    const { fleet } = bench().stores;
    const { id } = await createRun(bench(), 1);
    const { fence } = bench();
    const say = (more: Partial<Hello> = {}) => fleet.hello(id, 1, 1, hello(more), fence, NOW + 3);
    expect(await say()).toBe('unknown');
    await fleet.claim(id, { slot: 1, epoch: 1, request: REQUEST, token: 't' }, fence, NOW);
    expect(await say()).toBe('unknown');
    await fleet.patch(id, 1, 1, { instanceId: 'i-1' }, fence);
    expect(await say()).toBe('unknown');
    await fleet.move(id, 1, 1, 'claimed', 'pending', fence, NOW);
    expect(await say({ instanceId: 'i-2' })).toBe('other-instance');
    expect(await say()).toBe('accepted');
    expect(await fleet.get(id, 1, 1)).toMatchObject({
      phase: 'ready',
      phaseAtMs: NOW + 3,
      publicKey: 'key',
      address: '127.0.0.9',
    });
    expect(await say()).toBe('repeated');
    expect(await say({ publicKey: 'stolen' })).toBe('other-key');
    await fleet.move(id, 1, 1, 'ready', 'crawling', fence, NOW);
    expect(await say()).toBe('repeated');
    await fleet.move(id, 1, 1, 'crawling', 'lost', fence, NOW);
    expect(await say()).toBe('too-late');
  });

  it('accepts a first hello only before the instance is given up', async () => {
    const { fleet } = bench().stores;
    const { id } = await createRun(bench(), 1);
    await fleet.claim(id, { slot: 1, epoch: 1, request: REQUEST, token: 't' }, bench().fence, NOW);
    await fleet.patch(id, 1, 1, { instanceId: 'i-1' }, bench().fence);
    await fleet.move(id, 1, 1, 'claimed', 'lost', bench().fence, NOW, 'never said hello');
    expect(await fleet.hello(id, 1, 1, hello(), bench().fence, NOW)).toBe('too-late');
  });

  it('accepts one of two hellos with different keys that come at once', async () => {
    const { fleet } = bench().stores;
    const { id } = await createRun(bench(), 1);
    await fleet.claim(id, { slot: 1, epoch: 1, request: REQUEST, token: 't' }, bench().fence, NOW);
    await fleet.patch(id, 1, 1, { instanceId: 'i-1' }, bench().fence);
    await fleet.move(id, 1, 1, 'claimed', 'pending', bench().fence, NOW);
    const results = await Promise.all(
      ['a', 'b', 'c'].map((publicKey) => fleet.hello(id, 1, 1, hello({ publicKey }), bench().fence, NOW)),
    );
    expect(results.sort()).toEqual(['accepted', 'other-key', 'other-key']);
  });

  it('takes a heartbeat with a higher counter and refuses a replay', async () => {
    const { fleet } = bench().stores;
    const { id } = await createRun(bench(), 1);
    await createInstance(bench(), id, 0);
    const beat = (counter: number, nowMs: number) =>
      fleet.heartbeat(id, 0, 1, { counter, progress: PROGRESS, problem: 'disk full' }, bench().fence, nowMs);
    expect(await beat(3, NOW + 10)).toBe(true);
    expect(await beat(3, NOW + 20)).toBe(false);
    expect(await beat(2, NOW + 30)).toBe(false);
    const expected = { counter: 3, lastHeartbeatAtMs: NOW + 10, progress: PROGRESS, problem: 'disk full' };
    expect(await fleet.get(id, 0, 1)).toMatchObject(expected);
    const many = await Promise.all(Array.from({ length: 8 }, () => beat(4, NOW + 40)));
    expect(many.filter(Boolean)).toHaveLength(1);
  });
});
