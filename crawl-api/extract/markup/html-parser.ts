/**
 * Streaming HTML parser: reports starts and ends of elements, those of the tree that a browser builds, except for the
 * standard's repairs of formatting elements and of text in tables. Nothing inside a template is reported, unless it is
 * a declarative shadow root, which browsers show. It skips text that the handler does not want, reads attributes on
 * demand, and decodes entities where they are used.
 *
 * An unfinished rest of a piece waits for the next piece. It is read again from its start, but only once it has
 * doubled, so that a tag which never ends costs time linear in its length.
 */
import { decodeHTML } from 'entities/decode';
import {
  EXCLAMATION,
  GREATER_THAN,
  LESS_THAN,
  type Markup,
  QUESTION,
  SLASH,
  endsName,
  isLetter,
  isNameAt,
  toMarkup,
} from './characters.ts';
import type { MarkupHandler, MarkupParser } from './markup-events.ts';
import { OpenElements } from './open-elements.ts';
import { StartTag } from './start-tag.ts';
import { type Tag, tagNamed } from './tags.ts';

const CDATA = '![CDATA[';
const PARAGRAPH = tagNamed('p');
const TEMPLATE = tagNamed('template');
const SHADOW_MODE = /^(?:open|closed)$/i;
/** Pieces up to this length share the space for their codes: a new array for each costs more than filling it. */
const MAX_SPARE = 65_536;
const NO_SPACE = new Uint16Array(0);
/** Space that no parser is using. */
let spare = NO_SPACE;
/** Characters that may become an entity with the next piece. */
const OPEN_ENTITY = /^&#?[0-9a-z]*$/i;

export class HtmlParser implements MarkupParser {
  /** Inside a template one that ignores everything. */
  #handler: MarkupHandler;
  readonly #elements: OpenElements;
  readonly #startTag = new StartTag();
  /** Start tags of elements that the page does not start where they open. */
  readonly #otherTag = new StartTag();
  /** The text that is not read yet, and its length. */
  #pieces: string[] = [];
  #length = 0;
  /** Minimum length of the text before it is read again. */
  #enough = 0;
  #ended = false;
  #textOnly: Tag | null = null;

