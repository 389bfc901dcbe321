/** How an epoch ends: by the instance's own manifest, checked here, or by ours when the instance is lost. */
import type { EpochId } from '../../../../shared/domain/epoch-id.ts';
import { describeError } from '../../../../shared/domain/errors.ts';
import {
  manifestAsideKey,
  manifestKey,
  type PartName,
  parseManifestKey,
  parsePartKey,
  parseRequestLogKey,
  shardPrefix,
} from '../../../../shared/domain/keys.ts';
import type { ObjectStore } from '../../../../shared/ports/object-store.ts';
import { isServing } from '../../../../shared/domain/states.ts';
import { NO_PROGRESS, type PartRef } from '../../../../shared/wire/callbacks.ts';
import { decodeManifest, encodeManifest, type Manifest } from '../../../../shared/wire/part.ts';
import type { LogRef } from '../../../../shared/wire/request-log.ts';
import { importPrivateKey, importPublicKey, sha256Hex } from '../../../../shared/wire/signature.ts';
import { openIncident } from '../../decide/ban-policy.ts';
import { type Core, momentOf } from '../../model/core.ts';
import { countProducts, isDamaged, loadParts } from './load-parts.ts';
import { isFromInstance, UNSIGNED } from './part-origin.ts';
import { hostsFreeAtMs } from '../../decide/host-rest.ts';
import { LOSS } from '../../decide/slot-attempts.ts';
import type { InstanceRecord, RunRecord } from '../../model/stores.ts';

/** The epoch of an instance, and the key that it signs with. */
type Keyed = Pick<InstanceRecord, 'slot' | 'epoch' | 'publicKey'>;

/** Enough for 40,000 parts. */
const MAX_MANIFEST_BYTES = 16_000_000;

/** Checks the manifest that an instance has reported; if it is valid, the instance is done. */
export async function confirmManifest(core: Core, run: RunRecord, { slot, epoch }: EpochId): Promise<void> {
  const record = await core.fleet.get({ slot, epoch });
  if (!record || record.manifestKey === null || record.publicKey === null || !isServing(record.phase)) return;
  // Else an earlier try has written ours, because a foreign object has the name of its own.
  const read = await readOwnManifest(core, run, record, record.manifestKey);
  if (read !== 'ours') {
    if (read === 'foreign') await closeWithOurs(core, run, record);
    else if (typeof read === 'string') {
      await core.fleet.patch({ slot, epoch }, { manifestKey: null, manifestSha256: null });
      await core.alarm(`the manifest of slot ${slot} epoch ${epoch} is refused: ${read}`, { slot, epoch });
      return;
    } else {
      const { manifest, sha256 } = read;
      // Found in the bucket, not reported: its hash is not stored yet.
      if (record.manifestSha256 === null) await core.fleet.patch({ slot, epoch }, { manifestSha256: sha256 });
      await core.results.register({ slot, epoch }, manifest.parts);
      // Unfinished products are taken back before the epoch counts as closed; its results are loaded first, or they
      // would go out again too.
      await loadParts(core, { slot, epoch });
      const freeAtMs = hostsFreeAtMs(run, record, 'closed', momentOf(core));
      await core.work.returnChunks({ slot, epoch }, freeAtMs);
    }
  }
  // The reason lets the slot be filled again if chunks wait, whether or not this call has released them: an earlier try
  // may have released them and then failed.
  const replaced = openIncident(record)?.verdict === 'banned' && run.settings.site.onBan === 'replace';
  const unreadable = (await core.results.parts({ slot, epoch, state: 'failed' })).length > 0;
  const rotated = record.rotateAtMs !== null;
  const reason = replaced ? LOSS.banned : unreadable ? LOSS.unreadable : rotated ? LOSS.rotated : undefined;
  await core.fleet.move({ slot, epoch }, record.phase, 'done', { reason });
}

/**
 * The manifest of the instance, or what is wrong with it. `foreign`: the instance has reported another one, and what is
 * there was written by someone else before it. `ours`: the run has signed it.
 */
