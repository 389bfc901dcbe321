import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { TextReader } from '../../../crawl-api/fetch/text-reader.ts';
import { metaCharset } from '../../../crawl-api/fetch/charset.ts';
import { CHARSET_SAMPLES } from './charset-samples.ts';

function read(contentType: string, bytes: Buffer, piece = 1_000_000): string {
  let text = '';
  const reader = new TextReader(contentType, (more) => (text += more));
  for (let at = 0; at < bytes.length; at += piece) reader.push(bytes.subarray(at, at + piece));
  reader.end();
  return text;
}

const join = (...parts: (string | Buffer)[]): Buffer => Buffer.concat(parts.map((part) => Buffer.from(part as string)));
const sjis = Buffer.from([0x93, 0xfa, 0x96, 0x7b]);
const euc = Buffer.from([0xc6, 0xfc, 0xcb, 0xdc]);

describe('the charset of a page', () => {
  it.each<[string, string, Buffer, string]>([
    ['UTF-8 by default', 'text/html', join('<p>日本'), '<p>日本'],
    ['the header', 'text/html; charset=Shift_JIS', join('<p>', sjis), '<p>日本'],
    ['the header in quotes', 'text/html; x=y; charset="EUC-JP"', join('<p>', euc), '<p>日本'],
    ['the header with another space', 'text/html; Charset = euc-jp ;x', join('<p>', euc), '<p>日本'],
    [
      'meta charset with a line end in it',
      '',
      join('<meta charset="\nshift_jis\n"><p>', sjis),
      '<meta charset="\nshift_jis\n"><p>日本',
    ],
    ['meta charset', '', join('<meta charset="shift_jis"><p>', sjis), '<meta charset="shift_jis"><p>日本'],
    [
      'meta http-equiv',
      'text/html',
      join('<meta http-equiv=Content-Type content="text/html; charset=euc-jp"><p>', euc),
      '<meta http-equiv=Content-Type content="text/html; charset=euc-jp"><p>日本',
    ],
    [
      'the XML declaration',
      'text/xml',
      join('<?xml version="1.0" encoding="Shift_JIS"?><p>', sjis),
      '<?xml version="1.0" encoding="Shift_JIS"?><p>日本',
    ],
    [
      'not a meta in a comment',
      'text/html',
      join('<!-- <meta charset=shift_jis> --><p>日本'),
      '<!-- <meta charset=shift_jis> --><p>日本',
    ],
    [
      'the header before meta',
      'text/html; charset=utf-8',
      join('<meta charset=shift_jis>日本'),
      '<meta charset=shift_jis>日本',
    ],
    ['a BOM before the header', 'text/html; charset=shift_jis', join('\uFEFF日本'), '日本'],
    ['UTF-16 by its BOM', 'text/html', Buffer.from('\uFEFF日本', 'utf16le'), '日本'],
    ['UTF-16 by the header', 'text/html; charset=utf-16le', Buffer.from('<p>日本', 'utf16le'), '<p>日本'],
    ['an unknown label is ignored', 'text/html; charset=klingon', join('日本'), '日本'],
    [
      'UTF-8 for a meta element with UTF-16',
      'text/html',
      join('<meta charset=utf-16>日本'),
      '<meta charset=utf-16>日本',
    ],
    ['iso-8859-1 means windows-1252', 'text/html; charset=iso-8859-1', Buffer.from([0x80, 0x92, 0xe9]), '€’é'],
    ['a broken byte', 'text/html; charset=utf-8', Buffer.from([0x61, 0xff, 0x62]), 'a\uFFFDb'],
    ['a byte of an undeclared page', 'text/html', join('Caf', Buffer.from([0xe9])), 'Café'],
    ['nothing', 'text/html', Buffer.alloc(0), ''],
  ])('%s', (_name, contentType, bytes, expected) => {
    expect(read(contentType, bytes)).toBe(expected);
    expect(read(contentType, bytes, 1)).toBe(expected);
  });

  describe.each(CHARSET_SAMPLES)('$charset', ({ charset, text, bytes }) => {
    const body = join('<h1 class="title">', bytes, '</h1>');
    const expected = `<h1 class="title">${text}</h1>`;

    it.each([
      ['by header', `text/html; charset=${charset}`, ''],
      ['by meta', 'text/html', `<meta charset="${charset}">`],
      ['by a late meta', 'text/html', `${'<script></script>'.repeat(500)}<meta charset=${charset}>`],
      ['by meta, despite a header with UTF-8', 'text/html; charset=utf-8', `<meta charset=${charset}>`],
    ])('%s', (_how, contentType, before) => {
      expect(read(contentType, join(before, body))).toBe(before + expected);
      expect(read(contentType, join(before, body), 7)).toBe(before + expected);
    });

    it('in a page longer than the detection window, with characters split across pieces', () => {
      const copies = Math.ceil(100_000 / body.length);
      const long = Buffer.concat(Array<Buffer>(copies).fill(body));
      expect(read(`text/html; charset=${charset}`, long, 4_093)).toBe(expected.repeat(copies));
    });
  });

  // Neighbours such as windows-1250 and -1252 differ in few letters, so only distinguishable charsets are tested.
  const detectable = CHARSET_SAMPLES.filter(
    ({ charset }) => !['windows-1253', 'windows-1254', 'windows-1256', 'gb18030'].includes(charset),
  );

  it.each(detectable)('$charset is recognised by its letters where the declaration is missing or wrong', (sample) => {
    const body = join('<html><body><p class="price">', sample.bytes, '</p></body></html>');
    for (const contentType of ['text/html', 'text/html; charset=utf-8', 'text/html; charset=klingon'])
      expect(read(contentType, body)).toContain(sample.text);
  });

  it('is UTF-8 despite a latin1 header, when it can be nothing else', () => {
    expect(read('text/html; charset=iso-8859-1', join('<p>日本のお茶'))).toBe('<p>日本のお茶');
    expect(read('text/html; charset=iso-8859-1', join('<meta charset=utf-8>é'))).toContain('é');
  });

  it('stays UTF-8 when the shop has truncated a text within a character', () => {
    const text = '<p>静岡のお茶はとてもおいしい';
    expect(read('text/html; charset=utf-8', join(text, Buffer.from([0xe6, 0x97]), '<p>次'))).toBe(`${text}\uFFFD<p>次`);
    expect(read('text/html', join(text, Buffer.from([0xe6, 0x97])))).toBe(`${text}\uFFFD`);
  });

  it.each([65_534, 65_535, 65_536, 65_537])(
    'is UTF-8 when a character lies across byte %i, the end of the detection window',
    (at) => {
      const text = `${' '.repeat(at - 1)}茶${'é'.repeat(10)}`;
      expect(read('text/html', join(text))).toBe(text);
    },
  );
});

