/**
 * Stands between a socket and the HTTP parser, and gives it every reply that browsers read in a form that it accepts.
 * An ordinary head and all bodies pass unchanged. Works on bytes that arrive in any pieces, and holds at most one head.
 */
import type { Socket } from 'node:net';
import { ChunkFraming } from './chunk-framing.ts';
import { MAX_HEAD_BYTES, readHead, readPlain, type ReadHead, ReplyFault } from './reply-head.ts';

/**
 * The server has closed a connection that it had kept open after a reply, instead of reading the next request. Nothing
 * is known about that request: it may be sent again (RFC 9112, 9.3.1).
 */
export class KeptConnectionClosed extends Error {
  override readonly name = 'KeptConnectionClosed';
  readonly code = 'KEPT_CONNECTION_CLOSED';
}

const CLOSING = new Set(['UND_ERR_SOCKET', 'ECONNRESET', 'EPIPE']);

/**
 * Normalises what undici reads from this socket, which must be new. Replaces methods of the socket instead of wrapping
 * it in a stream, which would cost more for each page than all that is done here.
 */
export function normaliseReplies(socket: Socket): void {
  const read = socket.read.bind(socket) as (size?: number) => Buffer | null;
  const unshift = socket.unshift.bind(socket);
  const write = socket.write.bind(socket) as (...args: unknown[]) => boolean;
  const destroy = socket.destroy.bind(socket);
  const replies = new ReplyNormaliser();
  /** The bytes at the front of the socket's buffer that the parser has read, and puts back while it pauses. */
  let putBackBytes = 0;
  let requests = 0;
  let isSilent = true;

  socket.write = (...args: unknown[]) => {
    // A body is written after its head: it is no further request.
    if (requests === 0 || !isSilent) {
      requests++;
      isSilent = true;
      replies.expectHead();
    }
    return write(...args);
  };

  socket.unshift = (chunk: Buffer) => {
    putBackBytes += chunk.length;
    unshift(chunk);
  };

  socket.read = (size?: number) => {
    // With a size it is the stream itself that calls.
    if (size !== undefined) return read(size);
    for (;;) {
      const chunk = read();
      if (chunk === null) return null;
      const old = Math.min(putBackBytes, chunk.length);
      putBackBytes -= old;
      if (old === chunk.length) return chunk;
      isSilent = false;
      try {
        const fresh = old === 0 ? chunk : chunk.subarray(old);
        const output = replies.push(fresh);
        if (output === fresh) return chunk;
        if (old + output.length > 0) return old === 0 ? output : Buffer.concat([chunk.subarray(0, old), output]);
      } catch (error) {
        socket.destroy(error as Error);
        return null;
      }
    }
  };

  socket.destroy = (error?: NodeJS.ErrnoException) => {
    const isKept = error !== undefined && requests > 1 && isSilent && CLOSING.has(error.code ?? '');
    return destroy(isKept ? new KeptConnectionClosed(error.message, { cause: error }) : error);
  };
}

const NOTHING = Buffer.alloc(0);
const HEAD_END = '\r\n\r\n';
/** Browsers skip as many bytes before a status line. */
const MAX_SLOP_BYTES = 4;
/** Enough to find the status line. */
const START_BYTES = MAX_SLOP_BYTES + 'http'.length;
const LF = 0x0a;
const CR = 0x0d;

export class ReplyNormaliser {
  #state: 'head' | 'chunks' | 'body' = 'head';
  /** The head, as far as it has arrived, from its status line on. */
  #pieces: Buffer[] = [];
  #bytes = 0;
  #isStarted = false;
  /** The last bytes of the head so far: an LF that only a CR may follow, and the last of all. */
  #isLineEmpty = false;
  #last = 0;
  #chunks = new ChunkFraming();

  /** A request is sent: the next bytes are the head of its reply. */
  expectHead(): void {
    this.#state = 'head';
    this.#clear();
  }

