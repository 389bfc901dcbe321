/**
 * Whether a part that was only found in the bucket is from its instance. One that the instance has reported needs no
 * such look: the signed heartbeat has its hash.
 */
import { AppError } from '../../../../shared/domain/errors.ts';
import { MAX_OBJECT_BYTES } from '../../../../shared/ports/object-store.ts';
import type { PartRef } from '../../../../shared/wire/callbacks.ts';
import { isSignedPart, type PartName } from '../../../../shared/wire/part-signature.ts';
import { importPublicKey } from '../../../../shared/wire/signature.ts';
import type { Core } from '../../model/core.ts';
import type { InstanceRecord, RunRecord } from '../../model/stores.ts';
import { readKeyDocument } from './key-documents.ts';

/** Why a listed part does not count. */
export const UNSIGNED = 'it is not signed by its instance, or damaged';

/**
 * True if the instance has signed the part, or the object of its request log, which is not unpacked for that. Also for
 * an object that is not there, and in a run of an earlier version, whose instances sign no parts. Where the database
 * has lost the key, the key document in the bucket counts.
 */
export async function isFromInstance(
  { objects, signatures }: Pick<Core, 'objects' | 'signatures'>,
  run: Pick<RunRecord, 'id' | 'settings' | 'publicKey'>,
  { slot, epoch, publicKey }: Pick<InstanceRecord, 'slot' | 'epoch' | 'publicKey'>,
  { seq, key, sizeBytes, of }: Pick<PartRef, 'seq' | 'key' | 'sizeBytes'> & Pick<PartName, 'of'>,
): Promise<boolean> {
  if (run.settings.partsSigned !== true) return true;
  const instanceKey = publicKey ?? (await readKeyDocument(objects, run, { slot, epoch }));
  // It has never said hello, so it was granted nothing.
  if (instanceKey === null) return false;
  const bytes = await objects.get(key, Math.min(sizeBytes, MAX_OBJECT_BYTES)).catch((error: unknown) => {
    if (error instanceof AppError && error.code === 'object-corrupt') return new Uint8Array();
    throw error;
  });
  if (bytes === null) return true;
  const place = { run: run.id, slot, epoch, seq, ...(of && { of }) };
  return isSignedPart(bytes, place, importPublicKey(instanceKey), signatures);
}
