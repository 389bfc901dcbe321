/** What goes back to a client, and what a fault rule does to it on the way. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { pipeline } from 'node:stream/promises';
import type { Readable } from 'node:stream';
import { Transform } from 'node:stream';
import { describeError } from '../../shared/domain/errors.ts';
import type { Clock } from '../../shared/ports/clock.ts';
import { AwsError } from '../aws-error.ts';
import type { CallFaults } from '../faults.ts';
import type { Log } from '../log.ts';

export interface Answer {
  status: number;
  headers: Record<string, string>;
  body: string | Readable | null;
  /** Null for calls that no rule can touch. */
  faults: CallFaults | null;
  /** Done once the answer is on its way. */
  afterwards?: () => void;
}

/** Anything that is not AWS's error is a fault of the sandbox: it is logged and told as an internal error. */
export function toAwsError(thrown: unknown, internalCode: string, log: Log): AwsError {
  if (thrown instanceof AwsError) return thrown;
  log.write('internal-error', {
    error: describeError(thrown),
    stack: thrown instanceof Error ? thrown.stack : undefined,
  });
  return new AwsError(internalCode, `An internal error has occurred: ${describeError(thrown)}`, 500);
}

/** Sends the answer, late or not at all when a fault says so. Never rejects: a client that left is no fault. */
export async function sendAnswer(
  answer: Answer,
  request: IncomingMessage,
  response: ServerResponse,
  clock: Clock,
): Promise<void> {
  const { status, headers, body, faults } = answer;
  const stream = body !== null && typeof body !== 'string' ? body : null;
  if (faults && faults.delayMs > 0) await clock.sleep(faults.delayMs);
  if (faults?.lost || faults?.reply === 'lost' || response.destroyed) {
    stream?.destroy();
    request.socket.destroy();
    return;
  }
  await readRest(request, clock);
  if (stream && request.method !== 'HEAD') {
    response.writeHead(status, headers);
    const sizeBytes = Number(headers['content-length'] ?? 0);
    await pipeline(stream, spoil(faults?.reply ?? 'whole', sizeBytes), response).catch(() => undefined);
    return;
  }
  stream?.destroy();
  const text = typeof body === 'string' ? body : '';
  // A HEAD answer says how long the body would be, and has none.
  response.writeHead(status, { 'content-length': Buffer.byteLength(text), ...headers });
  response.end(request.method === 'HEAD' ? undefined : text, () => answer.afterwards?.());
}

/** Passes an object of that size on, as whole as the fault leaves it: what is cut breaks off in the middle, what is wrong is so there. */
function spoil(reply: CallFaults['reply'], sizeBytes: number): Transform {
  const middle = Math.floor(sizeBytes / 2);
  let passed = 0;
  return new Transform({
    transform(chunk: Buffer, _encoding, done) {
      const at = middle - passed;
      passed += chunk.length;
      if (at < 0 || at >= chunk.length || reply === 'whole') return done(null, chunk);
      if (reply === 'wrong') {
        const wrong = Buffer.from(chunk);
        wrong[at]! ^= 1;
        return done(null, wrong);
      }
      this.push(chunk.subarray(0, at));
      done(new Error('cut by a fault rule'));
    },
  });
}

/** Longest that a refused body is read for. */
const REST_LIMIT_MS = 10_000;

/**
 * Reads what is left of the body before answering: a client that is still sending when the answer comes resets the
 * connection, and then sees a lost connection instead of the refusal.
 */
async function readRest(request: IncomingMessage, clock: Clock): Promise<void> {
  if (request.complete || request.destroyed) {
    request.resume();
    return;
  }
  const over = new AbortController();
  const end = (): void => over.abort();
  request.once('end', end).once('close', end).resume();
  await clock.sleep(REST_LIMIT_MS, over.signal);
}
