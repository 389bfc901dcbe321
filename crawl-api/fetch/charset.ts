/**
 * Bytes of a page into text as they come. The encoding is the first of: byte order mark, charset of the content-type
 * header, `<meta charset>` or the XML declaration in the first 1,024 bytes, UTF-8. Labels that TextDecoder does not know count as none;
 * broken bytes become U+FFFD.
 */
import { TextDecoder } from 'node:util';

const PRESCAN_BYTES = 1_024;

export class TextReader {
  readonly #declared: string | null;
  readonly #onText: (text: string) => void;
  #head: Uint8Array[] = [];
  #headBytes = 0;
  #decoder: TextDecoder | null = null;

  constructor(contentType: string | undefined, onText: (text: string) => void) {
    this.#declared = charsetOf(contentType ?? '');
    this.#onText = onText;
  }

  push(bytes: Uint8Array): void {
    if (this.#decoder) {
      this.#emit(this.#decoder.decode(bytes, { stream: true }));
      return;
    }
    this.#head.push(bytes);
    this.#headBytes += bytes.length;
    // With a declared charset only a byte order mark could still change it.
    if (this.#headBytes >= (this.#declared === null ? PRESCAN_BYTES : 4)) this.#start();
  }

  end(): void {
    if (!this.#decoder) this.#start();
    this.#emit(this.#decoder!.decode());
  }

  #start(): void {
    const head = this.#head.length === 1 ? this.#head[0]! : Buffer.concat(this.#head);
    this.#head = [];
    this.#decoder = new TextDecoder(markOf(head) ?? this.#declared ?? prescan(head) ?? 'utf-8');
    this.#emit(this.#decoder.decode(head, { stream: true }));
  }

  #emit(text: string): void {
    if (text !== '') this.#onText(text);
  }
}

function markOf(head: Uint8Array): string | null {
  if (head[0] === 0xef && head[1] === 0xbb && head[2] === 0xbf) return 'utf-8';
  if (head[0] === 0xfe && head[1] === 0xff) return 'utf-16be';
  if (head[0] === 0xff && head[1] === 0xfe) return 'utf-16le';
  return null;
}

function charsetOf(contentType: string): string | null {
  return known(/;\s*charset\s*=\s*["']?\s*([^\s;"']+)/i.exec(contentType)?.[1]);
}

/** https://html.spec.whatwg.org/multipage/parsing.html#prescan-a-byte-stream-to-determine-its-encoding, in short. */
function prescan(head: Uint8Array): string | null {
  const text = Buffer.from(head.subarray(0, PRESCAN_BYTES)).toString('latin1');
  const xml = known(/^\s*<\?xml[^>]*\sencoding\s*=\s*["']([\w:.-]+)/i.exec(text)?.[1]);
  const label =
    xml ?? known(/<meta\s[^>]*charset\s*=\s*["']?\s*([\w:.-]+)/i.exec(text.replace(/<!--.*?-->/gs, ''))?.[1]);
  // A page whose declaration could be read as ASCII is not UTF-16.
  return label?.startsWith('utf-16') ? 'utf-8' : label;
}

function known(label: string | undefined): string | null {
  if (label === undefined) return null;
  try {
    return new TextDecoder(label).encoding;
  } catch {
    return null;
  }
}
