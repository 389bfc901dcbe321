import { describe, expect, it } from 'vitest';
import { noDifference, note, type VerifyFacts } from '../../../orchestrator/core/verify/verify-facts.ts';
import { verifyRun } from '../../../orchestrator/core/verify/verify.ts';
import type { RunRecord } from '../../../orchestrator/core/model/stores.ts';

/** Ten products, eight of them stored with 20 rows in all. */
function facts(more: Partial<VerifyFacts> = {}): VerifyFacts {
  return {
    phase: 'completed',
    planned: 10,
    items: 10,
    outcomes: { open: 0, stored: 8, gone: 1, failed: 1 },
    reasons: { timeout: 1 },
    refused: 0,
    partial: noDifference(),
    duplicates: noDifference(),
    parts: { seen: 0, loaded: 1, failed: 0 },
    partsOff: noDifference(),
    withoutPart: noDifference(),
    ungranted: noDifference(),
    putAside: noDifference(),
    published: true,
    ledgerRows: 20,
    resultRows: 20,
    replacedRows: 0,
    storedWithoutRow: noDifference(),
    overwritten: noDifference(),
    rowsOff: noDifference(),
    rowsWithoutItem: noDifference(),
    ...more,
  };
}

function one(example: string, items = 1) {
  const difference = noDifference();
  note(difference, example, items);
  return difference;
}

async function verdict(more: Partial<VerifyFacts>) {
  const settings = { site: { intervalMs: 1_000, productUrl: 'http://shop.example/{id}' } };
  const run = { id: 'r', phase: 'completed', settings } as RunRecord;
  const { differences, holds, notes } = await verifyRun({
    run,
    facts: facts(more),
    instances: [],
    parts: [],
    objects: {} as never,
  });
  expect(holds).toBe(differences.length === 0);
  return { differences: differences.map((d) => [d.check, d.expected, d.found]), notes };
}

describe('The check of the rows', () => {
  it('passes when the result table has as many rows of the run as its ledger', async () => {
    expect(await verdict({})).toEqual({ differences: [], notes: [] });
  });

  it('passes with a note when a later run has replaced some', async () => {
    const { differences, notes } = await verdict({ resultRows: 13, replacedRows: 7, overwritten: one('p1') });
    expect(differences).toEqual([]);
    expect(notes).toEqual(['1 products have been written again by a later run']);
  });

  it('names what was put aside, and fails when a result counts that was never granted to its instance', async () => {
    expect(await verdict({ putAside: one('1/1/7', 120) })).toEqual({
      differences: [],
      notes: [
        '120 results were put aside, because their products were never granted to the instance that reported them; parts: 1/1/7',
      ],
    });
    expect((await verdict({ ungranted: one('p1') })).differences).toEqual([
      ['every product with a result was granted to its instance', 'no exception', '1'],
    ]);
  });

  it('fails when rows are missing or unexpected', async () => {
    const rows = 'the rows of the run in the result table are those of its parts';
    expect((await verdict({ resultRows: 19, rowsOff: one('p1') })).differences).toEqual([
      ['every stored product has as many rows as it gave', 'no exception', '1'],
      [rows, '20', '19'],
    ]);
    const replaced = { resultRows: 14, replacedRows: 7, overwritten: one('p1'), rowsWithoutItem: one('x') };
    expect((await verdict(replaced)).differences).toEqual([
      ['every row of this run in the result table is a stored product', 'no exception', '1'],
      [rows, '20 less 7 replaced by a later run', '14'],
    ]);
  });

  it('is skipped for a run that has published nothing', async () => {
    expect(await verdict({ published: false, resultRows: 0 })).toEqual({
      differences: [],
      notes: ['nothing of this run is in the result table, so it was not compared'],
    });
  });
});
