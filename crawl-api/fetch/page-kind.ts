/** Determines the kind of a page: by its content-type, and by its first characters where that is wrong or missing. */
import type { PageKind } from '../extract/page-extractor.ts';

/**
 * html, xml, json   as the header declares
 * text              some kind of text, or no header: the first characters decide
 * bytes             any bytes: a page only if it begins like one
 * other             no page, and of any length: a video, an archive, a PDF
 */
export type ContentClass = PageKind | 'text' | 'bytes' | 'other';

/** What a page is by its content-type and content-disposition headers. */
export function classifyContent(contentType: string, disposition: string): ContentClass {
  const type = contentType.split(/[;,]/, 1)[0]!.trim().toLowerCase();
  const declared = declaredKind(type);
  if (declared !== null) return declared;
  if (BYTES.has(type)) return /^\s*attachment/i.test(disposition) ? 'other' : 'bytes';
  return type === '' || !type.includes('/') || type.startsWith('text/') || SCRIPTS.has(type) ? 'text' : 'other';
}

/**
 * The kind of page that a media type names; null for any other. XHTML is HTML to the extractor, and SVG is an image.
 */
export function declaredKind(type: string): PageKind | null {
  if (type === 'text/html' || type === 'application/xhtml+xml') return 'html';
  if (type.startsWith('image/')) return null;
  if (type === 'application/xml' || type === 'text/xml' || type.endsWith('+xml')) return 'xml';
  return type === 'application/json' || type === 'text/json' || type.endsWith('+json') ? 'json' : null;
}

const BYTES = new Set(
  (
    'application/octet-stream binary/octet-stream application/unknown application/x-unknown unknown/unknown ' +
    'application/force-download */*'
  ).split(' '),
);

/** Servers older than JSON's own media type send JSON as a script. */
const SCRIPTS = new Set(['application/javascript', 'application/x-javascript', 'application/x-json']);

/** Number of bytes that decide whether a body is a page at all. */
export const SNIFFED_BYTES = 512;
/** Number of characters that decide the kind of page. */
export const SNIFFED_CHARS = 512;

/** File formats that are sent with the content-type of a page. */
const SIGNATURES: [name: string, at: number, bytes: string][] = [
  ['PDF', 0, '%PDF-'],
  ['PNG', 0, '\x89PNG'],
  ['JPEG', 0, '\xff\xd8\xff'],
  ['GIF', 0, 'GIF8'],
  ['RIFF (WebP, AVI or WAV)', 0, 'RIFF'],
  ['ZIP', 0, 'PK\x03\x04'],
  ['gzip', 0, '\x1f\x8b'],
  ['7z', 0, '7z\xbc\xaf'],
  ['RAR', 0, 'Rar!\x1a'],
  ['MP4', 4, 'ftyp'],
  ['WebM', 0, '\x1aE\xdf\xa3'],
  ['Ogg', 0, 'OggS'],
  ['MP3', 0, 'ID3'],
  ['FLV', 0, 'FLV\x01'],
  ['WOFF', 0, 'wOF'],
  ['WebAssembly', 0, '\0asm'],
];

/** The format of a binary body, by its first SNIFFED_BYTES; null for a possible page. */
export function findFileFormat(head: Uint8Array): string | null {
  // Text begins with a byte order mark, white space or one of `<{[`: the first byte decides for nearly every page.
  const first = head[0] ?? 0x20;
  if (first === 0x3c || first === 0x0a || first === 0x7b) return null;
  const text = Buffer.from(head.buffer, head.byteOffset, Math.min(head.length, 32)).toString('latin1');
  const signature = SIGNATURES.find(([, at, bytes]) => text.startsWith(bytes, at));
  return signature?.[0] ?? null;
}

/** The kind of page by its first characters; null when they do not show it. */
function sniffKind(start: string): PageKind | null {
  const text = start.trimStart().slice(0, SNIFFED_CHARS);
  if (text.startsWith('<')) return sniffMarkup(text);
  return /^(?:\{\s*(?:"|\}|$)|\[\s*(?:[[{"\]\d-]|$))/.test(text) ? 'json' : null;
}

/** An XML declaration means XML, unless `<html` or its doctype follows: that is XHTML, a page for browsers. */
function sniffMarkup(text: string): PageKind | null {
  if (/^<\?xml[\s?]/i.test(text)) return /<(?:!doctype\s+)?html[\s>/]/i.test(text) ? 'html' : 'xml';
  return /^<(?:!--|!doctype\s|[a-z])/i.test(text) ? 'html' : null;
}

/** The kind to read a body as; null when it is no page. */
export function decideKind(content: ContentClass, start: string): PageKind | null {
  if (content === 'other') return null;
  const seen = sniffKind(start);
  switch (content) {
    case 'html':
      return seen ?? 'html';
    case 'json':
      return seen ?? 'json';
    case 'xml':
      // Names such as <catalog> look like HTML; only an HTML doctype or `<html` proves it.
      return seen === 'html' && !/^\s*<(?:!doctype\s+html|html)[\s>]/i.test(start) ? 'xml' : (seen ?? 'xml');
    case 'text':
      return start.includes('\0') ? null : (seen ?? 'html');
    case 'bytes':
      return seen;
  }
}
