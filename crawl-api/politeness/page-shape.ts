/**
 * What a page is made of, as far as a ban page differs from a real one: is there text to read, does it consist of a script, does it send
 * the reader away. One pass over the beginning of the source, linear in its length; broken markup gives a shape too.
 */

export interface PageShape {
  /** Characters of text a reader would see, white space not counted. */
  textChars: number;
  /** What is written in <script> elements, up to SCRIPT_CHARS. */
  scripts: string;
  hasExternalScript: boolean;
  hasMetaRefresh: boolean;
  hasPasswordField: boolean;
  /** Elements other than html, head, body, script, noscript, style, title, link, meta and base. */
  otherElements: number;
}

/** Enough of the scripts to see what they do. */
const SCRIPT_CHARS = 20_000;
/** Read as text up to their own end tag. */
const RAW_ELEMENTS = new Set(['script', 'style', 'noscript', 'title', 'template', 'textarea']);
const FRAME_ELEMENTS = new Set([
  'html',
  'head',
  'body',
  'script',
  'noscript',
  'style',
  'title',
  'link',
  'meta',
  'base',
  'template',
]);

/** The shape of HTML source; text without any tag is all script or all text, which the caller knows best. */
export function readShape(source: string): PageShape {
  const shape: PageShape = {
    textChars: 0,
    scripts: '',
    hasExternalScript: false,
    hasMetaRefresh: false,
    hasPasswordField: false,
    otherElements: 0,
  };
  const lower = asciiLower(source);
  let at = 0;
  while (at < source.length) {
    const open = source.indexOf('<', at);
    const end = open === -1 ? source.length : open;
    shape.textChars += countInk(source, at, end);
    if (open === -1) break;
    if (source.startsWith('<!--', open)) {
      at = after(source, '-->', open + 4);
      continue;
    }
    const name = tagNameAt(lower, open + 1);
    if (name === '') {
      // `</p>`, `<!doctype>`, `<?xml?>`; or a `<` that is text.
      const next = source[open + 1] ?? '';
      at = next === '/' || next === '!' || next === '?' ? after(source, '>', open + 2) : open + 1;
      continue;
    }
    const close = after(source, '>', open);
    noteElement(shape, name, lower.slice(open, close));
    at = RAW_ELEMENTS.has(name) ? noteRawText(shape, name, source, lower, close) : close;
  }
  return shape;
}

function noteElement(shape: PageShape, name: string, tag: string): void {
  if (!FRAME_ELEMENTS.has(name)) shape.otherElements++;
  if (name === 'script' && tag.includes('src=')) shape.hasExternalScript = true;
  if (name === 'meta' && tag.includes('http-equiv') && tag.includes('refresh')) shape.hasMetaRefresh = true;
  if (name === 'input' && tag.includes('type') && tag.includes('password')) shape.hasPasswordField = true;
}

/** Keeps what a script says and skips the rest; returns where the end tag begins. */
function noteRawText(shape: PageShape, name: string, source: string, lower: string, from: number): number {
  const found = lower.indexOf(`</${name}`, from);
  const end = found === -1 ? source.length : found;
  const room = SCRIPT_CHARS - shape.scripts.length;
  if (name === 'script' && room > 0) shape.scripts += source.slice(from, Math.min(end, from + room)).trim();
  return end;
}

function after(source: string, text: string, from: number): number {
  const at = source.indexOf(text, from);
  return at === -1 ? source.length : at + text.length;
}

function tagNameAt(lower: string, at: number): string {
  let end = at;
  while (end < lower.length && end - at < 20 && isTagChar(lower.charCodeAt(end))) end++;
  return lower.slice(at, end);
}

const isTagChar = (code: number): boolean => (code >= 97 && code <= 122) || (code >= 48 && code <= 57) || code === 45;

function countInk(source: string, from: number, to: number): number {
  let count = 0;
  for (let i = from; i < to; i++) {
    const code = source.charCodeAt(i);
    if (code > 32 && code !== 0xa0 && code !== 0xfeff) count++;
  }
  return count;
}

/** Lower case without changing any length, so that places in both texts agree. */
export function asciiLower(text: string): string {
  return /[^\0-\x7f]/.test(text) ? text.replace(/[A-Z]+/g, (letters) => letters.toLowerCase()) : text.toLowerCase();
}
