/** The charset that a page declares: in its content-type header, its XML declaration or a `<meta>`. */
import { TextDecoder } from 'node:util';

/** No header or tag with a charset is longer. */
const MAX_TAG = 1_000;

/** A site sends the same header with every page, and looking a label up costs more than comparing the header. */
let last: { contentType: string; charset: string | null } = { contentType: '', charset: null };

/** The charset parameter of a content-type header; null without one that is known. */
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

/** The declaration inside the page, which is readable in every encoding that contains ASCII; null without one that is known. */
export function metaCharset(head: Uint8Array): string | null {
  const text = Buffer.from(head.buffer, head.byteOffset, head.length).toString('latin1');
  const label = xmlCharset(text) ?? tagCharset(text);
  // A page whose declaration could be read as ASCII is not UTF-16.
  return label?.startsWith('utf-16') ? 'utf-8' : label;
}

/** The name that TextDecoder has for a label: `shift_jis` for `x-sjis`, `windows-1252` for `latin1`. */
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

/** The first `<meta>` that names a charset, outside comments; each piece of the text is looked at once. */
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
