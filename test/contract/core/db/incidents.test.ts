import { expect, it } from 'vitest';
import type { Evidence } from '../../../../shared/domain/verdict.ts';
import { NOW, createInstance, createRun, onEveryEngine, at, bound } from './harness.ts';

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
    const { id, fleet } = await createRun(bench(), 1);
    await createInstance(bench(), id, 0, 1);
    const incident = async () => (await fleet.get(at(0)))!.incident;
    expect(await incident()).toBeNull();

    await fleet.recordIncident(at(0), SUSPECT);
    await bound(bench(), id, { nowMs: NOW + 1 }).fleet.recordIncident(at(0), SUSPECT);
    const suspect = { verdict: 'suspect', rule: 'required-missing', atMs: NOW, untilMs: null };
    expect(await incident()).toEqual({ ...suspect, returnedAtMs: null, overAtMs: null });

    await bound(bench(), id, { nowMs: NOW + 5 }).fleet.recordIncident(at(0), { ...BANNED, atMs: NOW + 5 });
    await bound(bench(), id, { nowMs: NOW + 7 }).fleet.recordReturned(at(0));
    await bound(bench(), id, { nowMs: NOW + 8 }).fleet.recordReturned(at(0));
    await bound(bench(), id, { nowMs: NOW + 9 }).fleet.recordIncident(at(0), null);
    await bound(bench(), id, { nowMs: NOW + 10 }).fleet.recordIncident(at(0), null);
    const over = { verdict: 'banned', rule: 'status-403', atMs: NOW, untilMs: NOW + 60_000 } as const;
    expect(await incident()).toEqual({ ...over, returnedAtMs: NOW + 7, overAtMs: NOW + 9 });
    expect((await fleet.instances())[0]!.incident).toEqual(await incident());
  });

  it('keeps every incident with its evidence and address, in the order in which they began', async () => {
    const { id, fleet } = await createRun(bench(), 1);
    await createInstance(bench(), id, 0, 1);
    await createInstance(bench(), id, 1, 1);
    await fleet.patch(at(1), { address: '203.0.113.7' });
    await fleet.recordIncident(at(1), { ...BANNED, atMs: NOW + 10 });
    await fleet.recordIncident(at(0), BANNED);
    await bound(bench(), id, { nowMs: NOW + 20 }).fleet.recordIncident(at(0), null);
    await fleet.recordIncident(at(0), { ...BANNED, atMs: NOW + 30 });
    const all = await fleet.incidents();
    expect(all.map((t) => [t.slot, t.atMs, t.overAtMs])).toEqual([
      [0, NOW, NOW + 20],
      [1, NOW + 10, null],
      [0, NOW + 30, null],
    ]);
    expect(all[1]).toMatchObject({ address: '203.0.113.7', evidence: EVIDENCE });
    expect((await fleet.get(at(0)))!.incident).toMatchObject({ atMs: NOW + 30, overAtMs: null });
  });

  it('is not written with an old fence', async () => {
    const { id, fleet } = await createRun(bench(), 1);
    await createInstance(bench(), id, 0, 1);
    await expect(
      bound(bench(), id, { fence: bench().fence - 1 }).fleet.recordIncident(at(0), BANNED),
    ).rejects.toThrow();
    expect(await fleet.incidents()).toEqual([]);
  });
});
