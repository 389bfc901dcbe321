/**
 * Decodes the bytes of a page into text as they arrive. The first HEAD_BYTES decide the encoding, see charset.ts;
 * invalid bytes become U+FFFD.
 */
import { StringDecoder } from 'node:string_decoder';
import { TextDecoder } from 'node:util';
import { chooseCharset, HEAD_BYTES } from './charset.ts';

interface Decoder {
  decode: (bytes: Uint8Array) => string;
  end: () => string;
}

export class TextReader {
  readonly #contentType: string;
  readonly #onText: (text: string) => void;
  /** The bytes so far, while there are too few to choose the decoder. */
  #pieces: Uint8Array[] = [];
  #bytes = 0;
  #decoder: Decoder | null = null;

  /** @param contentType the header, '' without one */
  constructor(contentType: string, onText: (text: string) => void) {
    this.#contentType = contentType;
    this.#onText = onText;
  }

  push(bytes: Uint8Array): void {
    if (this.#decoder) return this.#emit(this.#decoder.decode(bytes));
    this.#pieces.push(bytes);
    this.#bytes += bytes.length;
    if (this.#bytes >= HEAD_BYTES) this.#start(false);
  }

  /** No more bytes follow: passes on the rest of the text. */
  end(): void {
    if (!this.#decoder) this.#start(true);
    this.#emit(this.#decoder!.end());
  }

  /** The text pushed so far that was not passed on yet, decoded as well as possible without the rest. */
  peek(): string {
    const head = Buffer.concat(this.#pieces);
    return head.length === 0 ? '' : new TextDecoder(chooseCharset(head, false, this.#contentType)).decode(head);
  }

  #start(ended: boolean): void {
    const all = this.#pieces.length === 1 ? this.#pieces[0]! : Buffer.concat(this.#pieces);
    this.#pieces = [];
    const head = all.subarray(0, HEAD_BYTES);
    this.#decoder = createDecoder(chooseCharset(head, ended && head.length === all.length, this.#contentType));
    this.#emit(this.#decoder.decode(all));
  }

  #emit(text: string): void {
    if (text !== '') this.#onText(text);
  }
}

function createDecoder(charset: string): Decoder {
  if (charset === 'utf-8') return createUtf8Decoder();
  const decoder = new TextDecoder(charset);
  return { decode: (bytes) => decoder.decode(bytes, { stream: true }), end: () => decoder.decode() };
}

/** The same text as TextDecoder at a fraction of its cost; only the byte order mark is left to drop. */
function createUtf8Decoder(): Decoder {
  const decoder = new StringDecoder('utf8');
  let isStart = true;
  const withoutMark = (text: string): string => {
    if (!isStart || text === '') return text;
    isStart = false;
    return text.startsWith('\uFEFF') ? text.slice(1) : text;
  };
  return { decode: (bytes) => withoutMark(decoder.write(bytes)), end: () => withoutMark(decoder.end()) };
}