it('decodes the rest of a UTF-8 page to the same text as TextDecoder, wherever it is cut', () => {
  const head = 'x'.repeat(65_536);
  // Bytes at the limits of valid UTF-8, among others.
  const limits = [0x80, 0x8f, 0x90, 0xa0, 0xbf, 0xbb, 0xc0, 0xc2, 0xdf, 0xe0, 0xed, 0xef, 0xf0, 0xf4, 0xf5];
  const character = fc.string({ unit: 'binary', minLength: 1, maxLength: 1 }).map((text) => [...Buffer.from(text)]);
  const bytes = fc.oneof(fc.constantFrom(...limits.map((one) => [one])), fc.nat(255).map(Array.of<number>), character);
  fc.assert(
    fc.property(fc.array(fc.array(bytes, { maxLength: 6 })), (pieces) => {
      let text = '';
      const reader = new TextReader('', (more) => (text += more));
      reader.push(Buffer.from(head));
      for (const piece of pieces) reader.push(Uint8Array.from(piece.flat()));
      reader.end();
      expect(text.slice(head.length)).toBe(
        new TextDecoder('utf-8', { ignoreBOM: true }).decode(Uint8Array.from(pieces.flat(2))),
      );
    }),
    { numRuns: 40 },
  );
});

describe('the search for a declaration', () => {
  it.each(['<', '<!--', '<meta ', '<meta charset', '<meta charset=', '<!-- --><meta', '<?xml ', ' '])(
    'takes linear time over repeated %j',
    (piece) => {
      const bytes = Buffer.alloc(65_536, piece);
      // CPU time, which is independent of other load.
      const start = process.threadCpuUsage();
      expect(metaCharset(bytes)).toBeNull();
      const { user, system } = process.threadCpuUsage(start);
      expect(user + system).toBeLessThan(200_000);
    },
  );
});
