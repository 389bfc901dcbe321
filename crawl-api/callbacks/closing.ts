/**
 * Closes the epoch: stores the manifest in the bucket, then sends the completion callback until the main server
 * confirms it. Every step is in the journal, so a restarted process continues with the next one, with the same bytes.
 */
import type { EpochId } from '../../shared/domain/epoch-id.ts';
import { manifestKey } from '../../shared/domain/keys.ts';
import { answerSchema, type Completion, COMPLETION_PATH, type Progress } from '../../shared/wire/callbacks.ts';
import { encodeManifest, type Manifest, manifestSchema } from '../../shared/wire/part.ts';
import { sha256Hex } from '../../shared/wire/signature.ts';
import type { KeyObject } from 'node:crypto';
import type { Queue } from '../queue/queue.ts';
import type { Uploader } from '../upload/uploader.ts';
import type { MainServerClient } from './main-server-client.ts';
import { type Retry, untilDone } from '../process/retry.ts';

export interface ClosingParts extends Retry {
  queue: Queue;
  uploader: Pick<Uploader, 'put'>;
  /** Folder of its objects. */
  session: (stop: AbortSignal) => Promise<string | null>;
  client: Pick<MainServerClient, 'sendSigned'>;
  owner: { run: string } & EpochId;
  instanceId: string;
  privateKey: KeyObject;
  progress: () => Progress;
}

const RETRY = { firstMs: 500, maxMs: 15_000 };

/** Resolves when the main server has confirmed the completion, or the signal aborts. All results must be in parts. */
export async function closeEpoch(parts: ClosingParts, stop: AbortSignal): Promise<void> {
  const { queue, owner, uploader, privateKey, log } = parts;
  if (queue.state.closed) return;
  const writeManifest = async (): Promise<string | null> => {
    if (queue.state.manifestText !== null) return null;
    // It gives its hosts away, and their next owners must know what it has learned of them.
    const { size } = queue.state.domains.news;
    if (size > 0) return `the main server does not know yet what was learned of ${size} hosts`;
    await queue.recordManifest(JSON.stringify(createManifest(parts)));
    return null;
  };
  await untilDone(parts, { ...RETRY, what: 'manifest not written yet' }, writeManifest, stop);
  if (stop.aborted || queue.state.manifestText === null) return;
  const bytes = encodeManifest(manifestSchema.parse(JSON.parse(queue.state.manifestText)), privateKey);
  const key = manifestKey(owner.run, owner.slot, owner.epoch, await parts.session(stop));
  if (!(await uploader.put(key, bytes, 'application/json', stop))) return;
  log.info({ key, parts: queue.state.parts.length }, 'manifest stored');
  const completion: Completion = { manifestKey: key, manifestSha256: sha256Hex(bytes) };
  const sendCompletion = async (): Promise<string | null> => {
    const reply = await parts.client.sendSigned(COMPLETION_PATH, completion);
    if (reply.status !== 200 || !answerSchema.parse(JSON.parse(reply.body)).ok)
      return `status ${reply.status}: ${reply.body.slice(0, 300)}`;
    queue.note({ t: 'closed' });
    return null;
  };
  await untilDone(parts, { ...RETRY, what: 'completion not confirmed yet' }, sendCompletion, stop);
}

function createManifest({ queue, owner, instanceId, progress, clock }: ClosingParts): Manifest {
  return {
    version: 1,
    ...owner,
    instanceId,
    closedBy: 'instance',
    closedAt: new Date(clock.now()).toISOString(),
    parts: queue.state.parts,
    requestLogs: queue.state.requestLog.stored,
    ...(queue.state.damaged ? { damaged: true } : {}),
    progress: progress(),
  };
}