  /** What the parser gets for these bytes; `bytes` itself where nothing is rewritten. Throws a ReplyFault. */
  push(bytes: Buffer): Buffer {
    if (this.#state === 'body') return bytes;
    if (this.#state === 'chunks') return this.#chunks.push(bytes);
    if (this.#bytes === 0) {
      const end = bytes.indexOf(HEAD_END) + HEAD_END.length;
      const plain = end < HEAD_END.length || end > MAX_HEAD_BYTES ? null : readPlain(bytes.toString('latin1', 0, end));
      if (plain) return this.#pass(plain, bytes, end);
    }
    return this.#readHeads(bytes);
  }

  /** Informational heads are dropped. */
  #readHeads(bytes: Buffer): Buffer {
    for (let rest = bytes; ;) {
      if (!this.#isStarted) {
        rest = this.#bytes === 0 ? rest : Buffer.concat([...this.#pieces, rest]);
        this.#clear();
        const start = findStart(rest);
        if (start === -1) {
          this.#hold(rest);
          return NOTHING;
        }
        rest = rest.subarray(start);
        this.#isStarted = true;
      }
      const end = this.#findEnd(rest);
      if (this.#bytes + (end === -1 ? rest.length : end) > MAX_HEAD_BYTES)
        throw new ReplyFault(`the head of the reply is longer than ${MAX_HEAD_BYTES / 1_024} KB`);
      if (end === -1) {
        this.#hold(rest);
        return NOTHING;
      }
      const headEnd = this.#bytes + end;
      const whole = this.#bytes === 0 ? rest : Buffer.concat([...this.#pieces, rest]);
      this.#clear();
      const head = readHead(whole.toString('latin1', 0, headEnd));
      if (!head.isInformational) return this.#pass(head, whole, headEnd);
      rest = whole.subarray(headEnd);
    }
  }

  /** @param bytes the head and what has arrived of the body */
  #pass({ text, isChunked }: ReadHead, bytes: Buffer, headEnd: number): Buffer {
    this.#state = isChunked ? 'chunks' : 'body';
    const body = bytes.subarray(headEnd);
    let passed = body;
    if (isChunked) {
      this.#chunks = new ChunkFraming();
      passed = this.#chunks.push(body);
    }
    if (text === null && passed === body) return bytes;
    return Buffer.concat([text === null ? bytes.subarray(0, headEnd) : Buffer.from(text, 'latin1'), passed]);
  }

  #hold(bytes: Buffer): void {
    // A copy: the piece may be a small part of a large buffer.
    this.#pieces.push(Buffer.from(bytes));
    this.#bytes += bytes.length;
  }

  #clear(): void {
    this.#pieces = [];
    this.#bytes = 0;
    this.#isStarted = this.#isLineEmpty = false;
    this.#last = 0;
  }

  /** Where the head ends in its next piece: after an empty line; -1 if it does not. */
  #findEnd(piece: Buffer): number {
    for (let at = 0; at < piece.length; at++) {
      const byte = piece[at]!;
      if (byte === LF) {
        if (this.#isLineEmpty) return at + 1;
        this.#isLineEmpty = true;
      } else if (byte !== CR || this.#last === CR) this.#isLineEmpty = false;
      this.#last = byte;
    }
    return -1;
  }
}

/** Where the status line starts; -1 if there are too few bytes to know. Throws a ReplyFault if there is none. */
function findStart(bytes: Buffer): number {
  const start = bytes.toString('latin1', 0, START_BYTES).toLowerCase().indexOf('http');
  if (start !== -1) return start;
  const isTlsAlert = bytes[0] === 0x15 && bytes[1] === 0x03;
  if (bytes.length < START_BYTES && !isTlsAlert) return -1;
  if (isTlsAlert) throw new ReplyFault('the server expects TLS on that port: use https://');
  // The first frame of HTTP/2: its length in three bytes, then the type SETTINGS.
  if (bytes[0] === 0 && bytes[3] === 4) throw new ReplyFault('the server speaks only HTTP/2, which the crawl does not');
  const beginning = bytes.toString('latin1', 0, 40).replaceAll(/[^\x20-\x7e]/g, '.');
  throw new ReplyFault(`the reply is not HTTP: it begins with ${JSON.stringify(beginning)}`);
}
