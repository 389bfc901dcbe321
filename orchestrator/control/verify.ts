/**
 * The proof of a run: planned = stored + gone + failed, from the ledger, the manifests and the result table. Every check
 * that does not hold becomes a difference with what was expected, what was found and some examples.
 */
import { describeError } from '../../shared/domain/errors.ts';
import { isRunEnd } from '../../shared/domain/states.ts';
import type { ObjectStore } from '../../shared/ports/object-store.ts';
import type { Manifest } from '../../shared/wire/part.ts';
import { decodeManifest } from '../../shared/wire/part.ts';
import { importPublicKey, sha256Hex } from '../../shared/wire/signature.ts';
import { readPart } from './load-parts.ts';
import type { InstanceRecord, PartRecord, RunRecord } from './stores.ts';
import type { VerifyFacts } from './verify-facts.ts';

export interface Difference {
  check: string;
  expected: string;
  found: string;
  examples: string[];
}

export interface Verdict {
  run: string;
  holds: boolean;
  products: { planned: number; stored: number; gone: number; failed: number; open: number };
  parts: number;
  manifests: number;
  resultRows: number;
  differences: Difference[];
  /** True things that may surprise: rows that a later run has written, a run that is not over. */
  notes: string[];
}

export interface VerifyInput {
  run: RunRecord;
  facts: VerifyFacts;
  instances: readonly InstanceRecord[];
  parts: readonly PartRecord[];
  objects: ObjectStore;
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
  const expect = (holds: boolean, check: string, expected: string, found: string, examples: string[] = []): void => {
    if (!holds) differences.push({ check, expected, found, examples });
  };
  expect(
    facts.items === facts.planned,
    'every planned product is in the ledger',
    `${facts.planned} products`,
    `${facts.items}`,
  );
  expect(open === 0, 'every product has an outcome', 'none open', `${open} open`);
  expect(
    stored + gone + failed === facts.planned,
    'planned = stored + gone + failed',
    `${facts.planned}`,
    `${stored} + ${gone} + ${failed}`,
  );
  const empties: [
    keyof VerifyFacts & ('duplicates' | 'partsOff' | 'withoutPart' | 'storedWithoutRow' | 'rowsWithoutItem'),
    string,
  ][] = [
    ['duplicates', 'no product is in the ledger twice'],
    ['partsOff', 'the counts of every part are those of its products'],
    ['withoutPart', 'every product with a result names a loaded part'],
    ['storedWithoutRow', 'every stored product has a row in the result table'],
    ['rowsWithoutItem', 'every row of this run in the result table is a stored product'],
  ];
  for (const [name, check] of empties)
    expect(facts[name].count === 0, check, 'no exception', `${facts[name].count}`, facts[name].examples);
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

async function checkManifests({
  run,
  instances,
  parts,
  objects,
}: VerifyInput): Promise<{ count: number; differences: Difference[] }> {
  const differences: Difference[] = [];
  let count = 0;
  for (const instance of instances) {
    const where = `slot ${instance.slot} epoch ${instance.epoch}`;
    const own = parts.filter((p) => p.slot === instance.slot && p.epoch === instance.epoch && p.state === 'loaded');
    if (instance.manifestKey === null) {
      differences.push({
        check: 'every epoch is closed by a manifest',
        expected: `a manifest of ${where}`,
        found: 'none',
        examples: [],
      });
      continue;
    }
    const manifest = await readManifest(run, instance, objects);
    if (typeof manifest === 'string') {
      differences.push({
        check: 'every manifest is whole and signed',
        expected: instance.manifestKey,
        found: manifest,
        examples: [],
      });
      continue;
    }
    count++;
    const listed = new Set(manifest.parts.map((p) => p.key));
    const missing = own.filter((p) => !listed.has(p.key)).map((p) => p.key);
    if (missing.length > 0 && manifest.closedBy === 'instance') {
      differences.push({
        check: 'every loaded part is in the manifest of its epoch',
        expected: instance.manifestKey,
        found: `${missing.length} parts not in it`,
        examples: missing,
      });
    }
    const loaded = new Set(own.map((p) => p.key));
    const unloaded = manifest.parts.filter((p) => !loaded.has(p.key)).map((p) => p.key);
    if (unloaded.length > 0) {
      differences.push({
        check: 'every part of a manifest is loaded',
        expected: instance.manifestKey,
        found: `${unloaded.length} parts not loaded`,
        examples: unloaded,
      });
    }
  }
  return { count, differences };
}

/** The manifest of an epoch, signed by its instance or by the run; a text says what is wrong with it. */
async function readManifest(
  run: RunRecord,
  instance: InstanceRecord,
  objects: ObjectStore,
): Promise<Manifest | string> {
  const bytes = await objects.get(instance.manifestKey!);
  if (!bytes) return 'not in the bucket';
  if (instance.manifestSha256 !== null && sha256Hex(bytes) !== instance.manifestSha256)
    return 'another hash than the one in the ledger';
  const keys = [instance.publicKey, run.publicKey].filter((k) => k !== null);
  let fault = 'no key to check it with';
  for (const key of keys) {
    try {
      return decodeManifest(bytes, importPublicKey(key));
    } catch (error) {
      fault = describeError(error);
    }
  }
  return fault;
}

async function checkParts({ parts, objects }: VerifyInput): Promise<Difference[]> {
  const broken: string[] = [];
  for (const part of parts) {
    if (part.state !== 'loaded') continue;
    try {
      const results = await readPart(objects, part);
      if (results.length !== part.products)
        broken.push(`${part.key}: ${results.length} products, the ledger says ${part.products}`);
    } catch (error) {
      broken.push(describeError(error));
    }
  }
  if (broken.length === 0) return [];
  return [
    {
      check: 'the hash of every part holds',
      expected: `${parts.length} parts`,
      found: `${broken.length} broken`,
      examples: broken.slice(0, 20),
    },
  ];
}

function notesOf(facts: VerifyFacts, run: RunRecord): string[] {
  return [
    ...(isRunEnd(run.phase) ? [] : [`the run is not over: ${run.phase}`]),
    ...(facts.published ? [] : ['nothing of this run is in the result table, so it was not compared']),
    ...(facts.overwritten.count > 0
      ? [`${facts.overwritten.count} products have been written again by a later run`]
      : []),
  ];
}