async function readOwnManifest(
  core: Core,
  run: RunRecord,
  record: InstanceRecord,
  key: string,
): Promise<{ manifest: Manifest; sha256: string } | string> {
  const bytes = await fetchManifest(core.objects, key);
  const isReported = record.manifestSha256 !== null;
  if (!bytes) return 'it is not in the bucket';
  if (typeof bytes === 'string') return isReported ? 'foreign' : bytes;
  const manifest = ownManifest(bytes, run, record);
  if (typeof manifest === 'string' && typeof ownManifest(bytes, run, record, run.publicKey) !== 'string') return 'ours';
  const sha256 = sha256Hex(bytes);
  if (isReported && sha256 !== record.manifestSha256)
    return typeof manifest === 'string' ? 'foreign' : 'it does not have the hash that was reported';
  return typeof manifest === 'string' ? manifest : { manifest, sha256 };
}

/** The bytes of a manifest; an error text when there are too many. Rejects when the bucket does not answer. */
export async function fetchManifest(
  objects: Pick<ObjectStore, 'get'>,
  key: string,
): Promise<Uint8Array | string | null> {
  try {
    return await objects.get(key, MAX_MANIFEST_BYTES);
  } catch (error) {
    if (isDamaged(error)) return describeError(error);
    throw error;
  }
}

/**
 * The manifest in these bytes if the instance itself has signed it for its own epoch and parts, or whoever has
 * `publicKey`; else what is wrong with it.
 */
function ownManifest(
  bytes: Uint8Array,
  run: Pick<RunRecord, 'id'>,
  record: Keyed,
  publicKey = record.publicKey,
): Manifest | string {
  try {
    // An instance that never said hello has no key, so no manifest is its own.
    const manifest = decodeManifest(bytes, importPublicKey(publicKey ?? ''));
    if (manifest.run !== run.id || manifest.slot !== record.slot || manifest.epoch !== record.epoch)
      return 'it names another run, slot or epoch';
    const part = manifest.parts.find((p) => !isOwnPart(run.id, record, p));
    const log = manifest.requestLogs?.find((l) => !isOwnLog(run.id, record, l));
    const foreign = part ?? log;
    return foreign ? `it lists an object that is not its own: ${foreign.key}` : manifest;
  } catch (error) {
    return describeError(error);
  }
}

/** True if the instance or the run has signed this object as the manifest of this epoch. */
function isProvenManifest(
  stored: Uint8Array | string | null,
  run: Pick<RunRecord, 'id' | 'publicKey'>,
  record: Keyed,
): stored is Uint8Array {
  if (stored === null || typeof stored === 'string') return false;
  return [record.publicKey, run.publicKey].some((key) => typeof ownManifest(stored, run, record, key) !== 'string');
}

/** A part may only be registered under the object key that its own slot, epoch, seq and hash give. */
export const isOwnPart = (runId: string, at: EpochId, part: PartRef): boolean =>
  isNamed(parsePartKey(runId, part.key), at, part);

const isOwnLog = (runId: string, at: EpochId, log: LogRef): boolean =>
  isNamed(parseRequestLogKey(runId, log.key), at, log);

function isNamed(name: PartName | null, at: EpochId, { seq, sha256 }: Pick<PartRef, 'seq' | 'sha256'>): boolean {
  return name?.slot === at.slot && name.epoch === at.epoch && name.seq === seq && name.sha256 === sha256;
}

/**
 * Closes the epoch of an instance that is given up. The first manifest in the bucket closes it, ours or its own: parts
 * that arrived before count and are loaded, and only then products without a result are taken back to be crawled again.
 * Every step is idempotent.
 */
export async function closeEpoch(core: Core, run: RunRecord, { slot, epoch }: EpochId): Promise<void> {
  const record = await core.fleet.get({ slot, epoch });
  if (record && record.manifestKey === null) await closeWithOurs(core, run, record);
}

