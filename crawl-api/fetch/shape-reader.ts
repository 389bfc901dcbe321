/**
 * Computes the shape of a page while it streams, over all of it: the beginning of a large page is often style and
 * script alone.
 */
import { HtmlParser } from '../extract/markup/html-parser.ts';
import type { Attributes, MarkupHandler } from '../extract/markup/markup-events.ts';
import { ENOUGH_CHARS, type PageShape } from '../politeness/judgement.ts';

/** Maximum characters of scripts that are kept; enough to see what they do. */
const SCRIPT_CHARS = 20_000;
/** Characters kept of the end: a challenge behind its style is a few kilobytes. */
const TAIL_CHARS = 16_384;
/** Elements whose content is neither visible text nor part of the page. */
const UNSEEN = new Set(['script', 'style', 'noscript', 'title', 'textarea']);
const FRAME_ELEMENTS = new Set(
  ['html', 'head', 'body', 'link', 'meta', 'base', 'template', ...UNSEEN].filter((n) => n !== 'textarea'),
);

export class ShapeReader implements MarkupHandler {
  readonly wantsComments = false;
  readonly #parser = new HtmlParser(this);
  readonly #shape: PageShape = {
    textChars: 0,
    scripts: '',
    hasExternalScript: false,
    hasMetaRefresh: false,
    hasPasswordField: false,
    otherElements: 0,
    tail: '',
  };
  #depth = 0;
  /** The outermost open element with invisible content, and its depth. */
  #unseen: { name: string; depth: number } | null = null;

  /** Reads the next piece of the page, until it has enough text. */
  write(text: string): void {
    if (this.#hasEnough()) return;
    this.#shape.tail += text;
    // Not at every piece: pieces may be one byte each.
    if (this.#shape.tail.length > 2 * TAIL_CHARS) this.#shape.tail = this.#shape.tail.slice(-TAIL_CHARS);
    this.#parser.write(text);
  }

  /** No more text follows. */
  end(): PageShape {
    if (!this.#hasEnough()) this.#parser.end();
    return this.#shape;
  }

  get wantsText(): boolean {
    if (this.#unseen !== null) return this.#unseen.name === 'script' && this.#shape.scripts.length < SCRIPT_CHARS;
    return !this.#hasEnough();
  }

  open(name: string, attributes: Attributes): void {
    this.#depth++;
    if (this.#unseen !== null) return;
    const shape = this.#shape;
    if (!FRAME_ELEMENTS.has(name)) shape.otherElements++;
    if (name === 'script' && attributes.get('src') !== undefined) shape.hasExternalScript = true;
    if (name === 'meta' && attributes.get('http-equiv')?.trim().toLowerCase() === 'refresh')
      shape.hasMetaRefresh = true;
    if (name === 'input' && attributes.get('type')?.trim().toLowerCase() === 'password') shape.hasPasswordField = true;
    if (UNSEEN.has(name)) this.#unseen = { name, depth: this.#depth };
  }

  close(): void {
    if (this.#unseen?.depth === this.#depth) this.#unseen = null;
    this.#depth--;
  }

  text(text: string): void {
    const shape = this.#shape;
    if (this.#unseen !== null) shape.scripts += text.slice(0, SCRIPT_CHARS - shape.scripts.length);
    else shape.textChars = Math.min(ENOUGH_CHARS, shape.textChars + countInk(text));
  }

  comment(): void {}

  #hasEnough(): boolean {
    return this.#shape.textChars >= ENOUGH_CHARS;
  }
}

/**
 * The shape of a whole page in one string. Text without any tag may be all script or all text; the caller knows which.
 */
export function readShape(source: string): PageShape {
  const reader = new ShapeReader();
  reader.write(source);
  return reader.end();
}

function countInk(text: string): number {
  let count = 0;
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (code > 32 && code !== 0xa0 && code !== 0xfeff) count++;
  }
  return count;
}
