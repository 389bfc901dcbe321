/** Compares the bucket with the ledger of a run, for `verify`: the manifests and the parts. */
import { describeError } from '../../../shared/domain/errors.ts';
import type { ObjectStore } from '../../../shared/ports/object-store.ts';
import { decodeManifest, type Manifest, readUnsigned } from '../../../shared/wire/part.ts';
import { importPublicKey, sha256Hex } from '../../../shared/wire/signature.ts';
import { fetchManifest } from '../results/close-epoch.ts';
import { fetchPart, linesOf } from '../results/part-bytes.ts';
import { readAhead } from '../results/read-ahead.ts';
import { REBUILT } from '../results/run-description.ts';
import type { InstanceRecord, PartRecord, RunRecord } from '../model/stores.ts';

/** Number of reads from the bucket that start ahead of their turn. */
const READS = 4;

/** A check that does not hold. */
export interface Difference {
  check: string;
  expected: string;
  found: string;
  examples: string[];
}

export const differs = (check: string, expected: string, found: string, examples: string[] = []): Difference => {
  return { check, expected, found, examples };
};

export interface BucketInput {
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
}: BucketInput): Promise<{ count: number; differences: Difference[] }> {
  const differences: Difference[] = [];
  let count = 0;
  for (const instance of instances) {
    const where = `slot ${instance.slot} epoch ${instance.epoch}`;
    const entered = parts.filter((p) => p.slot === instance.slot && p.epoch === instance.epoch);
    const own = entered.filter((p) => p.state === 'loaded');
    if (instance.manifestKey === null) {
      differences.push(differs('every epoch is closed by a manifest', `a manifest of ${where}`, 'none'));
      continue;
    }
    const manifest = await readManifest(run, instance, objects);
    if (typeof manifest === 'string') {
      differences.push(differs('every manifest is whole and signed', instance.manifestKey, manifest));
      continue;
    }
    count++;
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
  return { count, differences };
}

/** The manifest of an epoch, signed by its instance or by the run; or a text that names its fault. */
async function readManifest(
  run: RunRecord,
  instance: InstanceRecord,
  objects: ObjectStore,
): Promise<Manifest | string> {
  const bytes = await fetchManifest(objects, instance.manifestKey!);
  if (!bytes) return 'not in the bucket';
  if (typeof bytes === 'string') return bytes;
  if (instance.manifestSha256 !== null && sha256Hex(bytes) !== instance.manifestSha256)
    return 'another hash than the one in the ledger';
  // Its key was lost with the database, which the run has reported: only the form and the hash can be checked.
  if (instance.publicKey === null && instance.reason === REBUILT) return readUnsigned(bytes);
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

/** Every loaded part is in the bucket as it was loaded: its hash and its number of lines match. */
export async function checkParts({ parts, objects }: BucketInput): Promise<Difference[]> {
  const broken: string[] = [];
  const loaded = parts.filter((part) => part.state === 'loaded');
  const countLines = async (part: PartRecord): Promise<number> => {
    let lines = 0;
    for (const _ of linesOf(await fetchPart(objects, part))) lines++;
    return lines;
  };
  for await (const [part, read] of readAhead(loaded, countLines, READS)) {
    if ('error' in read) broken.push(describeError(read.error));
    else if (read.value !== part.products)
      broken.push(`${part.key}: ${read.value} products, the ledger says ${part.products}`);
  }
  if (broken.length === 0) return [];
  const [expected, found] = [`${parts.length} parts`, `${broken.length} broken`];
  return [differs('the hash of every part holds', expected, found, broken.slice(0, 20))];
}