/** Closes the epoch with the first manifest of its instance or ours in the bucket. */
async function closeWithOurs(core: Core, run: RunRecord, record: InstanceRecord): Promise<void> {
  const { slot, epoch } = record;
  const found: FoundParts = new Map();
  const { instanceId, progress } = record;
  const manifest = ourManifest(core, record, {
    instanceId,
    progress,
    parts: await findParts(core, run, record, found),
    requestLogs: await findLogs(core, record),
  });
  const bytes = encodeManifest(manifest, importPrivateKey(run.privateKey));
  const { key, stored } = await putManifest(core, run, record, bytes);
  // The instance may be alive, and may have uploaded its last parts and its own manifest since the bucket was listed.
  const own = ownManifest(stored, run, record);
  if (typeof own !== 'string') await core.results.register({ slot, epoch }, own.parts);
  await core.results.register({ slot, epoch }, await findParts(core, run, record, found));
  await setAsideUnreadable(core, record, found);
  await loadParts(core, { slot, epoch });
  // A heartbeat may have been accepted while the bucket was read.
  const heard = (await core.fleet.get(record)) ?? record;
  const farewell = typeof own === 'string' ? 'lost' : 'closed';
  const freeAtMs = hostsFreeAtMs(run, heard, farewell, momentOf(core));
  const returned = await core.work.returnChunks({ slot, epoch }, freeAtMs);
  await core.fleet.patch({ slot, epoch }, { manifestKey: key, manifestSha256: sha256Hex(stored) });
  if (returned > 0) core.log.info({ slot, epoch, returned }, 'products of a lost instance go out again');
}

interface StoredManifest {
  key: string;
  stored: Uint8Array;
}

/**
 * Stores ours unless the instance has closed the epoch itself, or an earlier try of ours has; a foreign object closes
 * nothing: where it has the name of ours, ours gets another one.
 */
export async function putManifest(
  core: Pick<Core, 'objects' | 'alarm'>,
  run: Pick<RunRecord, 'id' | 'publicKey'>,
  record: Keyed,
  bytes: Uint8Array,
): Promise<StoredManifest> {
  const { slot, epoch } = record;
  const keys: string[] = [];
  for await (const { key } of core.objects.list(shardPrefix(run.id, slot, epoch)))
    if (parseManifestKey(run.id, key)) keys.push(key);
  const found = await sortManifests(core.objects, run, record, keys);
  const foreign = new Set(found.foreign);
  const closing = found.proven[0] ?? (await putOurs(core.objects, run, record, { bytes, foreign }));
  for (const key of foreign)
    await core.alarm(
      `the object ${key} is neither from slot ${slot} epoch ${epoch} nor from the main server: it is ignored, and ${closing.key} closes the epoch`,
      { slot, epoch },
    );
  return closing;
}

/** The beginning of an alarm. */
export const isForeignObject = (key: string, { slot, epoch }: EpochId): string =>
  `the object ${key} is neither from slot ${slot} epoch ${epoch} nor from the main server: it is ignored`;

/**
 * Sorts the objects with a manifest's name: those that the instance or the run has signed for this epoch, and all
 * others.
 */
export async function sortManifests(
  objects: Pick<ObjectStore, 'get'>,
  run: Pick<RunRecord, 'id' | 'publicKey'>,
  record: Keyed,
  keys: readonly string[],
): Promise<{ proven: StoredManifest[]; foreign: string[] }> {
  const proven: StoredManifest[] = [];
  const foreign: string[] = [];
  for (const key of keys) {
    const stored = await fetchManifest(objects, key);
    if (isProvenManifest(stored, run, record)) proven.push({ key, stored });
    else foreign.push(key);
  }
  return { proven, foreign };
}

/** Adds the object that has the name of ours to `foreign`. */
async function putOurs(
  objects: ObjectStore,
  run: Pick<RunRecord, 'id' | 'publicKey'>,
  record: Keyed,
  { bytes, foreign }: { bytes: Uint8Array; foreign: Set<string> },
): Promise<StoredManifest> {
  const key = manifestKey(run.id, record.slot, record.epoch);
  if ((await objects.putIfAbsent(key, bytes, 'application/json')) === 'created') return { key, stored: bytes };
  const stored = (await fetchManifest(objects, key)) ?? bytes;
  // Stored since the bucket was listed.
  if (isProvenManifest(stored, run, record)) return { key, stored };
  // The reply to our own put was lost.
  if (sha256Hex(stored) === sha256Hex(bytes)) return { key, stored: bytes };
  foreign.add(key);
  // No one can have guessed this name: it depends on our signature.
  const aside = manifestAsideKey(run.id, record, sha256Hex(bytes));
  await objects.putIfAbsent(aside, bytes, 'application/json');
  return { key: aside, stored: bytes };
}

