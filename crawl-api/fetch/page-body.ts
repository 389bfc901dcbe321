/**
 * Processes the body of one reply: decompresses, limits and decodes it and, if it is a page, passes it to an extractor.
 * The beginning of the text is always kept.
 */
import { describeError } from '../../shared/domain/errors.ts';
import { createContentDecoder, isBinary, isUnsupported } from '../../shared/adapters/http/content-decoder.ts';
import type { ContentDecoder } from '../../shared/adapters/http/decoder-layer.ts';
import type { PageExtractor, PageKind } from '../extract/page-extractor.ts';
import { PageLimitError } from '../extract/page-limits.ts';
import { type ContentClass, decideKind, findFileFormat, SNIFFED_BYTES, SNIFFED_CHARS } from './page-kind.ts';
import { KEPT_BODY_CHARS } from './page-result.ts';
import type { PageShape } from '../politeness/judgement.ts';
import { ShapeReader, readShape } from './shape-reader.ts';
import type { Finding } from './reply-head.ts';
import { collectGarbage, HEAVY_BYTES } from './heavy-pages.ts';
import type { PageBudget } from './page-budget.ts';
import { TextReader } from './text-reader.ts';

export interface PageBodyOptions {
  /** The header, '' without one. */
  contentType: string;
  encoding: string;
  content: ContentClass;
  /** Maximum decoded bytes; beyond it a page is too large. */
  maxBytes: number;
  /** What all bodies under way share. */
  budget: PageBudget;
  /** Opens the extractor; null when only the beginning is wanted: an error page. */
  openExtractor: ((kind: PageKind) => PageExtractor) | null;
  /** Called when it accepts bytes again after `push` returned false. */
  onDrain: () => void;
  /** Called once, at the end or when nothing more is needed; null when nothing was found. */
  onDone: (finding: Finding | null) => void;
}

export class PageBody {
  readonly #options: PageBodyOptions;
  readonly #decoder: ContentDecoder;
  readonly #text: TextReader;
  #bytes = 0;
  /** The first bytes, until there are enough to tell a page from a file; null afterwards. */
  #first: Uint8Array[] | null = [];
  /** The first characters, until there are enough to tell the kind of page. */
  #start = '';
  #extractor: PageExtractor | null = null;
  #kept = '';
  #cut = false;
  #cutOff: { bytes: number; fault: string } | null = null;
  #done = false;
  #complete = false;
  /** Reads the page's shape, once the page is longer than the part that is kept. */
  #shape: ShapeReader | null = null;

