/** An epoch that is closed, by its manifest in the bucket. */
import { describeError } from '../../../shared/domain/errors.ts';
import type { ObjectStore } from '../../../shared/ports/object-store.ts';
import { decodeManifest, type Manifest, readUnsigned } from '../../../shared/wire/part.ts';
import { importPublicKey, sha256Hex } from '../../../shared/wire/signature.ts';
import { fetchManifest } from '../act/results/close-epoch.ts';
import { REBUILT } from '../act/results/run-description.ts';
import type { InstanceRecord, RunRecord } from '../model/stores.ts';

export interface RunBucket {
  run: RunRecord;
  objects: ObjectStore;
}

/** What the manifest of an epoch says of its requests. */
export interface ClosedEpoch extends Pick<Manifest, 'closedBy' | 'requestLogs'> {
  instance: InstanceRecord;
  /** By the instance's own count. */
  requests: number;
  /** Its journal was damaged: the count may be wrong. */
  damaged: boolean;
}

/** The manifest of an epoch and what it says of its requests; or a text that names its fault. */
export async function readClosedEpoch(
  bucket: RunBucket,
  instance: InstanceRecord,
): Promise<{ manifest: Manifest; epoch: ClosedEpoch } | string> {
  const manifest = await readManifest(bucket, instance);
  if (typeof manifest === 'string') return manifest;
  const { closedBy, requestLogs, damaged = false, progress } = manifest;
  const { requests } = progress;
  return { manifest, epoch: { instance, closedBy, damaged, requests, ...(requestLogs && { requestLogs }) } };
}

/** The manifest of an epoch, signed by its instance or by the run; or a text that names its fault. */
async function readManifest({ run, objects }: RunBucket, instance: InstanceRecord): Promise<Manifest | string> {
  if (instance.manifestKey === null) return 'none';
  const bytes = await fetchManifest(objects, instance.manifestKey);
  if (!bytes) return 'not in the bucket';
  if (typeof bytes === 'string') return bytes;
  if (instance.manifestSha256 !== null && sha256Hex(bytes) !== instance.manifestSha256)
    return 'another hash than the one in the ledger';
  // Its key was lost with the database, which the run has reported: only the form and the hash can be checked.
  const isUnsigned = instance.publicKey === null && instance.reason === REBUILT;
  const keys = [instance.publicKey, run.publicKey].filter((k) => k !== null);
  let fault = 'no key to check it with';
  for (const key of isUnsigned ? [null] : keys) {
    try {
      return key === null ? readUnsigned(bytes) : decodeManifest(bytes, importPublicKey(key));
    } catch (error) {
      fault = describeError(error);
    }
  }
  return fault;
}
