/**
 * Loads results from the bucket into a database that lacks them: missing parts of a known run, and whole lost runs.
 * Every step is idempotent; existing rows do not change.
 */
import { type EpochId, epochKey } from '../../../../shared/domain/epoch-id.ts';
import { isAnyHost } from '../../../../shared/domain/domains.ts';
import { AppError, describeError } from '../../../../shared/domain/errors.ts';
import {
  keyDocumentKey,
  parseManifestKey,
  parsePartKey,
  parseRequestLogKey,
  runPrefix,
} from '../../../../shared/domain/keys.ts';
import type { OutcomeCounts } from '../../../../shared/domain/outcome.ts';
import type { ObjectStore } from '../../../../shared/ports/object-store.ts';
import {
  decodeManifest,
  encodeManifest,
  type ItemResult,
  type Manifest,
  readUnsigned,
} from '../../../../shared/wire/part.ts';
import type { LogRef } from '../../../../shared/wire/request-log.ts';
import {
  createKeyPair,
  ED25519,
  exportPublicKey,
  importPublicKey,
  sha256Hex,
} from '../../../../shared/wire/signature.ts';
import type { LaunchRequest } from '../../cloud/compute.ts';
import { type Core, storedRun } from '../../model/core.ts';
import { isMoved, piecesOf } from '../../model/part-results.ts';
import { isRebuilt } from '../../model/rebuilt-run.ts';
import type { FinishCore } from './finish.ts';
import { isForeignObject, ourManifest, putManifest, sortManifests } from './close-epoch.ts';
import { readKeyDocument } from './key-documents.ts';
import { countProducts, isDamaged, loadPart, readPart, setAside } from './load-parts.ts';
import { isFromInstance, UNSIGNED } from './part-origin.ts';
import { REBUILT } from './run-description.ts';
import { powerOffAtMs } from '../../model/run-deadlines.ts';
import type { NewRun, RunRecord } from '../../model/stores.ts';

export type RecoverCore = FinishCore & Pick<Core, 'objects' | 'alarm' | 'runId'>;

/** What the bucket holds of one (slot, epoch). */
export interface BucketEpoch extends EpochId {
  parts: LogRef[];
  requestLogs: LogRef[];
  /** Keys with a manifest's name. */
  manifests: string[];
  /** What its instance signs with, by its key document; null where that was not read, or is not there. */
  publicKey: string | null;
}

/** Every epoch that has an object in the bucket, oldest epoch first, its parts in order. */
export async function listEpochs(objects: ObjectStore, runId: string): Promise<BucketEpoch[]> {
  const epochs = new Map<string, BucketEpoch>();
  const at = (slot: number, epoch: number): BucketEpoch => {
    const name = epochKey({ slot, epoch });
    const known = epochs.get(name) ?? { slot, epoch, parts: [], requestLogs: [], manifests: [], publicKey: null };
    epochs.set(name, known);
    return known;
  };
  for await (const { key, sizeBytes } of objects.list(runPrefix(runId))) {
    const part = parsePartKey(runId, key);
    if (part) at(part.slot, part.epoch).parts.push({ seq: part.seq, key, sha256: part.sha256, sizeBytes });
    const log = parseRequestLogKey(runId, key);
    if (log) at(log.slot, log.epoch).requestLogs.push({ seq: log.seq, key, sha256: log.sha256, sizeBytes });
    const manifest = parseManifestKey(runId, key);
    if (manifest) at(manifest.slot, manifest.epoch).manifests.push(key);
  }
  const all = [...epochs.values()].sort((a, b) => a.epoch - b.epoch || a.slot - b.slot);
  for (const { parts, requestLogs } of all) for (const list of [parts, requestLogs]) list.sort((a, b) => a.seq - b.seq);
  return all;
}

/**
 * The epochs without what anyone else may have put into the bucket: in a run whose instances sign, an epoch counts if
 * the main server has stored its key or closed it, and a manifest if its instance or the run has signed it. Parts are
 * looked at when they are read.
 */
export async function provenEpochs(
  objects: ObjectStore,
  run: Pick<NewRun, 'id' | 'settings' | 'publicKey'>,
  epochs: readonly BucketEpoch[],
): Promise<BucketEpoch[]> {
  if (run.settings.partsSigned !== true) return [...epochs];
  const proven: BucketEpoch[] = [];
  for (const epoch of epochs) {
    const publicKey = await readKeyDocument(objects, run, epoch);
    const found = await sortManifests(objects, run, { ...epoch, publicKey }, epoch.manifests);
    const manifests = found.proven.map(({ key }) => key);
    if (publicKey !== null || manifests.length > 0) proven.push({ ...epoch, manifests, publicKey });
  }
  return proven;
}