  constructor(handler: MarkupHandler) {
    this.#handler = handler;
    this.#elements = new OpenElements({
      open: (tag, source) => {
        if (source === '') this.#otherTag.clear();
        else this.#otherTag.scan(toMarkup(source), 1 + tag.name.length);
        this.#handler.open(tag.lower, this.#otherTag);
      },
      close: () => this.#handler.close(),
    });
  }

  write(text: string): void {
    this.#pieces.push(text);
    this.#length += text.length;
    if (this.#length >= this.#enough) this.#parse();
  }

  end(): void {
    this.#ended = true;
    this.#parse();
    while (this.#elements.depth > 0) this.#elements.pop();
  }

  #parse(): void {
    // Not added by `+`: that makes a string of parts, whose characters take twice as long to read.
    const text = this.#pieces.join('');
    const space = spare.length >= text.length ? spare : new Uint16Array(Math.max(text.length, MAX_SPARE));
    // A handler may use another parser.
    spare = NO_SPACE;
    const markup = toMarkup(text, space);
    let at = 0;
    while (at < text.length) {
      const tag = this.#textOnly;
      const next = tag === null ? this.#readContent(markup, at) : this.#readTextOnly(markup, at, tag);
      if (next < 0) {
        at = ~next;
        break;
      }
      at = next;
    }
    if (space.length <= MAX_SPARE) spare = space;
    // V8 would free it late: it knows little of memory outside its heap.
    else space.buffer.transfer(0);
    this.#pieces = [text.slice(at)];
    this.#length = text.length - at;
    this.#enough = this.#length * 2;
  }

  // Each of the following functions reads one thing that starts at `at` and returns where the next one starts. If the
  // text ends in the middle, they return the complement of its start.

  #readContent(markup: Markup, at: number): number {
    const { text, codes } = markup;
    if (codes[at] === LESS_THAN && at + 1 < codes.length) {
      const code = codes[at + 1]!;
      if (isLetter(code)) return this.#readStartTag(markup, at);
      if (code === SLASH) return this.#readEndTag(markup, at);
      if (code === EXCLAMATION) return this.#readDeclaration(text, at);
      if (code === QUESTION) return this.#readBogusComment(text, at, at + 1);
    }
    return this.#readText(markup, at);
  }

  #readText({ text, codes }: Markup, at: number): number {
    const { length } = codes;
    let end = text.indexOf('<', at);
    while (end !== -1 && end + 1 < length && !startsMarkup(codes[end + 1]!)) end = text.indexOf('<', end + 1);
    if (end === -1) end = length;
    if (this.#ended && end === length - 1) end = length;
    if (end < length - 1 || this.#ended) {
      this.#giveDecoded(text, at, end);
      return end;
    }
    // Only here may the text continue.
    const open = end < length ? end : findOpenEntity(text, at);
    this.#giveDecoded(text, at, open);
    return open < length ? ~open : open;
  }

  #readTextOnly(markup: Markup, at: number, tag: Tag): number {
    const { text, codes } = markup;
    const { length } = codes;
    const isDecoded = tag.textOnly === 'rcdata';
    let end = tag.textOnly === 'plain' ? length : findEndTag(markup, at, tag.name);
    if (end < length && endsNameAt(codes, end + 2 + tag.name.length)) {
      this.#textOnly = null;
    } else if (this.#ended) end = length;
    else if (end === length && isDecoded) end = findOpenEntity(text, at);
    if (isDecoded) this.#giveDecoded(text, at, end);
    else this.#give(text, at, end);
    return this.#textOnly === null || end === length ? end : ~end;
  }

  #readStartTag(markup: Markup, at: number): number {
    const { text, codes } = markup;
    const { length } = codes;
    let nameEnd = at + 2;
    while (nameEnd < length && !endsName(codes[nameEnd]!)) nameEnd++;
    const startTag = this.#startTag;
    const next = nameEnd < length ? startTag.scan(markup, nameEnd) : -1;
    // An unfinished tag at the end of the page is neither tag nor text.
    if (next === -1) return this.#ended ? length : ~at;
    const elements = this.#elements;
    const wasForeign = elements.isForeign;
    const tag = elements.read(markup, at + 1, nameEnd);
    if (!elements.makeRoom(tag)) return next;
    if (!tag.isVoid) elements.push(tag, elements.mayReopen(tag) ? text.slice(at, next) : '');
    this.#handler.open(tag.lower, startTag);
    if (tag === TEMPLATE && !wasForeign && !SHADOW_MODE.test(startTag.get('shadowrootmode') ?? ''))
      this.#ignoreContent();
    if (tag.isVoid) this.#handler.close();
    else if (startTag.endsItself && elements.isForeign) elements.pop();
    if (!wasForeign && tag.textOnly !== null) this.#textOnly = tag;
    return next;
  }

  /** Ignores what is inside the innermost element, which has just opened. */
  #ignoreContent(): void {
    const outer = this.#handler;
    const { depth } = this.#elements;
    this.#handler = {
      wantsText: false,
      wantsComments: false,
      open: () => undefined,
      close: () => {
        if (this.#elements.depth >= depth) return;
        this.#handler = outer;
        outer.close();
      },
      text: () => undefined,
      comment: () => undefined,
    };
  }

  #readEndTag(markup: Markup, at: number): number {
    const { text, codes } = markup;
    const { length } = codes;
    const nameStart = at + 2;
    const next = this.#elements.popIfNamed(markup, nameStart);
    if (next !== -1) return next;
    if (nameStart >= length) return this.#ended ? this.#giveRest(text, at) : ~at;
    const code = codes[nameStart]!;
    if (code === GREATER_THAN) return nameStart + 1;
    if (!isLetter(code)) return this.#readBogusComment(text, at, nameStart);
    const end = text.indexOf('>', nameStart);
    if (end === -1 && !this.#ended) return ~at;
    let nameEnd = nameStart + 1;
    while (nameEnd < length && !endsName(codes[nameEnd]!)) nameEnd++;
    if (nameEnd >= length) return length;
    this.#endElement(this.#elements.read(markup, nameStart, nameEnd));
    return end === -1 ? length : end + 1;
  }

  #endElement(tag: Tag): void {
    const elements = this.#elements;
    if (tag.isVoid) {
      if (tag.name === 'br') this.#openEmpty(tag);
    } else if (!elements.end(tag) && tag === PARAGRAPH && elements.isInBody) this.#openEmpty(tag);
  }

  /** An end tag that represents an element without content. */
  #openEmpty(tag: Tag): void {
    this.#elements.makeRoom(tag);
    this.#startTag.clear();
    this.#handler.open(tag.lower, this.#startTag);
    this.#handler.close();
  }

  #readDeclaration(text: string, at: number): number {
    const { length } = text;
    if (text.startsWith('!--', at + 1)) return this.#readComment(text, at);
    if (text.startsWith(CDATA, at + 1)) return this.#readCdata(text, at);
    // The text may end before this is decided.
    if (!this.#ended && length - at <= CDATA.length) return ~at;
    const isDoctype = /^doctype/i.test(text.slice(at + 2, at + 9));
    if (isDoctype) this.#elements.hasDoctype = true;
    return this.#readBogusComment(text, at, isDoctype ? -1 : at + 2);
  }

  #readComment(text: string, at: number): number {
    const start = at + 4;
    const end = findCommentEnd(text, start);
    if (end !== null) {
      this.#giveComment(text, start, end.at);
      return end.next;
    }
    if (!this.#ended) return ~at;
    this.#giveComment(text, start, text.length - trailingDashes(text, start));
    return text.length;
  }

  /** Reads a CDATA section: only svg and math have them; elsewhere they are comments. */
  #readCdata(text: string, at: number): number {
    const start = at + 1 + CDATA.length;
    const end = text.indexOf(']]>', start);
    if (end === -1) {
      if (!this.#ended) return ~at;
      this.#giveComment(text, at + 2, text.length);
      return text.length;
    }
    if (this.#elements.isForeign) this.#give(text, start, end);
    else this.#giveComment(text, at + 2, end + 2);
    return end + 3;
  }

  /** Invalid markup; `from` is where the comment starts that it becomes, -1 without one. */
  #readBogusComment(text: string, at: number, from: number): number {
    const end = text.indexOf('>', at + 2);
    if (end === -1 && !this.#ended) return ~at;
    const until = end === -1 ? text.length : end;
    if (from !== -1) this.#giveComment(text, from, until);
    return end === -1 ? until : end + 1;
  }

  #giveRest(text: string, at: number): number {
    this.#give(text, at, text.length);
    return text.length;
  }

  #give(text: string, start: number, end: number): void {
    if (start < end && this.#handler.wantsText) this.#handler.text(text.slice(start, end));
  }

  #giveDecoded(text: string, start: number, end: number): void {
    if (start >= end) return;
    if (this.#elements.isPending) this.#elements.beforeText(text, start, end);
    if (!this.#handler.wantsText) return;
    const piece = text.slice(start, end);
    this.#handler.text(piece.includes('&') ? decodeHTML(piece) : piece);
  }

  #giveComment(text: string, start: number, end: number): void {
    if (this.#handler.wantsComments) this.#handler.comment(text.slice(start, end));
  }
}

