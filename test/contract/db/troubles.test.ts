import { expect, it } from 'vitest';
import type { Evidence } from '../../../shared/domain/verdict.ts';
import { NOW, createInstance, createRun, onEveryEngine } from './harness.ts';

const EVIDENCE: Evidence = {
  rule: 'status-403',
  url: 'https://shop.example/item/1',
  status: 403,
  headers: { server: 'nginx' },
  body: '<h1>拒否 \uD83D\uDE45 \u0000</h1>',
};
const BANNED = { verdict: 'banned', atMs: NOW, untilMs: NOW + 60_000, evidence: EVIDENCE } as const;
const ODD = { ...EVIDENCE, rule: 'required-missing', status: 200 };
const SUSPECT = { verdict: 'suspect', atMs: NOW, untilMs: null, evidence: ODD } as const;

onEveryEngine('FleetStore, incidents', (bench) => {
  it('records an incident once, updates it, and ends it', async () => {
    const { fleet } = bench().stores;
    const { fence } = bench();
    const { id } = await createRun(bench(), 1);
    await createInstance(bench(), id, 0, 1);
    const incident = async () => (await fleet.get(id, 0, 1))!.incident;
    expect(await incident()).toBeNull();

    await fleet.recordIncident(id, 0, 1, SUSPECT, fence, NOW);
    await fleet.recordIncident(id, 0, 1, SUSPECT, fence, NOW + 1);
    const suspect = { verdict: 'suspect', rule: 'required-missing', atMs: NOW, untilMs: null };
    expect(await incident()).toEqual({ ...suspect, returnedAtMs: null, overAtMs: null });

    await fleet.recordIncident(id, 0, 1, { ...BANNED, atMs: NOW + 5 }, fence, NOW + 5);
    await fleet.recordReturned(id, 0, 1, fence, NOW + 7);
    await fleet.recordReturned(id, 0, 1, fence, NOW + 8);
    await fleet.recordIncident(id, 0, 1, null, fence, NOW + 9);
    await fleet.recordIncident(id, 0, 1, null, fence, NOW + 10);
    const over = { verdict: 'banned', rule: 'status-403', atMs: NOW, untilMs: NOW + 60_000 } as const;
    expect(await incident()).toEqual({ ...over, returnedAtMs: NOW + 7, overAtMs: NOW + 9 });
    expect((await fleet.instances(id))[0]!.incident).toEqual(await incident());
  });

  it('keeps every incident with its evidence and address, in the order in which they began', async () => {
    const { fleet } = bench().stores;
    const { fence } = bench();
    const { id } = await createRun(bench(), 1);
    await createInstance(bench(), id, 0, 1);
    await createInstance(bench(), id, 1, 1);
    await fleet.patch(id, 1, 1, { address: '203.0.113.7' }, fence);
    await fleet.recordIncident(id, 1, 1, { ...BANNED, atMs: NOW + 10 }, fence, NOW);
    await fleet.recordIncident(id, 0, 1, BANNED, fence, NOW);
    await fleet.recordIncident(id, 0, 1, null, fence, NOW + 20);
    await fleet.recordIncident(id, 0, 1, { ...BANNED, atMs: NOW + 30 }, fence, NOW);
    const all = await fleet.incidents(id);
    expect(all.map((t) => [t.slot, t.atMs, t.overAtMs])).toEqual([
      [0, NOW, NOW + 20],
      [1, NOW + 10, null],
      [0, NOW + 30, null],
    ]);
    expect(all[1]).toMatchObject({ address: '203.0.113.7', evidence: EVIDENCE });
    expect((await fleet.get(id, 0, 1))!.incident).toMatchObject({ atMs: NOW + 30, overAtMs: null });
  });

  it('is not written with an old fence', async () => {
    const { fleet } = bench().stores;
    const { id } = await createRun(bench(), 1);
    await createInstance(bench(), id, 0, 1);
    await expect(fleet.recordIncident(id, 0, 1, BANNED, bench().fence - 1, NOW)).rejects.toThrow();
    expect(await fleet.incidents(id)).toEqual([]);
  });
});