/**
 * An alarm for each listed epoch that is not proven: nothing of it counts; and for each foreign object beside a proven
 * manifest.
 */
export async function noteUnproven(
  core: RecoverCore,
  listed: readonly BucketEpoch[],
  proven: readonly BucketEpoch[],
): Promise<void> {
  const kept = new Map(proven.map((at) => [epochKey(at), at.manifests]));
  for (const { slot, epoch, parts, manifests } of listed) {
    const own = kept.get(epochKey({ slot, epoch }));
    if (own !== undefined) {
      // Without a proven one, closing the epoch names the others.
      const foreign = own.length === 0 ? [] : manifests.filter((key) => !own.includes(key));
      for (const key of foreign) await core.alarm(isForeignObject(key, { slot, epoch }), { slot, epoch });
      continue;
    }
    await core.alarm(
      `slot ${slot} epoch ${epoch} is ignored, with ${parts.length} parts in the bucket: the main server has stored no key of it (${keyDocumentKey(core.runId, { slot, epoch })})`,
      { slot, epoch },
    );
  }
}

/**
 * True when no instance can add a result: every machine has powered itself off, or every product has a result in the
 * bucket. Manifests alone prove nothing: a replacement may be crawling after a closed epoch without having uploaded
 * anything yet. Takes proven epochs.
 */
export async function isOver(
  objects: ObjectStore,
  run: Pick<NewRun, 'id' | 'deadlineAtMs' | 'settings' | 'planned' | 'publicKey'>,
  epochs: readonly BucketEpoch[],
  nowMs: number,
): Promise<boolean> {
  if (nowMs > powerOffAtMs(run)) return true;
  if (!epochs.every((e) => e.manifests.length > 0)) return false;
  const settled = new Set<number>();
  const movedOn = new Set<number>();
  for (const { epoch, part } of epochs.flatMap(partsOf)) {
    if (!(await isFromInstance({ objects, signatures: ED25519 }, run, epoch, part))) continue;
    await eachResult(objects, part, (result) => {
      // What has moved has its result under a number behind the list.
      if (isMoved(result)) movedOn.add(result.n);
      else if (result.n <= run.planned || isAnyHost(run.settings.site.productUrl)) settled.add(result.n);
    });
  }
  for (const n of movedOn) settled.delete(n);
  return settled.size >= run.planned;
}

interface EpochPart {
  epoch: BucketEpoch;
  part: LogRef;
}

const partsOf = (epoch: BucketEpoch): EpochPart[] => epoch.parts.map((part) => ({ epoch, part }));

/** Nothing of a damaged part. */
async function eachResult(objects: ObjectStore, part: LogRef, use: (result: ItemResult) => void): Promise<void> {
  try {
    for await (const piece of piecesOf(await readPart(objects, part))) piece.forEach(use);
  } catch (error) {
    if (!isDamaged(error)) throw error;
  }
}

/**
 * The parts of a rebuilt run so that each comes after the one with the move that a result of it goes back to: its
 * number was given only when that part was loaded, and is higher than any in there.
 */
async function inOrderOfMoves(
  objects: ObjectStore,
  planned: number,
  parts: readonly EpochPart[],
): Promise<EpochPart[]> {
  const last = new Map<EpochPart, number>();
  for (const each of parts) {
    let n = planned;
    await eachResult(objects, each.part, (result) => (n = Math.max(n, result.n)));
    last.set(each, n);
  }
  return parts.toSorted((a, b) => last.get(a)! - last.get(b)!);
}

/**
 * Loads every part of these epochs that is not loaded yet, one at a time, each with its ledger row in one transaction.
 * An unreadable part is set aside with an alarm. Returns the number of loaded parts and products.
 */
