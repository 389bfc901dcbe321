/**
 * Determines the encoding of a page's bytes, by the first that applies:
 *
 *   1. byte order mark
 *   2. UTF-8, when the bytes are valid UTF-8 beyond coincidence, whatever is declared
 *   3. the charset of the content-type header, else of `<meta>` or the XML declaration, as in browsers; a few wrong
 *      bytes do not refute it
 *   4. when many sequences are impossible in it: another that the page is valid in, declared too, UTF-8 or guessed
 *   5. without a declaration: a guess by letter frequency, else windows-1252 as in browsers
 *
 * Labels that TextDecoder does not know count as none.
 */
import { textBefore } from '../../shared/domain/text-before.ts';
import { isAscii, isUtf8 } from 'node:buffer';
import { TextDecoder } from 'node:util';
import { analyse } from 'chardet';
import { createDecoder, isMultiByte } from './decoders.ts';

/** Number of leading bytes that decide the encoding; the rest is decoded as it arrives. */
export const HEAD_BYTES = 65_536;

/** The encoding of a page by its first bytes. `head`: the first HEAD_BYTES, or all of it when `isAll`. */
export function chooseCharset(head: Uint8Array, isAll: boolean, contentType: string): string {
  const header = headerCharset(contentType);
  const mark = markOf(head) ?? (header?.startsWith('utf-16') ? header : null);
  if (mark !== null) return mark;
  const ascii = isAscii(head);
  const whole = isAll ? head : withoutCutCharacter(head);
  // Nearly every page returns at one of these, before it is searched for a declaration.
  if (ascii && head.includes(ESCAPE)) return escapedCharset(head, isAll) ?? header ?? 'utf-8';
  if (ascii && (isAll || header !== null)) return header ?? 'utf-8';
  const utf8 = ascii || isUtf8(whole);
  if (utf8 && (header === 'utf-8' || countCharacters(whole) >= MANY)) return 'utf-8';

  const [first, second] = declarations(header, head);
  if (first === undefined) return utf8 || isNearlyUtf8(whole) ? 'utf-8' : (guessCharset(head, isAll) ?? 'windows-1252');
  const fit = fitOf(first, head, isAll);
  // Any bytes are valid in some single-byte charset, so one needs more evidence against the first.
  const mayBeSingleByte = !isSingleByte(first) && fit.faults * 2 > fit.sequences;
  const isLikely = (charset: string): boolean => mayBeSingleByte || !isSingleByte(charset);
  // A page that contradicts itself is read as the declaration that fits.
  const isWrong = isRefuted(fit) || (fit.faults > 0 && fit.faults === fit.sequences);
  if (second !== undefined && isWrong && isLikely(second) && fits(second, head, isAll)) return second;
  if (!isRefuted(fit)) return first;
  return utf8 ? 'utf-8' : (guessCharset(head, isAll, isLikely) ?? first);
}

/** The most likely charset that the bytes do not refute; null when none is likely enough. */
function guessCharset(
  head: Uint8Array,
  isAll: boolean,
  isLikely: (charset: string) => boolean = () => true,
): string | null {
  for (const { name, confidence } of analyse(withoutTags(head))) {
    const charset = knownCharset(name);
    if (charset === null || charset === 'utf-8' || charset.startsWith('utf-16')) continue;
    if (confidence < (isMultiByte(charset) ? 40 : 20)) continue;
    if (isLikely(charset) && !isRefuted(fitOf(charset, head, isAll))) return charset;
  }
  return null;
}

/** Minimum multi-byte characters that cannot be coincidence in any charset. */
const MANY = 5;
/** Minimum sequences that refute a declaration. */
const FEW = 3;
/** The share of sequences that may be impossible in the page's charset: one of this many at most. */
const SHARE = 20;
const ESCAPE = 0x1b;

/** How a page reads in a charset. */
interface Fit {
  /** Non-ASCII characters and faults. */
  sequences: number;
  /** Bytes that are invalid, or characters that pages do not contain. */
  faults: number;
}

const isRefuted = ({ sequences, faults }: Fit): boolean => faults >= FEW && faults * SHARE > sequences;

function fits(charset: string, head: Uint8Array, isAll: boolean): boolean {
  const { sequences, faults } = fitOf(charset, head, isAll);
  return faults * SHARE <= sequences;
}

function fitOf(charset: string, head: Uint8Array, isAll: boolean): Fit {
  // Nearly any bytes are valid in a single-byte charset, but its texts are not valid UTF-8.
  if (isSingleByte(charset)) {
    const whole = isAll ? head : withoutCutCharacter(head);
    const characters = isUtf8(whole) ? countCharacters(whole) : 0;
    if (characters > 0) return { sequences: characters, faults: characters };
  }
  const decoder = createDecoder(charset);
  const text = decoder.decode(head) + (isAll ? decoder.end() : '');
  let sequences = 0;
  let faults = 0;
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i);
    if (unit < 0x80) continue;
    sequences++;
    if (unit === 0xfffd || (unit < 0xa0 && unit !== NEXT_LINE)) faults++;
  }
  return { sequences, faults };
}

/** The one C1 control that pages contain. */
const NEXT_LINE = 0x85;

const isSingleByte = (charset: string): boolean => charset !== 'utf-8' && !isMultiByte(charset);

