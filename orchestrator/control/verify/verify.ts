/**
 * The proof of a run: planned = stored + gone + failed, from the ledger, the manifests and the result table. Every check
 * that does not hold becomes a difference with what was expected, what was found and some examples.
 */
import { isRunEnd } from '../../../shared/domain/states.ts';
import type { InstanceRecord, RunRecord } from '../model/stores.ts';
import { type BucketInput, checkManifests, checkParts, type Difference, differs } from './verify-bucket.ts';
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
  const parts = await checkParts(input);
  const differences = [...checkLedger(facts, run), ...checkFleet(input), ...manifests.differences, ...parts];
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

function checkLedger(facts: VerifyFacts, run: RunRecord): Difference[] {
  const { stored, gone, failed, open } = facts.outcomes;
  const { planned, items, ledgerRows, replacedRows, resultRows } = facts;
  const rows = ledgerRows - replacedRows;
  const expectedRows = replacedRows > 0 ? `${ledgerRows} less ${replacedRows} replaced by a later run` : `${rows}`;
  const differences: Difference[] = [];
  const expect = (holds: boolean, ...seen: Parameters<typeof differs>): void => {
    if (!holds) differences.push(differs(...seen));
  };
  expect(items === planned, 'every planned product is in the ledger', `${planned} products`, `${items}`);
  expect(open === 0, 'every product has an outcome', 'none open', `${open} open`);
  const sum = `${stored} + ${gone} + ${failed}`;
  expect(stored + gone + failed === planned, 'planned = stored + gone + failed', `${planned}`, sum);
  const { discovery } = run;
  if (discovery) {
    const { found, fresh, known, dropped } = discovery;
    const denied = Object.values(discovery.denied).reduce((all, one) => all + one, 0);
    const parts = `${fresh} + ${known} + ${denied} + ${dropped}`;
    expect(found === fresh + known + denied + dropped, 'links = new + known + denied + dropped', `${found}`, parts);
  }
  for (const [name, check] of Object.entries(EMPTY) as [keyof typeof EMPTY, string][]) {
    const { count, examples } = facts[name];
    expect(count === 0, check, 'no exception', `${count}`, examples);
  }
  const ofParts = 'the rows of the run in the result table are those of its parts';
  expect(!facts.published || resultRows === rows, ofParts, expectedRows, `${resultRows}`);
  return differences;
}

/** What has to be empty. */
const EMPTY = {
  duplicates: 'no product is in the ledger twice',
  partsOff: 'the counts of every part are those of its products',
  withoutPart: 'every product with a result names a loaded part',
  storedWithoutRow: 'every stored product has its rows in the result table',
  rowsOff: 'every stored product has as many rows as it gave',
  rowsWithoutItem: 'every row of this run in the result table is a stored product',
} as const;

function checkFleet({ run, instances }: VerifyInput): Difference[] {
  const name = (i: InstanceRecord): string => `slot ${i.slot} epoch ${i.epoch} (${i.instanceId ?? 'not launched'})`;
  const left = instances.filter((i) => i.phase !== 'terminated').map((i) => `${name(i)}: ${i.phase}`);
  const quick = instances.flatMap((i) => {
    const gapMs = i.progress?.minGapMs ?? Infinity;
    return gapMs < run.settings.site.intervalMs ? [`${name(i)}: ${gapMs} ms`] : [];
  });
  const differences: Difference[] = [];
  if (left.length > 0) differences.push(differs('no instance is left', 'all terminated', `${left.length} left`, left));
  if (quick.length > 0) {
    const least = `${run.settings.site.intervalMs} ms or more`;
    differences.push(differs('no gap is under the interval', least, `${quick.length} instances below`, quick));
  }
  return differences;
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
