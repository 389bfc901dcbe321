/**
 * Determines the encoding of a page's bytes, by the first that applies:
 *
 *   1. byte order mark
 *   2. UTF-8, when the bytes are valid UTF-8 beyond coincidence, whatever is declared
 *   3. the charset of the content-type header, or of `<meta>` or the XML declaration, if the bytes agree
 *   4. a guess by letter frequency, when the declaration is wrong or missing
 *   5. the declaration after all, else windows-1252 as in browsers
 *
 * Labels that TextDecoder does not know count as none.
 */
import { isAscii, isUtf8 } from 'node:buffer';
import { TextDecoder } from 'node:util';
import { analyse } from 'chardet';

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
  if (utf8 && (header === 'utf-8' || hasManyCharacters(whole))) return 'utf-8';
  if (!utf8 && header !== null && isMultiByte(header) && decodesCleanly(header, head, isAll)) return header;

  const declared = declarations(header, head);
  const first = declared[0];
  if (utf8) return declared.includes('utf-8') ? 'utf-8' : (first ?? 'utf-8');
  const { wide, broken } = countCharacters(whole);
  // A shop that cuts a text in the middle of a character leaves a broken byte or two in a page that is UTF-8
  // nevertheless.
  if (wide >= MANY && wide >= broken * 10) return 'utf-8';
  // A server that declares latin1 for everything is less reliable than a page that declares a multi-byte charset.
  const fitting = [...declared.filter(isMultiByte), ...declared].find(
    (label) => label !== 'utf-8' && decodesCleanly(label, head, isAll),
  );
  if (fitting !== undefined) return fitting;
  const guessed = first === undefined || broken >= FEW ? guessCharset(head, isAll) : null;
  return guessed ?? first ?? 'windows-1252';
}

/** The most likely charset that decodes the bytes without errors; null when none is likely enough. */
function guessCharset(head: Uint8Array, isAll: boolean): string | null {
  for (const { name, confidence } of analyse(withoutTags(head))) {
    const charset = knownCharset(name);
    if (charset === null || charset === 'utf-8' || charset.startsWith('utf-16')) continue;
    if (confidence < (isMultiByte(charset) ? 40 : 20)) continue;
    if (decodesCleanly(charset, head, isAll)) return charset;
  }
  return null;
}

/** Minimum multi-byte characters that cannot be coincidence. */
const MANY = 5;
/** Maximum broken bytes that do not refute a declaration. */
const FEW = 3;
const ESCAPE = 0x1b;

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
  return isJapanese && decodesCleanly('iso-2022-jp', head, isAll) ? 'iso-2022-jp' : null;
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

/** True for valid UTF-8 with so many non-ASCII characters that it is no coincidence. */
function hasManyCharacters(bytes: Uint8Array): boolean {
  let found = 0;
  for (let i = 0; i < bytes.length && found < MANY; i++) if (bytes[i]! >= 0xc0) found++;
  return found >= MANY;
}

/** Counts non-ASCII characters, and invalid bytes, when read as UTF-8. */
function countCharacters(bytes: Uint8Array): { wide: number; broken: number } {
  const text = new TextDecoder().decode(bytes);
  let wide = 0;
  let broken = 0;
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i);
    if (unit === 0xfffd) broken++;
    else if (unit >= 0x80) wide++;
  }
  return { wide, broken };
}

/** True when the bytes are valid and decode to no control character that pages do not contain. */
function decodesCleanly(charset: string, bytes: Uint8Array, isAll: boolean): boolean {
  try {
    const text = new TextDecoder(charset, { fatal: true }).decode(bytes, { stream: !isAll });
    return !/[\u0080-\u0084\u0086-\u009f]/.test(text);
  } catch {
    return false;
  }
}

const MULTI_BYTE = ['shift_jis', 'euc-jp', 'iso-2022-jp', 'gbk', 'gb18030', 'big5', 'euc-kr'];

const isMultiByte = (charset: string): boolean => MULTI_BYTE.includes(charset);

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
    const [name, value = ''] = parameter.split('=', 2);
    if (name!.trim().toLowerCase() !== 'charset') continue;
    const charset = knownCharset(value);
    if (charset !== null) return charset;
  }
  return null;
}

/** The declaration inside the page, readable in every encoding that contains ASCII; null without a known one. */
export function metaCharset(head: Uint8Array): string | null {
  const text = Buffer.from(head.buffer, head.byteOffset, head.length).toString('latin1');
  const label = xmlCharset(text) ?? tagCharset(text);
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
  const declaration = text.slice(0, MAX_TAG).split('?>', 1)[0]!;
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
  return found ? knownCharset(found[1]!) : null;
}
