/**
 * The proof of a run: planned = stored + gone + failed, from the ledger, the manifests and the result table. Every
 * check that does not hold becomes a difference with what was expected, what was found and some examples.
 */
import { isRunEnd } from '../../../shared/domain/states.ts';
import type { InstanceRecord, RunRecord, PartRecord } from '../model/stores.ts';
import type { VerifyFacts } from './verify-facts.ts';
import { describeError } from '../../../shared/domain/errors.ts';
import type { ObjectStore } from '../../../shared/ports/object-store.ts';
import { countProducts } from '../act/results/load-parts.ts';
import { readAhead } from '../act/results/read-ahead.ts';
import { checkRequests, type RequestProof } from './check-requests.ts';
import { type ClosedEpoch, readClosedEpoch } from './closed-epoch.ts';
import { type Difference, differs } from './difference.ts';

export interface Verdict {
  run: string;
  holds: boolean;
  products: { planned: number; stored: number; gone: number; failed: number; open: number };
  parts: number;
  manifests: number;
  resultRows: number;
  requests: RequestProof;
  differences: Difference[];
  /** Facts that may surprise: rows that a later run has written, a run that is not over. */
  notes: string[];
}

interface VerifyInput extends BucketInput {
  facts: VerifyFacts;
}

export async function verifyRun(input: VerifyInput): Promise<Verdict> {
  const { run, facts } = input;
  const manifests = await checkManifests(input);
  const parts = await checkParts(input);
  const requests = await checkRequests(input, manifests.closed);
  const differences = [
    ...checkLedger(facts, run),
    ...checkFleet(input),
    ...manifests.differences,
    ...parts,
    ...requests.differences,
  ];
  return {
    run: run.id,
    holds: differences.length === 0,
    products: { planned: facts.planned, ...facts.outcomes },
    parts: input.parts.length,
    manifests: manifests.closed.length,
    resultRows: facts.resultRows,
    requests: requests.proof,
    differences,
    notes: [...notesOf(facts, run), ...requests.notes],
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
  ungranted: 'every product with a result was granted to its instance',
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
    ...(facts.putAside.count > 0
      ? [
          `${facts.putAside.count} results were put aside, because their products were never granted to the instance that ` +
            `reported them; parts: ${facts.putAside.examples.join(', ')}`,
        ]
      : []),
    ...(facts.partial.count > 0
      ? [
          `${facts.partial.count} products are partial: they were stored without some of their further pages, so their ` +
            `older rows stay; the first: ${facts.partial.examples.slice(0, PARTIAL_EXAMPLES).join(', ')}`,
        ]
      : []),
    ...(facts.refused > 0
      ? [`${facts.refused} products were stored by their part, and refused before the rows were published`]
      : []),
    ...(facts.overwritten.count > 0
      ? [`${facts.overwritten.count} products have been written again by a later run`]
      : []),
  ];
}

const PARTIAL_EXAMPLES = 5;
/** Number of reads from the bucket that start ahead of their turn. */
const READS = 4;

interface BucketInput {
  run: RunRecord;
  instances: readonly InstanceRecord[];
  parts: readonly PartRecord[];
  objects: ObjectStore;
}

/** Every epoch is closed by a whole, signed manifest, and the parts it lists are loaded, or set aside as unreadable. */
export async function checkManifests({
  run,
  instances,
  parts,
  objects,
}: BucketInput): Promise<{ closed: ClosedEpoch[]; differences: Difference[] }> {
  const differences: Difference[] = [];
  const closed: ClosedEpoch[] = [];
  for (const instance of instances) {
    const where = `slot ${instance.slot} epoch ${instance.epoch}`;
    const entered = parts.filter((p) => p.slot === instance.slot && p.epoch === instance.epoch);
    const own = entered.filter((p) => p.state === 'loaded');
    if (instance.manifestKey === null) {
      differences.push(differs('every epoch is closed by a manifest', `a manifest of ${where}`, 'none'));
      continue;
    }
    const found = await readClosedEpoch({ run, objects }, instance);
    if (typeof found === 'string') {
      differences.push(differs('every manifest is whole and signed', instance.manifestKey, found));
      continue;
    }
    const { manifest, epoch } = found;
    closed.push(epoch);
    const expect = (check: string, missing: string[], what: string): void => {
      if (missing.length > 0)
        differences.push(differs(check, instance.manifestKey!, `${missing.length} parts not ${what}`, missing));
    };
    const listed = new Set(manifest.parts.map((p) => p.key));
    const missing = own.filter((p) => !listed.has(p.key)).map((p) => p.key);
    if (manifest.closedBy === 'instance' && !manifest.damaged)
      expect('every loaded part is in the manifest of its epoch', missing, 'in it');
    // An unreadable part was set aside with an alarm, and its products counted as not crawled.
    const settled = new Set(entered.filter((p) => p.state !== 'seen').map((p) => p.key));
    const unloaded = manifest.parts.filter((p) => !settled.has(p.key)).map((p) => p.key);
    expect('every part of a manifest is loaded', unloaded, 'loaded');
  }
  return { closed, differences };
}

/** Every loaded part is in the bucket as it was loaded: its hash and its number of lines match. */
export async function checkParts({ parts, objects }: BucketInput): Promise<Difference[]> {
  const broken: string[] = [];
  const loaded = parts.filter((part) => part.state === 'loaded');
  const count = ({ key, sha256, sizeBytes }: PartRecord): Promise<number> =>
    countProducts(objects, { key, sha256, sizeBytes });
  for await (const [part, read] of readAhead(loaded, count, READS)) {
    if ('error' in read) broken.push(describeError(read.error));
    else if (read.value !== part.products)
      broken.push(`${part.key}: ${read.value} products, the ledger says ${part.products}`);
  }
  if (broken.length === 0) return [];
  const [expected, found] = [`${parts.length} parts`, `${broken.length} broken`];
  return [differs('the hash of every part holds', expected, found, broken.slice(0, 20))];
}
