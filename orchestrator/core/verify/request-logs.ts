/** Reads the request logs of an epoch that is closed, as its manifest names them. */
import { describeError } from '../../../shared/domain/errors.ts';
import { LOG_REQUESTS, type LogRef, readLine } from '../../../shared/wire/request-log.ts';
import { ED25519, sha256Hex } from '../../../shared/wire/signature.ts';
import { gzipLines } from '../act/results/gzip-lines.ts';
import { isFromInstance } from '../act/results/part-origin.ts';
import { readAhead } from '../act/results/read-ahead.ts';
import type { ClosedEpoch, RunBucket } from './closed-epoch.ts';
import type { Gaps } from './gaps.ts';

/** What was found of an epoch's logs. */
interface ReadLogs {
  /** Logs of the instance, and the requests in those that are whole. */
  logs: number;
  logged: number;
  /** Objects with the name of a log that the instance has not signed. */
  foreign: number;
  /** What is wrong with which log. */
  damaged: string[];
}

/** Objects that are read ahead of their turn. */
const READS = 8;
/** Maximum bytes of a line, packed and unpacked; a host has at most 253 characters. */
const MOST = { line: 400, packed: 16_000_000, text: LOG_REQUESTS * 400 };

/** Hands all lines on, in order. Throws where the bucket does not answer. */
export async function readRequestLogs(bucket: RunBucket, epoch: ClosedEpoch, gaps: Gaps): Promise<ReadLogs> {
  const found: ReadLogs = { logs: 0, logged: 0, foreign: 0, damaged: [] };
  const read = (log: LogRef): Promise<Uint8Array | string> => fetchLog(bucket, epoch, log);
  for await (const [log, outcome] of readAhead(epoch.requestLogs ?? [], read, READS)) {
    if ('error' in outcome) throw outcome.error;
    if (outcome.value === 'foreign') {
      found.foreign++;
      continue;
    }
    const requests = typeof outcome.value === 'string' ? outcome.value : await readObject(outcome.value, gaps);
    if (typeof requests === 'number') found.logged += requests;
    else found.damaged.push(`${log.key}: ${requests}`);
    found.logs++;
  }
  return found;
}

/** The packed object; `foreign` for one that its instance has not signed, or what is wrong with it. */
async function fetchLog(
  { run, objects }: RunBucket,
  { closedBy, instance }: ClosedEpoch,
  log: LogRef,
): Promise<Uint8Array | string> {
  // The instance's own manifest has its hash. The main server's lists whatever had the name of a log.
  const isOwn =
    closedBy === 'instance' ||
    (await isFromInstance({ objects, signatures: ED25519 }, run, instance, { ...log, of: 'requests' }));
  if (!isOwn) return 'foreign';
  const bytes = await objects.get(log.key, MOST.packed);
  if (bytes === null) return 'not in the bucket';
  return sha256Hex(bytes) === log.sha256 ? bytes : 'another hash than the one in its name';
}

/** The number of requests in an object, or what is wrong with it. */
async function readObject(packed: Uint8Array, gaps: Gaps): Promise<number | string> {
  let requests = 0;
  gaps.beginObject();
  try {
    for await (const lines of gzipLines(packed, MOST))
      for (const line of lines) if (gaps.take(readLine(line.toString('latin1')))) requests++;
  } catch (error) {
    return describeError(error);
  }
  return requests;
}
