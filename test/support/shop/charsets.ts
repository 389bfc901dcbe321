/** Encodes text in the charsets of old shops. Node can decode all of them, so each table is the inverted decoder. */

export const CHARSETS = [
  'shift_jis',
  'euc-jp',
  'iso-2022-jp',
  'gbk',
  'big5',
  'euc-kr',
  'windows-1251',
  'windows-1252',
  'koi8-r',
  'utf-16le',
  'utf-16be',
  'utf-8',
] as const;
export type Charset = (typeof CHARSETS)[number];

/** The names in prefixes of product IDs: `sjis-1`, `sjismeta-1` … (behaviours/charset.ts). */
export const CHARSET_SHORT_NAMES = {
  sjis: 'shift_jis',
  eucjp: 'euc-jp',
  jis: 'iso-2022-jp',
  gbk: 'gbk',
  big5: 'big5',
  euckr: 'euc-kr',
  cp1251: 'windows-1251',
  cp1252: 'windows-1252',
  koi8r: 'koi8-r',
  utf16le: 'utf-16le',
  utf16be: 'utf-16be',
  utf8: 'utf-8',
} as const satisfies Record<string, Charset>;

/** The replacement for a character that the charset lacks. */
export type Substitute = (character: string) => string;

/** The text in the charset; without a byte order mark. */
export function encodeText(text: string, charset: Charset, substitute: Substitute = htmlReference): Buffer {
  switch (charset) {
    case 'utf-8':
      return Buffer.from(text);
    case 'utf-16le':
      return Buffer.from(text, 'utf16le');
    case 'utf-16be':
      return Buffer.from(text, 'utf16le').swap16();
    case 'iso-2022-jp':
      return encodeIso2022Jp(text, substitute);
    default:
      return encodeByTable(text, tableOf(charset), substitute);
  }
}

/** U+FEFF in the charset; empty where the charset lacks it. */
export function byteOrderMark(charset: Charset): Buffer {
  return charset.startsWith('utf-') ? encodeText('\ufeff', charset) : Buffer.alloc(0);
}

function htmlReference(character: string): string {
  return `&#${character.codePointAt(0)};`;
}

type Table = Map<string, readonly number[]>;

function encodeByTable(text: string, table: Table, substitute: Substitute): Buffer {
  const bytes: number[] = [];
  for (const character of text) {
    const code = character.charCodeAt(0);
    if (code < 0x80) bytes.push(code);
    else {
      const known = table.get(character);
      if (known) bytes.push(...known);
      else bytes.push(...Buffer.from(substitute(character), 'latin1'));
    }
  }
  return Buffer.from(bytes);
}

/** Two-byte characters stand between two escapes, as EUC-JP bytes without their high bits. */
function encodeIso2022Jp(text: string, substitute: Substitute): Buffer {
  const table = tableOf('euc-jp');
  const bytes: number[] = [];
  let wide = false;
  const shift = (to: boolean): void => {
    if (to !== wide) bytes.push(0x1b, to ? 0x24 : 0x28, 0x42);
    wide = to;
  };
  for (const character of text) {
    const known = table.get(character);
    // Half-width kana (first byte 0x8e) are not part of ISO-2022-JP.
    if (known && known[0]! >= 0xa1) {
      shift(true);
      bytes.push(...known.map((byte) => byte & 0x7f));
    } else {
      shift(false);
      bytes.push(...Buffer.from(character.charCodeAt(0) < 0x80 ? character : substitute(character), 'latin1'));
    }
  }
  shift(false);
  return Buffer.from(bytes);
}

const tables = new Map<Charset, Table>();

function tableOf(charset: Charset): Table {
  let table = tables.get(charset);
  if (!table) tables.set(charset, (table = buildTable(charset)));
  return table;
}

function buildTable(charset: Charset): Table {
  const decoder = new TextDecoder(charset);
  const table: Table = new Map();
  const note = (character: string | undefined, bytes: number[]): void => {
    if (character === undefined || Array.from(character).length !== 1 || character === '\ufffd') return;
    // The first mapping is the standard one; later ones are vendor duplicates.
    if (character.charCodeAt(0) >= 0x80 && !table.has(character)) table.set(character, bytes);
  };
  for (let byte = 0x80; byte <= 0xff; byte++) note(decoder.decode(Uint8Array.of(byte)), [byte]);
  for (let lead = 0x81; lead <= 0xfe; lead++) {
    // Decodes all pairs of one lead byte at once, one per line: no trail byte is a line feed.
    const trails = Array.from({ length: 0xff - 0x40 }, (_, i) => 0x40 + i);
    const lines = decoder.decode(Uint8Array.from(trails.flatMap((trail) => [lead, trail, 0x0a]))).split('\n');
    for (const [index, trail] of trails.entries()) note(lines[index], [lead, trail]);
  }
  return table;
}
