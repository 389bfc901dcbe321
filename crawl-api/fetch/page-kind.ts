/** What kind of page a reply is: by its content-type, and by how it begins where that is wrong or says nothing. */
import type { PageKind } from '../extract/page-extractor.ts';

/**
 * html, xml, json   what the header says
 * text              some kind of text, or nothing said: the first characters tell
 * bytes             any bytes: only what begins like a page is one
 * other             no page, and of any length: a video, an archive, a PDF
 */
export type ContentClass = PageKind | 'text' | 'bytes' | 'other';

/** By the content-type and content-disposition headers. */
export function classifyContent(contentType: string, disposition: string): ContentClass {
  const type = contentType.split(/[;,]/, 1)[0]!.trim().toLowerCase();
  if (type === 'text/html' || type === 'application/xhtml+xml') return 'html';
  if (type.startsWith('image/')) return 'other';
  if (type === 'application/xml' || type === 'text/xml' || type.endsWith('+xml')) return 'xml';
  if (type === 'application/json' || type === 'text/json' || type.endsWith('+json')) return 'json';
  if (BYTES.has(type)) return /^\s*attachment/i.test(disposition) ? 'other' : 'bytes';
  return type === '' || !type.includes('/') || type.startsWith('text/') || SCRIPTS.has(type) ? 'text' : 'other';
}

const BYTES = new Set([
  'application/octet-stream',
  'binary/octet-stream',
  'application/unknown',
  'application/x-unknown',
  'unknown/unknown',
  'application/force-download',
  '*/*',
]);

/** JSON is sent as a script by those who wrote their server before it had a type of its own. */
const SCRIPTS = new Set(['application/javascript', 'application/x-javascript', 'application/x-json']);

/** Bytes that decide whether a body is a page at all. */
export const SNIFFED_BYTES = 512;
/** Characters that decide which kind of page it is. */
export const SNIFFED_CHARS = 512;

/** The file formats that come under the type of a page. */
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

/** The format of a body that is no text, by its first SNIFFED_BYTES; null for what may be a page. */
export function findFileFormat(head: Uint8Array): string | null {
  // Text begins with a mark, white space or one of `<{[`: the first byte answers for nearly every page.
  const first = head[0] ?? 0x20;
  if (first === 0x3c || first === 0x0a || first === 0x7b) return null;
  const text = Buffer.from(head.buffer, head.byteOffset, Math.min(head.length, 32)).toString('latin1');
  const signature = SIGNATURES.find(([, at, bytes]) => text.startsWith(bytes, at));
  return signature?.[0] ?? null;
}

/** The kind of page that the first characters show; null when they show none. */
export function sniffKind(start: string): PageKind | null {
  const text = start.trimStart().slice(0, SNIFFED_CHARS);
  if (text.startsWith('<')) return sniffMarkup(text);
  return /^(?:\{\s*(?:"|\}|$)|\[\s*(?:[[{"\]\d-]|$))/.test(text) ? 'json' : null;
}

/** XML says so; with `<html` or its doctype after that it is a page for browsers. */
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
      // Names such as <catalog> look like HTML; only its own signs prove it.
      return seen === 'html' && !/^\s*<(?:!doctype\s+html|html)[\s>]/i.test(start) ? 'xml' : (seen ?? 'xml');
    case 'text':
      return start.includes('\0') ? null : (seen ?? 'html');
    case 'bytes':
      return seen;
  }
}