/** The manifest with which the main server closes an epoch. */
export function ourManifest(
  { runId, clock }: Pick<Core, 'runId' | 'clock'>,
  { slot, epoch }: EpochId,
  {
    instanceId,
    progress,
    parts,
    requestLogs,
  }: Pick<InstanceRecord, 'instanceId' | 'progress'> & Required<Pick<Manifest, 'parts' | 'requestLogs'>>,
): Manifest {
  return {
    version: 1,
    run: runId,
    slot,
    epoch,
    instanceId: instanceId ?? '',
    closedBy: 'main-server',
    closedAt: new Date(clock.now()).toISOString(),
    parts,
    requestLogs,
    progress: progress ?? NO_PROGRESS,
  };
}

/** The parts found, by key; the fault of a part that cannot be read, null where the ledger has it already. */
type FoundParts = Map<string, PartRef | { fault: string | null }>;

/**
 * The parts that are in the bucket by now. Those that were found before, or are in the ledger, are not read again. Of
 * the others, those that the instance has not signed are left out.
 */
async function findParts(core: Core, run: RunRecord, record: InstanceRecord, found: FoundParts): Promise<PartRef[]> {
  const { slot, epoch } = record;
  const ledger = new Map((await core.results.parts({ slot, epoch })).map((part) => [part.key, part]));
  for await (const { key, sizeBytes } of core.objects.list(shardPrefix(core.runId, slot, epoch))) {
    const name = parsePartKey(core.runId, key);
    if (!name || found.has(key)) continue;
    const { seq, sha256 } = name;
    const entered = ledger.get(key);
    try {
      if (entered?.state === 'failed') found.set(key, { fault: null });
      else if (entered || (await isFromInstance(core, run, record, { seq, key, sizeBytes }))) {
        const products = entered?.products ?? (await countProducts(core.objects, { key, sha256, sizeBytes }));
        found.set(key, { seq, key, sha256, sizeBytes, products });
      } else {
        // It gets no place in the ledger: the number is the instance's own.
        found.set(key, { fault: null });
        await core.alarm(`part ${key} of a lost instance is left out: ${UNSIGNED}`, { slot, epoch });
      }
    } catch (error) {
      // A bucket that does not answer proves nothing about the part: closing is retried.
      if (!isDamaged(error)) throw error;
      found.set(key, { fault: error.message });
      await core.alarm(`part ${key} of a lost instance is left out: ${error.message}`, { slot, epoch });
    }
  }
  return [...found.values()].filter((part) => 'seq' in part).sort((a, b) => a.seq - b.seq);
}

/**
 * What is in the bucket of its request log: the log shows the requests, and decides nothing. So it is not read here:
 * `verify` leaves out what the instance has not signed.
 */
async function findLogs({ objects, runId }: Core, { slot, epoch }: EpochId): Promise<LogRef[]> {
  const logs: LogRef[] = [];
  for await (const { key, sizeBytes } of objects.list(shardPrefix(runId, slot, epoch))) {
    const name = parseRequestLogKey(runId, key);
    if (name) logs.push({ seq: name.seq, key, sha256: name.sha256, sizeBytes });
  }
  return logs.sort((a, b) => a.seq - b.seq);
}

/**
 * Enters the unreadable parts as failed, so that a main server that takes up the run does not read them again. After
 * the readable ones: where two have one number, that one counts.
 */
async function setAsideUnreadable(core: Core, { slot, epoch }: InstanceRecord, found: FoundParts): Promise<void> {
  for (const [key, part] of found) {
    const name = parsePartKey(core.runId, key);
    if (!name || !('fault' in part) || part.fault === null) continue;
    const { seq, sha256 } = name;
    if ((await core.results.parts({ slot, epoch })).some((entered) => entered.seq === seq)) continue;
    await core.results.register({ slot, epoch }, [{ seq, key, sha256, sizeBytes: 0, products: 0 }]);
    await core.results.failPart({ slot, epoch, seq }, part.fault);
  }
}