function startsMarkup(code: number): boolean {
  return isLetter(code) || code === SLASH || code === EXCLAMATION || code === QUESTION;
}

/** Start of an unfinished entity at the end of the text; the end of the text without one. */
function findOpenEntity(text: string, from: number): number {
  const at = text.lastIndexOf('&');
  return at >= from && OPEN_ENTITY.test(text.slice(at)) ? at : text.length;
}

/** Start of the end tag of this name, or of what may become it with more text; the end of the text without one. */
function findEndTag(markup: Markup, from: number, name: string): number {
  const { text, codes } = markup;
  const { length } = codes;
  for (let at = text.indexOf('<', from); at !== -1; at = text.indexOf('<', at + 1)) {
    const nameEnd = at + 2 + name.length;
    if (nameEnd >= length) {
      if (`</${name}`.startsWith(text.slice(at).toLowerCase())) return at;
    } else if (codes[at + 1] === SLASH && endsName(codes[nameEnd]!) && isNameAt(markup, at + 2, nameEnd, name))
      return at;
  }
  return length;
}

function endsNameAt(codes: Uint16Array, at: number): boolean {
  return at < codes.length && endsName(codes[at]!);
}

/** End of the comment's text and start of what follows, null without one. Browsers accept more than `-->`. */
function findCommentEnd(text: string, start: number): { at: number; next: number } | null {
  for (const empty of ['>', '->']) if (text.startsWith(empty, start)) return { at: start, next: start + empty.length };
  for (let at = text.indexOf('--', start); at !== -1; at = text.indexOf('--', at + 1)) {
    for (const end of ['-->', '--!>']) if (text.startsWith(end, at)) return { at, next: at + end.length };
  }
  return null;
}

/** Number of characters at the end of the page that belong to the end of an unfinished comment. */
function trailingDashes(text: string, start: number): number {
  const tail = text.slice(Math.max(start, text.length - 3));
  return ['--!', '--', '-'].find((end) => tail.endsWith(end))?.length ?? 0;
}