export async function loadEpochs(
  core: RecoverCore,
  epochs: readonly BucketEpoch[],
): Promise<OutcomeCounts & { parts: number }> {
  const sums = { parts: 0, stored: 0, gone: 0, failed: 0 };
  const run = await storedRun(core);
  const entered = await core.results.parts();
  const reported = new Set(entered.map((p) => p.key));
  const settled = new Set(entered.filter((p) => p.state !== 'seen').map((p) => p.key));
  const startedMs = core.clock.now();
  const all = epochs.flatMap(partsOf).filter(({ part }) => !settled.has(part.key));
  const mayHaveMoved = isRebuilt(run) && isAnyHost(run.settings.site.productUrl);
  for (const { epoch: at, part } of mayHaveMoved ? await inOrderOfMoves(core.objects, run.planned, all) : all) {
    const { slot, epoch, publicKey: stored } = at;
    // A row of a rebuilt run has the key of its manifest, which may be the run's.
    const publicKey = isRebuilt(run) ? stored : ((await core.fleet.get({ slot, epoch }))?.publicKey ?? stored);
    const bucket = { objects: core.objects, signatures: ED25519 };
    if (!reported.has(part.key) && !(await isFromInstance(bucket, run, { slot, epoch, publicKey }, part))) {
      await core.alarm(`part ${part.key} is ignored: ${UNSIGNED}`, { slot, epoch });
      continue;
    }
    const counts = await loadOne(core, slot, epoch, part);
    if (!counts) continue;
    sums.parts++;
    sums.stored += counts.stored;
    sums.gone += counts.gone;
    sums.failed += counts.failed;
  }
  core.processState.loadMs += core.clock.now() - startedMs;
  return sums;
}

async function loadOne(core: RecoverCore, slot: number, epoch: number, part: BucketEpoch['parts'][number]) {
  const register = (products: number): Promise<void> => core.results.register({ slot, epoch }, [{ ...part, products }]);
  try {
    const results = await readPart(core.objects, part);
    await register('length' in results ? results.length : await countProducts(core.objects, part));
    return await loadPart(core, { ...part, slot, epoch }, results);
  } catch (error) {
    if (!isDamaged(error)) throw error;
    await register(0);
    await setAside(core, { slot, epoch, seq: part.seq }, error);
    return null;
  }
}

/** Records epochs missing from the database as `lost`: the control loop closes them and terminates their machines. */
export async function noteUnknownEpochs(
  core: RecoverCore,
  run: RunRecord,
  epochs: readonly BucketEpoch[],
): Promise<void> {
  for (const { slot, epoch } of epochs) {
    if (await core.fleet.get({ slot, epoch })) continue;
    await claimRebuilt(core, run, { slot, epoch });
    await core.fleet.move({ slot, epoch }, 'claimed', 'lost', { reason: REBUILT });
  }
}

function claimRebuilt(core: RecoverCore, run: RunRecord, { slot, epoch }: EpochId): Promise<boolean> {
  const request: LaunchRequest = {
    clientToken: '',
    instanceType: run.plan.instanceType,
    imageId: '',
    subnetId: '',
    securityGroupIds: [],
    instanceProfile: null,
    userData: '',
    tags: {},
  };
  return core.fleet.claim({ slot, epoch, request, token: '', claimedAtMs: run.startedAtMs });
}

/**
 * Moves a rebuilt run to `loading`: every epoch gets its row, closed by its manifest. The main server's manifests are
 * checked with the run's key, those of instances with the keys that it has stored in the bucket. In a run of an earlier
 * version, which has stored none, they are accepted unchecked, and each part is verified by the hash in its object key.
 * Takes proven epochs.
 */
export async function closeRebuilt(core: RecoverCore, run: RunRecord, epochs: readonly BucketEpoch[]): Promise<void> {
  const ownKey = createKeyPair();
  let unchecked = 0;
  for (const epoch of epochs) {
    const manifest = await manifestOrNone(core, run, epoch, ownKey);
    if (manifest !== null && manifest.publicKey === null) unchecked++;
    await enterEpoch(core, run, epoch, manifest);
  }
  if (unchecked > 0)
    await core.alarm(
      `this run was rebuilt from the bucket: the signatures of ${unchecked} manifests could not be checked, because the ` +
        `keys of their instances were lost with the database; each part was verified by the hash in its object key`,
    );
  await core.run.move('planned', 'launching');
  await core.run.move('launching', 'crawling');
  await core.run.move('crawling', 'releasing', { reason: 'lost-instance' });
  await core.run.move('releasing', 'loading');
}

interface FoundManifest {
  key: string;
  manifest: Manifest;
  sha256: string;
  publicKey: string | null;
}

/**
 * The manifest of an epoch; null for an unreadable one: its parts are loaded by the hashes in their object keys, the
 * rest of it is lost.
 */
