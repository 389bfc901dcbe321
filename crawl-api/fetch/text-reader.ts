/**
 * Decodes the bytes of a page into text as they arrive. The first HEAD_BYTES decide the encoding, see charset.ts;
 * invalid bytes become U+FFFD.
 */
import { TextDecoder } from 'node:util';
import { chooseCharset, type Guess, guessCharset, HEAD_BYTES } from './charset.ts';

export interface TextEvents {
  onText: (text: string) => void;
  /** Called when it accepts bytes again after `push` returned false. */
  onReady: () => void;
  /** Called after `end`, once all text was passed on. */
  onEnd: () => void;
}

interface Decoder {
  decode: (bytes: Uint8Array) => string;
  end: () => string;
}

export class TextReader {
  readonly #contentType: string;
  readonly #events: TextEvents;
  #pieces: Uint8Array[] = [];
  #bytes = 0;
  #decoder: Decoder | null = null;
  #waiting = false;
  #ended = false;

  /** @param contentType the header, '' without one */
  constructor(contentType: string, events: TextEvents) {
    this.#contentType = contentType;
    this.#events = events;
  }

  /** False when the sender should wait for `onReady`; bytes sent anyway are kept. */
  push(bytes: Uint8Array): boolean {
    if (this.#decoder) {
      this.#emit(this.#decoder.decode(bytes));
      return true;
    }
    this.#pieces.push(bytes);
    this.#bytes += bytes.length;
    if (!this.#waiting && this.#bytes >= HEAD_BYTES) this.#choose();
    return !this.#waiting;
  }

  end(): void {
    this.#ended = true;
    if (this.#waiting) return;
    if (this.#decoder) this.#finish();
    else this.#choose();
  }

  /** The text pushed so far that was not passed on yet, decoded as well as possible without the rest. */
  peek(): string {
    const head = Buffer.concat(this.#pieces);
    return head.length === 0 ? '' : new TextDecoder(chooseCharset(head, false, this.#contentType).charset).decode(head);
  }

  #choose(): void {
    const all = this.#pieces.length === 1 ? this.#pieces[0]! : Buffer.concat(this.#pieces);
    const head = all.subarray(0, HEAD_BYTES);
    const isAll = this.#ended && head.length === all.length;
    const { charset, doubtful } = chooseCharset(head, isAll, this.#contentType);
    if (!doubtful) {
      this.#start(charset, all);
      return;
    }
    const guess = loadedDetector();
    if (guess) {
      this.#start(guessCharset(head, isAll, guess) ?? charset, all);
      return;
    }
    this.#waiting = true;
    this.#pieces = [all];
    void this.#guessLater(head, isAll, charset);
  }

  async #guessLater(head: Uint8Array, isAll: boolean, charset: string): Promise<void> {
    const guess = await loadDetector();
    this.#waiting = false;
    this.#start(guessCharset(head, isAll, guess) ?? charset, Buffer.concat(this.#pieces));
    if (!this.#ended) this.#events.onReady();
  }

  /** Decodes the bytes so far, and ends if there are no more. */
  #start(charset: string, bytes: Uint8Array): void {
    this.#pieces = [];
    this.#decoder = createDecoder(charset);
    this.#emit(this.#decoder.decode(bytes));
    if (this.#ended) this.#finish();
  }

  #finish(): void {
    this.#emit(this.#decoder!.end());
    this.#events.onEnd();
  }

  #emit(text: string): void {
    if (text !== '') this.#events.onText(text);
  }
}

function createDecoder(charset: string): Decoder {
  if (charset === 'utf-8') return new Utf8Decoder();
  const decoder = new TextDecoder(charset);
  return { decode: (bytes) => decoder.decode(bytes, { stream: true }), end: () => decoder.decode() };
}

let guess: Guess | null = null;

/** Null until the library is loaded. */
const loadedDetector = (): Guess | null => guess;

/** Never rejects: without the library, nothing is guessed. */
export async function loadDetector(): Promise<Guess> {
  try {
    const { analyse } = await import('chardet');
    guess ??= (bytes) => analyse(bytes);
  } catch {
    guess ??= () => [];
  }
  return guess;
}

/**
 * Streaming UTF-8 decoder: the same text as TextDecoder at a fifth of its cost, because Buffer decodes whole pieces at
 * memory speed. Invalid bytes become U+FFFD; a leading byte order mark is dropped.
 */

/** Maximum bytes of an incomplete character. */
const MAX_OPEN = 3;
const BYTE_ORDER_MARK = 0xfeff;

export class Utf8Decoder {
  /** The start of a character whose rest has not come yet. */
  #open: Uint8Array = new Uint8Array(0);
  #isStart = true;

  /** The text of these bytes and those kept before; '' while there is no whole character. */
  decode(bytes: Uint8Array): string {
    const all = this.#open.length === 0 ? bytes : Buffer.concat([this.#open, bytes]);
    const end = all.length - openLength(all);
    // A copy: the sender may reuse its buffer.
    this.#open = Uint8Array.from(all.subarray(end));
    return this.#text(all, end);
  }

  /** The rest, when no more bytes follow. */
  end(): string {
    const rest = this.#open;
    this.#open = new Uint8Array(0);
    return this.#text(rest, rest.length);
  }

  #text(bytes: Uint8Array, end: number): string {
    if (end === 0) return '';
    const text = Buffer.from(bytes.buffer, bytes.byteOffset, end).toString('utf8');
    if (!this.#isStart) return text;
    this.#isStart = false;
    return text.charCodeAt(0) === BYTE_ORDER_MARK ? text.slice(1) : text;
  }
}

/** Number of bytes at the end that may be the start of a character. */
function openLength(bytes: Uint8Array): number {
  for (let back = 1; back <= MAX_OPEN && back <= bytes.length; back++) {
    const byte = bytes[bytes.length - back]!;
    if (byte < 0x80) return 0;
    // A byte that starts a character ends the one before it, complete or not.
    if (byte >= 0xc0) return sequenceLength(byte) > back ? back : 0;
  }
  return 0;
}

function sequenceLength(firstByte: number): number {
  if (firstByte >= 0xf0) return 4;
  return firstByte >= 0xe0 ? 3 : 2;
}
