/**
 * Passes a chunked body on, its framing rewritten where the HTTP parser accepts less than browsers do: lines that end
 * in LF alone, white space behind a size, extensions and trailers of any kind. The chunks' data is unchanged.
 */

/** Longest line; browsers have the same limit. */
const MAX_LINE_BYTES = 16_384;
/** The longest trailer, as for the head of the reply. */
const MAX_TRAILER_BYTES = 262_144;
const LF = 0x0a;
const CR = 0x0d;
const CRLF = Buffer.from('\r\n');
const NOTHING = Buffer.alloc(0);

export class ChunkFraming {
  /** `raw`: behind the last chunk, or broken: the parser decides. */
  #state: 'size' | 'data' | 'data-end' | 'trailers' | 'raw' = 'size';
  /** The beginning of a line that has not ended. */
  #line = NOTHING;
  /** The bytes of the current chunk's data that are still to come. */
  #leftBytes = 0;
  #trailerBytes = 0;

  /** What the parser gets for these bytes; `bytes` itself where nothing is rewritten. */
  push(bytes: Buffer): Buffer {
    const input = this.#line.length === 0 ? bytes : Buffer.concat([this.#line, bytes]);
    this.#line = NOTHING;
    const output: Buffer[] = [];
    /** What lies before is in the output; what lies between here and `at` passes unchanged. */
    let from = 0;
    for (let at = 0; at < input.length && this.#state !== 'raw';) {
      if (this.#state === 'data') {
        at += this.#skipData(input.length - at);
        continue;
      }
      const end = input.indexOf(LF, at) + 1;
      const line = input.subarray(at, end === 0 ? input.length : end);
      const rewritten = end === 0 ? this.#hold(line) : this.#readLine(line);
      at += line.length;
      if (rewritten === line) continue;
      output.push(input.subarray(from, at - line.length), rewritten);
      from = at;
    }
    if (from === 0) return input;
    return Buffer.concat([...output, input.subarray(from)]);
  }

  #skipData(bytes: number): number {
    const skipped = Math.min(this.#leftBytes, bytes);
    this.#leftBytes -= skipped;
    if (this.#leftBytes === 0) this.#state = 'data-end';
    return skipped;
  }

  /** The beginning of a line: keeps it until the rest arrives, if that can make it a valid one. */
  #hold(line: Buffer): Buffer {
    const isPossible = this.#state === 'data-end' ? line.equals(CRLF.subarray(0, 1)) : line.length <= MAX_LINE_BYTES;
    if (!isPossible) return this.#giveUp(line);
    // A copy: the line is a small part of a large buffer.
    this.#line = Buffer.from(line);
    return NOTHING;
  }

  /** What replaces a line that ends in LF. */
  #readLine(line: Buffer): Buffer {
    const hasCr = line.at(-2) === CR;
    const length = line.length - (hasCr ? 2 : 1);
    if (this.#state === 'trailers') {
      this.#trailerBytes += line.length;
      if (length > 0 && this.#trailerBytes <= MAX_TRAILER_BYTES) return NOTHING;
      this.#state = 'raw';
      return hasCr ? line : CRLF;
    }
    if (this.#state === 'data-end') {
      if (length > 0) return this.#giveUp(line);
      this.#state = 'size';
      return hasCr ? line : CRLF;
    }
    const text = length > MAX_LINE_BYTES ? '' : line.toString('latin1', 0, length);
    const digits = /^[\da-f]+(?= *(?:;|$))/i.exec(text)?.[0] ?? '';
    const size = Number.parseInt(digits, 16);
    if (!Number.isSafeInteger(size)) return this.#giveUp(line);
    this.#leftBytes = size;
    this.#state = size === 0 ? 'trailers' : 'data';
    return hasCr && digits.length === length && length < 16 ? line : Buffer.from(`${size.toString(16)}\r\n`);
  }

  #giveUp(line: Buffer): Buffer {
    this.#state = 'raw';
    return line;
  }
}
