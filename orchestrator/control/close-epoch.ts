/** How an epoch ends: by the instance's own manifest, checked here, or by ours when the instance is lost. */
import { AppError, describeError } from '../../shared/domain/errors.ts';
import { manifestKey, parsePartKey, shardPrefix } from '../../shared/domain/keys.ts';
import { isServing } from '../../shared/domain/states.ts';
import type { PartRef } from '../../shared/wire/callbacks.ts';
import { NO_PROGRESS } from '../../shared/wire/callbacks.ts';
import type { Manifest } from '../../shared/wire/part.ts';
import { decodeManifest, encodeManifest } from '../../shared/wire/part.ts';
import { importPrivateKey, importPublicKey, sha256Hex } from '../../shared/wire/signature.ts';
import type { Core } from './core.ts';
import { loadParts, readPart } from './load-parts.ts';
import type { InstanceRecord, RunRecord } from './stores.ts';

/** Checks the manifest an instance has reported; with a good one the instance is done. */
export async function confirmManifest(core: Core, run: RunRecord, slot: number, epoch: number): Promise<void> {
  const record = await core.fleet.get(run.id, slot, epoch);
  if (!record || record.manifestKey === null || record.publicKey === null || !isServing(record.phase)) return;
  const manifest = await readOwnManifest(core, run, record);
  if (typeof manifest === 'string') {
    await core.fleet.patch(run.id, slot, epoch, { manifestKey: null, manifestSha256: null }, core.fence);
    await core.alarm(`the manifest of slot ${slot} epoch ${epoch} is refused: ${manifest}`, { slot, epoch });
    return;
  }
  await core.results.register(run.id, slot, epoch, manifest.parts, core.fence);
  // What it was granted but did not finish goes back before the epoch counts as closed; its results first, or they would go back too.
  await loadParts(core, (p) => p.slot === slot && p.epoch === epoch);
  await core.work.release(run.id, slot, epoch, core.fence, core.clock.now());
  await core.fleet.move(run.id, slot, epoch, record.phase, 'done', core.fence, core.clock.now());
}

async function readOwnManifest(core: Core, run: RunRecord, record: InstanceRecord): Promise<Manifest | string> {
  const bytes = await core.objects.get(manifestKey(run.id, record.slot, record.epoch));
  if (!bytes) return 'it is not in the bucket';
  if (record.manifestSha256 !== null && sha256Hex(bytes) !== record.manifestSha256)
    return 'it does not have the hash that was reported';
  try {
    const manifest = decodeManifest(bytes, importPublicKey(record.publicKey!));
    if (manifest.run !== run.id || manifest.slot !== record.slot || manifest.epoch !== record.epoch)
      return 'it names another run, slot or epoch';
    const foreign = manifest.parts.find((p) => !isOwnPart(run.id, record, p));
    return foreign ? `it lists a part that is not its own: ${foreign.key}` : manifest;
  } catch (error) {
    return describeError(error);
  }
}

/** A part may only be entered under the key that its own slot, epoch, seq and hash give. */
export function isOwnPart(runId: string, at: { slot: number; epoch: number }, part: PartRef): boolean {
  const name = parsePartKey(runId, part.key);
  return (
    name !== null &&
    name.slot === at.slot &&
    name.epoch === at.epoch &&
    name.seq === part.seq &&
    name.sha256 === part.sha256
  );
}

/**
 * Closes the epoch of an instance that is given up. Its parts are loaded first, so that only products without a result
 * go back to be crawled again; then the manifest fixes what counts. Repeating any step changes nothing.
 */
export async function closeEpoch(core: Core, run: RunRecord, slot: number, epoch: number): Promise<void> {
  const record = await core.fleet.get(run.id, slot, epoch);
  if (!record || record.manifestKey !== null) return;
  const parts = await listParts(core, run.id, slot, epoch);
  await core.results.register(run.id, slot, epoch, parts, core.fence);
  await loadParts(core, (p) => p.slot === slot && p.epoch === epoch);
  const returned = await core.work.release(run.id, slot, epoch, core.fence, core.clock.now());
  const manifest: Manifest = {
    version: 1,
    run: run.id,
    slot,
    epoch,
    instanceId: record.instanceId ?? '',
    closedBy: 'main-server',
    closedAt: new Date(core.clock.now()).toISOString(),
    parts,
    progress: record.progress ?? NO_PROGRESS,
  };
  const key = manifestKey(run.id, slot, epoch);
  const bytes = encodeManifest(manifest, importPrivateKey(run.privateKey));
  // `exists`: the instance closed it itself, or an earlier try of ours did. Either way the ledger is complete.
  await core.objects.putIfAbsent(key, bytes, 'application/json');
  const stored = (await core.objects.get(key)) ?? bytes;
  await core.fleet.patch(run.id, slot, epoch, { manifestKey: key, manifestSha256: sha256Hex(stored) }, core.fence);
  if (returned > 0) core.log.info({ slot, epoch, returned }, 'products of a lost instance go out again');
}

async function listParts(core: Core, runId: string, slot: number, epoch: number): Promise<PartRef[]> {
  const parts: PartRef[] = [];
  for await (const object of core.objects.list(shardPrefix(runId, slot, epoch))) {
    const name = parsePartKey(runId, object.key);
    if (!name) continue;
    try {
      const results = await readPart(core.objects, { key: object.key, sha256: name.sha256 });
      parts.push({
        seq: name.seq,
        key: object.key,
        sha256: name.sha256,
        sizeBytes: object.sizeBytes,
        products: results.length,
      });
    } catch (error) {
      // A bucket that does not answer proves nothing about the part: the closing is tried again.
      if (!(error instanceof AppError)) throw error;
      await core.alarm(`part ${object.key} of a lost instance is left out: ${describeError(error)}`, { slot, epoch });
    }
  }
  return parts.sort((a, b) => a.seq - b.seq);
}
