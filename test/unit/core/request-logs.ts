/** Request logs in a bucket, and the closed epochs that name them. */
import { gzipSync } from 'node:zlib';
import type { InstanceRecord } from '../../../orchestrator/core/model/stores.ts';
import type { MemoryObjectStore } from '../../../orchestrator/core/simulation/cloud/memory-objects.ts';
import type { ClosedEpoch } from '../../../orchestrator/core/verify/closed-epoch.ts';
import { manifestKey, requestLogKey } from '../../../shared/domain/keys.ts';
import { NO_PROGRESS } from '../../../shared/wire/callbacks.ts';
import { encodeManifest } from '../../../shared/wire/part.ts';
import { signPart } from '../../../shared/wire/part-signature.ts';
import type { LogRef } from '../../../shared/wire/request-log.ts';
import { createKeyPair, exportPublicKey, sha256Hex } from '../../../shared/wire/signature.ts';
import { anInstance } from './builders.ts';

const keys = createKeyPair();
export const publicKey = exportPublicKey(keys.publicKey);

/** Stores these lines as an object of run `r`. */
export async function storeLog(
  objects: MemoryObjectStore,
  lines: readonly string[],
  { slot = 0, seq = 0, key = keys.privateKey } = {},
): Promise<LogRef> {
  const gzip = gzipSync(`${lines.join('\n')}\n`);
  const bytes = signPart(gzip, { run: 'r', slot, epoch: 1, seq, of: 'requests' }, key);
  const name = { slot, epoch: 1, seq, sha256: sha256Hex(bytes) };
  const ref = { seq, key: requestLogKey('r', name), sha256: name.sha256, sizeBytes: bytes.length };
  await objects.putIfAbsent(ref.key, bytes);
  return ref;
}

export function epochOf(
  requestLogs: LogRef[],
  requests: number,
  change: Partial<ClosedEpoch> & { slot?: number } = {},
): ClosedEpoch {
  const { slot = 0, ...rest } = change;
  const instance = anInstance(slot, { epoch: 1, publicKey, address: `10.0.0.${slot}` });
  return { instance, closedBy: 'instance', damaged: false, requests, requestLogs, ...rest };
}

/** Closes the epoch of a slot with a manifest that names these logs; returns the instance. */
export async function storeManifest(
  objects: MemoryObjectStore,
  requestLogs: LogRef[],
  slot = 0,
): Promise<InstanceRecord> {
  const key = manifestKey('r', slot, 1);
  const place = { run: 'r', slot, epoch: 1, instanceId: `i-${slot}` };
  const closed = { closedBy: 'instance', closedAt: '2026-01-01T00:00:00.000Z' } as const;
  const more = { parts: [], requestLogs, progress: { ...NO_PROGRESS } };
  await objects.putIfAbsent(key, encodeManifest({ version: 1, ...place, ...closed, ...more }, keys.privateKey));
  return anInstance(slot, { publicKey, address: `10.0.0.${slot}`, manifestKey: key, manifestSha256: null });
}