async function manifestOrNone(
  core: RecoverCore,
  run: RunRecord,
  at: BucketEpoch,
  ownKey: ReturnType<typeof createKeyPair>,
): Promise<FoundManifest | null> {
  try {
    return await manifestOf(core, run, at, ownKey);
  } catch (error) {
    if (!isDamaged(error)) throw error;
    const { slot, epoch } = at;
    await core.alarm(`${error.message}; its list of parts cannot be compared with the bucket`, { slot, epoch });
    return null;
  }
}

async function manifestOf(
  core: RecoverCore,
  run: RunRecord,
  at: BucketEpoch,
  ownKey: ReturnType<typeof createKeyPair>,
): Promise<FoundManifest> {
  const row = await core.fleet.get(at);
  const publicKey = row?.publicKey ?? at.publicKey;
  // An earlier try may have closed it under another name.
  let key = row?.manifestKey ?? at.manifests[0];
  let bytes: Uint8Array | null;
  if (key !== undefined) bytes = await core.objects.get(key);
  else {
    const entered = await core.results.parts({ slot: at.slot, epoch: at.epoch });
    const parts = entered.map(({ seq, key, sha256, sizeBytes, products }) => ({
      seq,
      key,
      sha256,
      sizeBytes,
      products,
    }));
    const { requestLogs } = at;
    const manifest = ourManifest(core, at, { instanceId: null, progress: null, parts, requestLogs });
    const ours = encodeManifest(manifest, ownKey.privateKey);
    ({ key, stored: bytes } = await putManifest(core, run, { ...at, publicKey }, ours));
  }
  if (!bytes) throw new AppError('object-missing', `the bucket has no object ${key}`);
  const sha256 = sha256Hex(bytes);
  for (const signer of [run.publicKey, exportPublicKey(ownKey.publicKey), publicKey]) {
    if (signer === null) continue;
    try {
      return { key, manifest: decodeManifest(bytes, importPublicKey(signer)), sha256, publicKey: signer };
    } catch {
      // Signed by another key: try the next one.
    }
  }
  try {
    return { key, manifest: readUnsigned(bytes), sha256, publicKey: null };
  } catch (error) {
    throw new AppError('object-corrupt', `the object ${key} is not a manifest: ${describeError(error)}`, {
      cause: error,
    });
  }
}

/** The moves to the end from any phase that an earlier try has left; a move from another phase changes nothing. */
const TO_THE_END = [
  ['ready', 'done'],
  ['done', 'terminated'],
  ['pending', 'terminated'],
  ['claimed', 'terminated'],
] as const;

async function enterEpoch(
  core: RecoverCore,
  run: RunRecord,
  at: BucketEpoch,
  found: FoundManifest | null,
): Promise<void> {
  const { slot, epoch } = at;
  const { fleet } = core;
  await claimRebuilt(core, run, { slot, epoch });
  if (found === null) await fleet.patch({ slot, epoch }, { terminatedAtMs: powerOffAtMs(run) });
  else await enterManifest(core, run, at, found);
  for (const [from, to] of TO_THE_END) await fleet.move({ slot, epoch }, from, to, { reason: REBUILT });
}

async function enterManifest(core: RecoverCore, run: RunRecord, at: BucketEpoch, found: FoundManifest): Promise<void> {
  const { slot, epoch } = at;
  const { fleet } = core;
  const { instanceId, progress, closedAt } = found.manifest;
  if (instanceId !== '') await fleet.patch({ slot, epoch }, { instanceId });
  await fleet.heartbeat({ slot, epoch }, { counter: 1, progress, problem: null });
  const terminatedAtMs = Math.min(Date.parse(closedAt), powerOffAtMs(run));
  const manifest = { manifestKey: found.key, manifestSha256: found.sha256 };
  await fleet.patch({ slot, epoch }, { ...manifest, terminatedAtMs });
  if (found.publicKey !== null) {
    // `hello` is the only way to bind a key to an epoch; the machine's id no longer matters.
    if (instanceId === '') await fleet.patch({ slot, epoch }, { instanceId: REBUILT });
    await fleet.move({ slot, epoch }, 'claimed', 'pending');
    const hello = {
      instanceId: instanceId || REBUILT,
      address: '-',
      publicKey: found.publicKey,
      bundleSha256: '',
      clock: closedAt,
    };
    await fleet.hello({ slot, epoch }, hello);
  }
}
