/**
 * The public keys of instances in the bucket, each signed with the run's key. With them the origin of parts and
 * manifests can be checked after the database has lost the keys.
 */
import type { KeyObject } from 'node:crypto';
import { z } from 'zod';
import { type EpochId, epochKey } from '../../../../shared/domain/epoch-id.ts';
import { describeError } from '../../../../shared/domain/errors.ts';
import { keyDocumentKey } from '../../../../shared/domain/keys.ts';
import type { ObjectStore } from '../../../../shared/ports/object-store.ts';
import { parseForeign } from '../../../../shared/wire/foreign-json.ts';
import { importPublicKey } from '../../../../shared/wire/signature.ts';
import { signedObject } from '../../../../shared/wire/signed-object.ts';
import type { Core } from '../../model/core.ts';
import type { InstanceRecord, RunRecord } from '../../model/stores.ts';
import { alarmOnce } from '../run-notes.ts';
import { isDamaged } from './load-parts.ts';

const MAX_BYTES = 10_000;

const signedKey = signedObject('key');
const keySchema = z.strictObject({
  version: z.literal(1),
  run: z.string(),
  slot: z.int(),
  epoch: z.int(),
  /** Base64 SPKI of the key that the hello of this slot and epoch has bound. */
  publicKey: z.string(),
});

type DocumentsCore = Pick<Core, 'runId' | 'objects' | 'alarm' | 'log' | 'processState'>;
type Keyed = Pick<InstanceRecord, 'slot' | 'epoch' | 'publicKey'>;

/** Writes the key documents of a run in the background, each once. */
export class KeyDocuments {
  readonly #core: DocumentsCore;
  readonly #privateKey: KeyObject;
  /** The key documents that are written, or under way. */
  readonly #written = new Set<string>();

  constructor(core: DocumentsCore, privateKey: KeyObject) {
    this.#core = core;
    this.#privateKey = privateKey;
  }

  /**
   * Writes the document of this instance unless it is known to be there. Each callback calls this, so a failed write is
   * retried.
   */
  ensure(instance: Keyed): void {
    const name = epochKey(instance);
    if (instance.publicKey === null || this.#written.has(name)) return;
    this.#written.add(name);
    this.#write(instance).catch((error: unknown) => {
      this.#written.delete(name);
      const { slot, epoch } = instance;
      this.#core.log.warn({ slot, epoch, error: describeError(error) }, 'the key of an instance cannot be stored yet');
    });
  }

  async #write({ slot, epoch, publicKey }: Keyed): Promise<void> {
    const core = this.#core;
    const key = keyDocumentKey(core.runId, { slot, epoch });
    const bytes = signedKey.encode({ version: 1, run: core.runId, slot, epoch, publicKey }, this.#privateKey);
    if ((await core.objects.putIfAbsent(key, bytes, 'application/json')) === 'created') return;
    // There since an earlier main server, or a lost reply: the same text and key give the same bytes.
    const stored = await core.objects.get(key);
    if (stored !== null && Buffer.from(bytes).equals(stored)) return;
    await alarmOnce(
      core,
      key,
      `the object ${key} is not from the main server: should the database be lost, the results of slot ${slot} epoch ${epoch} count for nothing`,
      { slot, epoch },
    );
  }
}

/**
 * The key that the main server has stored for a slot and epoch; null if there is no such document that the run has
 * signed. Rejects when the bucket does not answer.
 */
export async function readKeyDocument(
  objects: Pick<ObjectStore, 'get'>,
  run: Pick<RunRecord, 'id' | 'publicKey'>,
  { slot, epoch }: EpochId,
): Promise<string | null> {
  const bytes = await objects.get(keyDocumentKey(run.id, { slot, epoch }), MAX_BYTES).catch((error: unknown) => {
    if (isDamaged(error)) return null;
    throw error;
  });
  if (bytes === null) return null;
  try {
    const { text, isSignedBy } = signedKey.read(bytes);
    const document = parseForeign(keySchema, text);
    const isItsOwn = document.run === run.id && document.slot === slot && document.epoch === epoch;
    return isItsOwn && isSignedBy(importPublicKey(run.publicKey)) ? document.publicKey : null;
  } catch {
    return null;
  }
}