function markOf(head: Uint8Array): string | null {
  if (head[0] === 0xef && head[1] === 0xbb && head[2] === 0xbf) return 'utf-8';
  if (head[0] === 0xfe && head[1] === 0xff) return 'utf-16be';
  if (head[0] === 0xff && head[1] === 0xfe) return 'utf-16le';
  return null;
}

/** All declared charsets, each once, the header first. */
function declarations(header: string | null, head: Uint8Array): string[] {
  return [...new Set([header, metaCharset(head)].filter((label) => label !== null))];
}

/** ISO-2022-JP is made of ASCII bytes and escapes, so it passes for ASCII. */
function escapedCharset(head: Uint8Array, isAll: boolean): string | null {
  const text = Buffer.from(head.buffer, head.byteOffset, head.length);
  const isJapanese = text.includes('\x1b$B') || text.includes('\x1b$@');
  return isJapanese && fits('iso-2022-jp', head, isAll) ? 'iso-2022-jp' : null;
}

/** Drops the bytes of a UTF-8 character that continues beyond the end. */
function withoutCutCharacter(bytes: Uint8Array): Uint8Array {
  for (let back = 1; back <= Math.min(3, bytes.length); back++) {
    const byte = bytes[bytes.length - back]!;
    if (byte < 0x80) break;
    if (byte < 0xc0) continue;
    const length = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : 2;
    return length > back ? bytes.subarray(0, bytes.length - back) : bytes;
  }
  return bytes;
}

/** The non-ASCII characters of valid UTF-8; counting ends at MANY. */
function countCharacters(bytes: Uint8Array): number {
  let found = 0;
  for (const byte of bytes) if (byte >= 0xc0 && ++found >= MANY) break;
  return found;
}

/**
 * True for UTF-8 beyond coincidence with a broken byte or two: a shop that cuts a text in the middle of a character
 * leaves them.
 */
function isNearlyUtf8(bytes: Uint8Array): boolean {
  const { sequences, faults } = fitOf('utf-8', bytes, true);
  return sequences - faults >= Math.max(MANY, faults * 10);
}

/** Names of tags and attributes are English on every page and would outweigh its own words. */
function withoutTags(bytes: Uint8Array): Uint8Array {
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('latin1');
  return Buffer.from(text.replace(/<[^<>]*>/g, ' '), 'latin1');
}

/** Maximum characters of a header or tag that is searched for a charset. */
const MAX_TAG = 1_000;

/** A site sends the same header with every page, and resolving a label costs more than comparing the header. */
let last: { contentType: string; charset: string | null } = { contentType: '', charset: null };

/** The charset parameter of a content-type header; null without a known one. */
function headerCharset(contentType: string): string | null {
  if (contentType !== last.contentType) last = { contentType, charset: readHeader(contentType) };
  return last.charset;
}

function readHeader(contentType: string): string | null {
  for (const parameter of contentType.slice(0, MAX_TAG).split(';').slice(1)) {
    const [name = '', value = ''] = parameter.split('=', 2);
    if (name.trim().toLowerCase() !== 'charset') continue;
    const charset = knownCharset(value);
    if (charset !== null) return charset;
  }
  return null;
}

/**
 * The declaration inside the page, readable in every encoding that contains ASCII; null without a known one. Two labels
 * mean another charset there, as in browsers.
 */
export function metaCharset(head: Uint8Array): string | null {
  const text = Buffer.from(head.buffer, head.byteOffset, head.length).toString('latin1');
  const label = xmlCharset(text) ?? tagCharset(text);
  if (label === 'x-user-defined') return 'windows-1252';
  // A page whose declaration could be read as ASCII is not UTF-16.
  return label?.startsWith('utf-16') ? 'utf-8' : label;
}

/** TextDecoder's name for a label: `shift_jis` for `x-sjis`, `windows-1252` for `latin1`. */
function knownCharset(label: string): string | null {
  try {
    return new TextDecoder(label.replace(/["']/g, '').trim()).encoding;
  } catch {
    return null;
  }
}

function xmlCharset(text: string): string | null {
  const start = /^\s*<\?xml\s/i.exec(text.slice(0, MAX_TAG));
  if (!start) return null;
  const declaration = textBefore(text.slice(0, MAX_TAG), '?>');
  return valueAfter(declaration, 'encoding');
}

/** The charset of the first `<meta>` that declares one, outside comments; scans each part of the text once. */
function tagCharset(text: string): string | null {
  const opening = /<(?:!--|meta[\s/])/gi;
  for (let found = opening.exec(text); found; found = opening.exec(text)) {
    const isComment = found[0] === '<!--';
    const end = text.indexOf(isComment ? '-->' : '>', found.index);
    if (end === -1) return null;
    const charset = isComment
      ? null
      : valueAfter(text.slice(found.index, Math.min(end, found.index + MAX_TAG)), 'charset');
    if (charset !== null) return charset;
    opening.lastIndex = end;
  }
  return null;
}

function valueAfter(text: string, name: string): string | null {
  const found = new RegExp(`[\\s"';]${name}\\s*=\\s*["']?\\s*([\\w:.-]+)`, 'i').exec(text.replace(/\s+/g, ' '));
  return found?.[1] === undefined ? null : knownCharset(found[1]);
}
