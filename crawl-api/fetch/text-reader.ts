/**
 * Decodes the bytes of a page into text as they arrive. The first HEAD_BYTES decide the encoding, see charset.ts;
 * invalid bytes become U+FFFD.
 */
import { chooseCharset, HEAD_BYTES } from './charset.ts';
import { createDecoder, type Decoder } from './decoders.ts';

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
    this.#emit((this.#decoder ?? this.#start(true)).end());
  }

  /** The text pushed so far that was not passed on yet, decoded as well as possible without the rest. */
  peek(): string {
    const head = Buffer.concat(this.#pieces);
    return head.length === 0 ? '' : createDecoder(chooseCharset(head, false, this.#contentType)).decode(head);
  }

  #start(ended: boolean): Decoder {
    const [one, ...more] = this.#pieces;
    const all = one !== undefined && more.length === 0 ? one : Buffer.concat(this.#pieces);
    this.#pieces = [];
    const head = all.subarray(0, HEAD_BYTES);
    const decoder = createDecoder(chooseCharset(head, ended && head.length === all.length, this.#contentType));
    this.#decoder = decoder;
    this.#emit(decoder.decode(all));
    return decoder;
  }

  #emit(text: string): void {
    if (text !== '') this.#onText(text);
  }
}

/** The text of a whole page. `contentType`: the header, '' without one. */
export function readText(contentType: string, bytes: Uint8Array): string {
  let text = '';
  const reader = new TextReader(contentType, (more) => (text += more));
  reader.push(bytes);
  reader.end();
  return text;
}
