/**
 * The proof of a run: planned = stored + gone + failed, from the ledger, the manifests and the result table. Every check
 * that does not hold becomes a difference with what was expected, what was found and some examples.
 */
import { isRunEnd } from '../../../shared/domain/states.ts';
import type { InstanceRecord, RunRecord } from '../model/stores.ts';
import type { BucketInput, Difference } from './verify-bucket.ts';
import { checkManifests, checkParts } from './verify-bucket.ts';
import type { VerifyFacts } from './verify-facts.ts';

export interface Verdict {
  run: string;
  holds: boolean;
  products: { planned: number; stored: number; gone: number; failed: number; open: number };
  parts: number;
  manifests: number;
  resultRows: number;
  differences: Difference[];
  /** Facts that may surprise: rows that a later run has written, a run that is not over. */
  notes: string[];
}

export interface VerifyInput extends BucketInput {
  facts: VerifyFacts;
}

export async function verifyRun(input: VerifyInput): Promise<Verdict> {
  const { run, facts } = input;
  const manifests = await checkManifests(input);
  const differences = [
    ...checkLedger(facts),
    ...checkFleet(input),
    ...manifests.differences,
    ...(await checkParts(input)),
  ];
  return {
    run: run.id,
    holds: differences.length === 0,
    products: { planned: facts.planned, ...facts.outcomes },
    parts: input.parts.length,
    manifests: manifests.count,
    resultRows: facts.resultRows,
    differences,
    notes: notesOf(facts, run),
  };
}

function checkLedger(facts: VerifyFacts): Difference[] {
  const { stored, gone, failed, open } = facts.outcomes;
  const differences: Difference[] = [];
  const expect = (
    holds: boolean,
    check: string,
    seen: Pick<Difference, 'expected' | 'found'>,
    examples: string[] = [],
  ): void => {
    if (!holds) differences.push({ check, ...seen, examples });
  };
  const planned = `${facts.planned}`;
  const counted = { expected: `${planned} products`, found: `${facts.items}` };
  expect(facts.items === facts.planned, 'every planned product is in the ledger', counted);
  expect(open === 0, 'every product has an outcome', { expected: 'none open', found: `${open} open` });
  const sum = { expected: planned, found: `${stored} + ${gone} + ${failed}` };
  expect(stored + gone + failed === facts.planned, 'planned = stored + gone + failed', sum);
  const empties: [
    keyof VerifyFacts &
      ('duplicates' | 'partsOff' | 'withoutPart' | 'storedWithoutRow' | 'rowsOff' | 'rowsWithoutItem'),
    string,
  ][] = [
    ['duplicates', 'no product is in the ledger twice'],
    ['partsOff', 'the counts of every part are those of its products'],
    ['withoutPart', 'every product with a result names a loaded part'],
    ['storedWithoutRow', 'every stored product has its rows in the result table'],
    ['rowsOff', 'every stored product has as many rows as it gave'],
    ['rowsWithoutItem', 'every row of this run in the result table is a stored product'],
  ];
  for (const [name, check] of empties) {
    const { count, examples } = facts[name];
    expect(count === 0, check, { expected: 'no exception', found: `${count}` }, examples);
  }
  const { ledgerRows, replacedRows, resultRows } = facts;
  const rows = ledgerRows - replacedRows;
  expect(!facts.published || resultRows === rows, 'the rows of the run in the result table are those of its parts', {
    expected: replacedRows > 0 ? `${ledgerRows} less ${replacedRows} replaced by a later run` : `${rows}`,
    found: `${resultRows}`,
  });
  return differences;
}

function checkFleet({ run, instances }: VerifyInput): Difference[] {
  const left = instances.filter((i) => i.phase !== 'terminated');
  const quick = instances.filter(
    (i) => i.progress?.minGapMs != null && i.progress.minGapMs < run.settings.site.intervalMs,
  );
  const name = (i: InstanceRecord): string => `slot ${i.slot} epoch ${i.epoch} (${i.instanceId ?? 'not launched'})`;
  return [
    ...(left.length > 0
      ? [
          {
            check: 'no instance is left',
            expected: 'all terminated',
            found: `${left.length} left`,
            examples: left.map((i) => `${name(i)}: ${i.phase}`),
          },
        ]
      : []),
    ...(quick.length > 0
      ? [
          {
            check: 'no gap is under the interval',
            expected: `${run.settings.site.intervalMs} ms or more`,
            found: `${quick.length} instances below`,
            examples: quick.map((i) => `${name(i)}: ${i.progress!.minGapMs} ms`),
          },
        ]
      : []),
  ];
}

function notesOf(facts: VerifyFacts, run: RunRecord): string[] {
  return [
    ...(isRunEnd(run.phase) ? [] : [`the run is not over: ${run.phase}`]),
    ...(facts.published ? [] : ['nothing of this run is in the result table, so it was not compared']),
    ...(facts.parts.failed > 0
      ? [`${facts.parts.failed} parts could not be read and were set aside: their products counted as not crawled`]
      : []),
    ...(facts.overwritten.count > 0
      ? [`${facts.overwritten.count} products have been written again by a later run`]
      : []),
  ];
}
