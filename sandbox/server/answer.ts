/** Sends answers to clients, and applies fault rules to them. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { pipeline } from 'node:stream/promises';
import { type Readable, Transform } from 'node:stream';
import { describeError } from '../../shared/domain/errors.ts';
import type { Clock } from '../../shared/ports/clock.ts';
import { AwsError } from '../aws-error.ts';
import type { CallFaults } from '../faults.ts';
import type { Log } from '../log.ts';

export interface Answer {
  status: number;
  headers: Record<string, string>;
  body: string | Readable | null;
  /** The faults that apply to the call; null for calls that fault rules do not apply to. */
  faults: CallFaults | null;
  /** Called once the answer has been sent. */
  afterwards?: () => void;
}

/** An answer that fault rules do not apply to. */
export function plainAnswer(status: number, type: string, body: string): Answer {
  return { status, headers: { 'content-type': type }, body, faults: null };
}

/** Any error that is not an AwsError is a fault of the sandbox: it is logged and returned as an internal error. */
export function toAwsError(thrown: unknown, internalCode: string, log: Log): AwsError {
  if (thrown instanceof AwsError) return thrown;
  log.write('internal-error', {
    error: describeError(thrown),
    stack: thrown instanceof Error ? thrown.stack : undefined,
  });
  return new AwsError(internalCode, `An internal error has occurred: ${describeError(thrown)}`, 500);
}

/** Sends the answer; a fault rule may delay or drop it. Never rejects: a disconnected client is no fault. */
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
  // A HEAD answer announces the body's length but has no body.
  response.writeHead(status, { 'content-length': Buffer.byteLength(text), ...headers });
  response.end(request.method === 'HEAD' ? undefined : text, () => answer.afterwards?.());
}

/** Forwards an object of that size with the fault applied in its middle: the cut, or the wrong byte. */
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

/** Maximum time to read a refused body. */
const REST_LIMIT_MS = 10_000;

/**
 * Reads the rest of the body before answering: a client that is still sending when the answer arrives resets the
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
