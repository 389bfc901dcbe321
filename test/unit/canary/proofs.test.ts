/** The proofs of a canary run must be able to fail: the history of a whole run in memory, with one fault at a time. */
import { beforeAll, describe, expect, it } from 'vitest';
import type { RunReport } from '../../../orchestrator/core/model/report.ts';
import { rowOf } from '../../canary/page-server.ts';
import { type Evidence, proofsOf } from '../../canary/proofs.ts';
import { FaultWorld } from '../../faults/fault-world.ts';
import { shapeOf } from '../../faults/plan.ts';

let sound: Evidence;
beforeAll(async () => {
  const world = new FaultWorld(shapeOf(1), {});
  await world.play();
  const history = await world.history();
  const planned = history.facts.planned;
  const ids = Array.from({ length: planned }, (_, i) => `C${i + 1}`);
  const { intervalMs } = history.run.settings.site;
  const shards = [0, 1].map((slot) => ({
    slot,
    epoch: 1,
    instanceId: `i-${slot}`,
    address: `10.0.0.${slot}`,
    assigned: planned / 2,
    stored: planned / 2,
    gone: 0,
    failed: 0,
    minGapMs: intervalMs,
    requests: planned / 2,
  }));
  const report = {
    exitCode: 0,
    onTime: true,
    state: 'completed',
    products: { planned, duplicates: 0, stored: planned, gone: 0, failed: 0, reasons: {} },
    instances: { planned: 2, launched: 2, replaced: 0, terminated: 2 },
    shards,
    cost: { estimated: 0.03, actual: 0.02, currency: 'USD' },
  } as unknown as RunReport;
  sound = {
    ids,
    report,
    history: { ...history, requests: null },
    arrivals: ids.map((id, i) => ({
      atMs: Math.floor(i / 2) * intervalMs,
      address: `10.0.0.${i % 2}`,
      path: `/p/${id}`,
    })),
    rows: ids.map((id) => ({ product_id: id, ...rowOf(id) })),
    leftovers: [],
    verify: { exitCode: 0, text: '' },
  };
});

const failing = (evidence: Evidence): string[] =>
  proofsOf(evidence)
    .filter((p) => !p.holds)
    .map((p) => p.what);

describe('proofsOf', () => {
  it('holds for a sound run', () => {
    expect(proofsOf(sound)).toHaveLength(8);
    expect(failing(sound)).toEqual([]);
  });

  it('leaves out the proofs that need our own pages', () => {
    expect(proofsOf({ ...sound, arrivals: null, rows: [] })).toHaveLength(6);
  });

  const wrong: [string, RegExp, (e: Evidence) => Evidence][] = [
    [
      'a product that is not stored',
      /every product/,
      (e) => withReport(e, { products: { ...e.report.products, stored: 1 } }),
    ],
    ['a run that was late', /deadline/, (e) => withReport(e, { onTime: false })],
    [
      'an instance that was not terminated',
      /terminated/,
      (e) => withReport(e, { instances: { ...e.report.instances, terminated: 0 } }),
    ],
    [
      'two instances with one address',
      /address of its own/,
      (e) => withReport(e, { shards: e.report.shards.map((s) => ({ ...s, address: '10.0.0.1' })) }),
    ],
    ['a failing verify', /verify/, (e) => ({ ...e, verify: { exitCode: 13, text: 'no' } })],
    [
      'a broken invariant',
      /invariants/,
      (e) => ({ ...e, history: { ...e.history, machines: [...e.history.machines!, ...e.history.machines!] } }),
    ],
    [
      'a gap that is too short',
      /more often/,
      (e) => ({ ...e, arrivals: e.arrivals!.map((a) => ({ ...a, atMs: a.atMs * 0.99 })) }),
    ],
    ['a page without a recorded arrival', /more often/, (e) => ({ ...e, arrivals: e.arrivals!.slice(1) })],
    [
      'a row with another price',
      /rows/,
      (e) => ({ ...e, rows: e.rows.map((r, i) => (i === 0 ? { ...r, price: 1 } : r)) }),
    ],
    ['a leftover instance', /left/, (e) => ({ ...e, leftovers: ['i-1 is running'] })],
    ['a price over the limit', /cost/, (e) => withReport(e, { cost: { ...e.report.cost, actual: 0.21 } })],
    [
      'a secret in the log',
      /invariants/,
      (e) => ({ ...e, history: { ...e.history, texts: ['key s3cr3t'], secrets: ['s3cr3t'] } }),
    ],
  ];
  it.each(wrong)('fails for %s', (_, proof, spoil) => {
    expect(failing(spoil(sound)).join()).toMatch(proof);
  });
});

const withReport = (evidence: Evidence, report: Partial<RunReport>): Evidence => ({
  ...evidence,
  report: { ...evidence.report, ...report },
});
