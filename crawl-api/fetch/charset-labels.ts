/** The charset that a page declares: in its content-type header, its XML declaration or a `<meta>`. */
import { TextDecoder } from 'node:util';

/** Maximum characters of a header or tag that is searched for a charset. */
const MAX_TAG = 1_000;

/** A site sends the same header with every page, and resolving a label costs more than comparing the header. */
let last: { contentType: string; charset: string | null } = { contentType: '', charset: null };

/** The charset parameter of a content-type header; null without a known one. */
export function headerCharset(contentType: string): string | null {
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
export function knownCharset(label: string): string | null {
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

/** The known charset in `name = value`. */
function valueAfter(text: string, name: string): string | null {
  const found = new RegExp(`[\\s"';]${name}\\s*=\\s*["']?\\s*([\\w:.-]+)`, 'i').exec(text.replace(/\s+/g, ' '));
  return found ? knownCharset(found[1]!) : null;
}