  constructor(options: PageBodyOptions) {
    this.#options = options;
    this.#text = new TextReader(options.contentType, (text) => this.#read(text));
    this.#decoder = createContentDecoder(options.encoding, {
      onBytes: (bytes) => {
        this.#take(bytes);
        return this.#done || options.budget.take(this, bytes.length, () => setImmediate(() => this.#readOn()));
      },
      onDrain: options.onDrain,
      onEnd: () => this.#endBytes(),
      onError: ({ message }) =>
        this.#fail('network', this.#cutOff?.fault ?? `broken ${options.encoding.trim().slice(0, 100)}: ${message}`),
    });
  }

  /** The beginning of the text, at most KEPT_BODY_CHARS. */
  get kept(): string {
    return this.#kept;
  }

  /** True when `kept` is all of it. */
  get complete(): boolean {
    return this.#complete && !this.#cut;
  }

  /** The shape of the whole page; null when it was not read to its end. */
  shape(): PageShape | null {
    if (!this.#complete) return null;
    return this.#shape === null ? readShape(this.#kept) : this.#shape.end();
  }

  /** False when the sender should wait for `onDrain`. */
  push(chunk: Uint8Array): boolean {
    return this.#done || this.#decoder.push(chunk);
  }

  end(): void {
    if (!this.#done) this.#decoder.end();
  }

  /** The connection has ended: the page is complete only if it has this length, decoded. `fault` says what happened. */
  endAt(bytes: number, fault: string): void {
    this.#cutOff = { bytes, fault };
    this.end();
  }

  /** No more bytes follow. */
  destroy(): void {
    if (this.#done) return;
    this.#done = true;
    this.#options.budget.leave(this);
    this.#decoder.destroy();
    if (this.#kept !== '') return;
    // A body that ended early is evidence too.
    for (const piece of this.#first ?? []) this.#text.push(piece);
    this.#kept ||= this.#text.peek().slice(0, KEPT_BODY_CHARS);
  }

  /** Not while another body is read: undici has one HTTP parser at work at a time. */
  #readOn(): void {
    if (!this.#done) this.#decoder.resume();
  }

  #take(bytes: Uint8Array): void {
    if (this.#done) return;
    const room = this.#options.maxBytes - this.#bytes;
    this.#bytes += bytes.length;
    if (bytes.length > room) {
      if (!this.#options.openExtractor) this.#keep(bytes.subarray(0, room));
      this.#fail('too-large', `more than ${this.#options.maxBytes} bytes`);
      return;
    }
    this.#keep(bytes);
    if (this.#bytes % HEAVY_BYTES < bytes.length && this.#bytes > HEAVY_BYTES) collectGarbage();
    if (this.#first && this.#bytes >= SNIFFED_BYTES) this.#passFirst(this.#first);
  }

  #keep(bytes: Uint8Array): void {
    if (this.#first) this.#first.push(bytes);
    else this.#text.push(bytes);
  }

  #passFirst(pieces: readonly Uint8Array[]): void {
    this.#first = null;
    const [one, ...more] = pieces;
    const first = one !== undefined && more.length === 0 ? one : Buffer.concat(pieces);
    const { contentType, encoding } = this.#options;
    const format = findFileFormat(first);
    if (isUnsupported(encoding) && (format !== null || isBinary(first)))
      this.#fail('content-type', `content-encoding ${encoding.slice(0, 100)} is not supported`);
    else if (format !== null) this.#fail('content-type', `${format} as ${contentType.slice(0, 100) || 'nothing'}`);
    else if (first.length > 0) this.#text.push(first);
  }

  #endBytes(): void {
    if (this.#done) return;
    if (this.#cutOff && this.#cutOff.bytes !== this.#bytes) return this.#fail('network', this.#cutOff.fault);
    if (this.#first) this.#passFirst(this.#first);
    if (this.#done) return;
    this.#text.end();
    this.#finish();
  }

  #read(text: string): void {
    const room = KEPT_BODY_CHARS - this.#kept.length;
    if (text.length > room && !this.#cut) {
      this.#cut = true;
      this.#shape = new ShapeReader();
      this.#shape.write(this.#kept);
    }
    if (room > 0) this.#kept += text.length > room ? text.slice(0, room) : text;
    this.#shape?.write(text);
    if (this.#done) return;
    this.#guarded(() => {
      if (this.#extractor) this.#extractor.write(text);
      else if (this.#options.openExtractor) {
        this.#start += text;
        if (this.#start.length >= SNIFFED_CHARS) this.#open();
      }
    });
  }

  #open(): void {
    const { content, contentType, openExtractor } = this.#options;
    const kind = decideKind(content, this.#start.slice(0, SNIFFED_CHARS));
    if (kind === null || !openExtractor) {
      this.#fail('content-type', `no page: content-type ${contentType.slice(0, 100)}`);
      return;
    }
    this.#extractor = openExtractor(kind);
    if (this.#start !== '') this.#extractor.write(this.#start);
    this.#start = '';
  }

  #finish(): void {
    if (this.#done) return;
    this.#complete = true;
    if (!this.#options.openExtractor) {
      this.#settle(null);
      return;
    }
    this.#guarded(() => {
      if (!this.#extractor) this.#open();
      if (this.#extractor && !this.#done) this.#settle({ kind: 'page', extraction: this.#extractor.end() });
    });
  }

  /** A page may exceed the extractor's limits; any other error is a bug of ours. */
  #guarded(parse: () => void): void {
    try {
      parse();
    } catch (error) {
      this.#fail(error instanceof PageLimitError ? 'too-large' : 'parse', describeError(error));
    }
  }

  #fail(reason: 'network' | 'content-type' | 'too-large' | 'parse', detail: string): void {
    this.#settle({ kind: 'failed', reason, detail });
  }

  #settle(finding: Finding | null): void {
    if (this.#done) return;
    this.destroy();
    this.#extractor = null;
    if (this.#bytes >= HEAVY_BYTES) setImmediate(collectGarbage);
    this.#options.onDone(finding);
  }
}
