/** Decodes one content-encoding. */
import type { Transform } from 'node:stream';

export interface DecoderEvents {
  /** Returns false to receive nothing more (or little) until `resume` is called. */
  onBytes: (bytes: Uint8Array) => boolean;
  /** There is room again after `push` returned false. */
  onDrain: () => void;
  onEnd: () => void;
  /** The bytes are not valid for the encoding, or end too early. No event follows. */
  onError: (error: Error) => void;
}

export interface ContentDecoder {
  /** False when the sender should wait for `onDrain`. */
  push(chunk: Uint8Array): boolean;
  /** The message is complete. */
  end(): void;
  /** The receiver has room again after `onBytes` returned false. */
  resume(): void;
  /** Stops at once; no event follows. */
  destroy(): void;
}

type Decompressor = Transform & { readonly bytesWritten?: number };

export interface Format {
  /**
   * How to go on. `more`: with more bytes; `plain`: the body is plain despite its header; `over`: what is left does not
   * count. Else with the decompressor, after `skip` bytes of header. Throws when the bytes are not valid.
   *
   * @param head HEAD_BYTES or more, or the rest of the body
   * @param streams number of compressed streams before this one; only of a format that is `isRepeated`
   */
  open(head: Buffer, streams: number): 'more' | 'plain' | 'over' | { stream: Decompressor; skip: number };
  /** A body may be several compressed streams in sequence. */
  isRepeated?: boolean;
  /** Bytes that end the stream of a complete body after its last 4 bytes; null where it must have ended. */
  completionOf?(tail: Buffer): Buffer | null;
}

/** Enough to recognise every format. */
const HEAD_BYTES = 4;
const NOTHING = Buffer.alloc(0);

export class DecoderLayer implements ContentDecoder {
  readonly #format: Format;
  readonly #events: DecoderEvents;
  #state: 'head' | 'stream' | 'plain' | 'over' = 'head';
  #head: Buffer = NOTHING;
  #stream: Decompressor | null = null;
  #streams = 0;
  /** What was written to the stream, which may end anywhere in it; and the number of bytes written before. */
  #written: Buffer[] = [];
  #beforeBytes = 0;
  #tail: Buffer = NOTHING;
  #hasEnded = false;
  /** The sender waits for `onDrain`. */
  #isFull = false;
  #isDestroyed = false;

  constructor(format: Format, events: DecoderEvents) {
    this.#format = format;
    this.#events = events;
  }

  push(bytes: Uint8Array): boolean {
    if (this.#isDestroyed || this.#state === 'over' || bytes.length === 0) return true;
    if (this.#state === 'plain') return this.#events.onBytes(bytes);
    const chunk = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
    if (this.#stream !== null && this.#state === 'stream') return this.#write(this.#stream, chunk);
    this.#head = join([this.#head, chunk]);
    return this.#head.length < HEAD_BYTES || this.#open();
  }

  end(): void {
    if (this.#isDestroyed) return;
    this.#hasEnded = true;
    if (this.#stream !== null && this.#state === 'stream') this.#endStream(this.#stream);
    // An empty body is not valid gzip, but servers send it with redirects and errors.
    else if (this.#head.length > 0) this.#open();
    else this.#events.onEnd();
  }

  resume(): void {
    if (this.#stream) this.#stream.resume();
    else this.#events.onDrain();
  }

  destroy(): void {
    this.#isDestroyed = true;
    this.#stream?.destroy();
  }

  #open(): boolean {
    const head = this.#head;
    try {
      const opening = this.#format.open(head, this.#streams);
      if (opening === 'more') return this.#waitForMore();
      this.#head = NOTHING;
      if (typeof opening === 'string') {
        this.#state = opening;
        const hasRoom = opening === 'over' || this.#events.onBytes(head);
        if (this.#hasEnded && !this.#isDestroyed) this.#events.onEnd();
        return hasRoom;
      }
      this.#state = 'stream';
      this.#streams++;
      const stream = this.#listen(opening.stream);
      this.#stream = stream;
      const hasRoom = this.#write(stream, head.subarray(opening.skip));
      if (this.#hasEnded) this.#endStream(stream);
      return hasRoom;
    } catch (error) {
      this.#fail(error as Error);
      return true;
    }
  }

  #waitForMore(): boolean {
    if (!this.#hasEnded) return true;
    if (this.#streams === 0) this.#fail(new Error('unexpected end of file'));
    else this.#events.onEnd();
    return true;
  }

  #listen(stream: Decompressor): Decompressor {
    const { onBytes, onDrain } = this.#events;
    const ifCurrent =
      <T>(act: (value: T) => void) =>
      (value: T): void => {
        if (!this.#isDestroyed && stream === this.#stream) act(value);
      };
    stream.on(
      'data',
      ifCurrent<Buffer>((bytes) => void (onBytes(bytes) || stream.pause())),
    );
    stream.on(
      'drain',
      ifCurrent(() => {
        this.#isFull = false;
        onDrain();
      }),
    );
    stream.on(
      'end',
      ifCurrent(() => this.#leave(stream)),
    );
    stream.on(
      'error',
      ifCurrent<Error>((error) => {
        // What was decoded before the fault is still in the buffer of a stream that is paused.
        for (let rest = stream.read() as Buffer | null; rest !== null; rest = stream.read() as Buffer | null)
          onBytes(rest);
        this.#fail(error);
      }),
    );
    return stream;
  }

  #write(stream: Decompressor, chunk: Buffer): boolean {
    if (this.#format.isRepeated) {
      const readBytes = stream.bytesWritten ?? 0;
      for (
        let first;
        (first = this.#written[0]) && this.#beforeBytes + first.length <= readBytes;
        this.#written.shift()
      )
        this.#beforeBytes += first.length;
      this.#written.push(chunk);
    }
    this.#tail = join([this.#tail, chunk.subarray(-4)]).subarray(-4);
    this.#isFull = !stream.write(chunk);
    return !this.#isFull;
  }

  #endStream(stream: Decompressor): void {
    const completion = this.#format.completionOf?.(this.#tail) ?? null;
    if (completion) stream.write(completion);
    stream.end();
  }

  /** The stream has ended; the body may go on. */
  #leave(stream: Decompressor): void {
    this.#head = join(this.#written).subarray((stream.bytesWritten ?? 0) - this.#beforeBytes);
    this.#written = [];
    this.#beforeBytes = 0;
    this.#tail = NOTHING;
    this.#stream = null;
    stream.destroy();
    this.#state = this.#format.isRepeated ? 'head' : 'over';
    const wasFull = this.#isFull;
    this.#isFull = false;
    let hasRoom = true;
    if (this.#head.length > 0) hasRoom = this.#open();
    else if (this.#hasEnded) this.#events.onEnd();
    if (wasFull && hasRoom && !this.#isDestroyed) this.#events.onDrain();
  }

  #fail(error: Error): void {
    this.destroy();
    this.#events.onError(error);
  }
}

const join = (pieces: readonly Buffer[]): Buffer => {
  const filled = pieces.filter(({ length }) => length > 0);
  const [one, ...more] = filled;
  return one !== undefined && more.length === 0 ? one : Buffer.concat(filled);
};
