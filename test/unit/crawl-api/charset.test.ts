import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { TextReader } from '../../../crawl-api/fetch/text-reader.ts';
import { metaCharset } from '../../../crawl-api/fetch/charset.ts';
import { createDecoder } from '../../../crawl-api/fetch/decoders.ts';
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
    [
      'windows-1252 for a meta element with x-user-defined',
      'text/html',
      join('<meta charset=x-user-defined>', Buffer.from([0x80, 0xe9])),
      '<meta charset=x-user-defined>€é',
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

  const quotation = Buffer.from('”');
  const latin1 = (text: string): Buffer => Buffer.from(text, 'latin1');

  it.each<[string, string, Buffer, string]>([
    [
      'one pasted UTF-8 quotation mark',
      'text/html',
      join('<meta charset=iso-8859-1>', latin1('<h1>Thé à la menthe '), quotation),
      'Thé à la menthe â€\u009d',
    ],
    [
      'and with three',
      'text/html; charset=iso-8859-1',
      join(latin1('<h1>Thé à la menthe '), quotation, quotation, quotation),
      'Thé à la menthe â€',
    ],
    ['one in a page with no other character', 'text/html; charset=iso-8859-1', join('<h1>Tea ', quotation), 'Tea â€'],
  ])('stays Latin-1 with %s', (_name, contentType, bytes, expected) => {
    expect(read(contentType, bytes)).toContain(expected);
  });

  it.each(['', 'text/html; charset=iso-8859-1', 'text/html; charset=windows-1251', 'text/html; charset=big5'])(
    'is UTF-8 when its sequences are, whatever %j declares',
    (contentType) => {
      expect(read(contentType, join('<h1>Café – crème brûlée</h1><p>déjà'))).toBe(
        '<h1>Café – crème brûlée</h1><p>déjà',
      );
    },
  );

  it('stays EUC-KR with a syllable that Node cannot decode, declared or not', () => {
    const { text, bytes } = CHARSET_SAMPLES.find(({ charset }) => charset === 'euc-kr')!;
    const page = join(bytes, '<h1>', Buffer.from([0x98, 0xde]), '</h1>');
    for (const contentType of ['text/html; charset=euc-kr', 'text/html; charset=ks_c_5601-1987', 'text/html'])
      expect(read(contentType, page)).toBe(`${text}<h1>샾</h1>`);
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

describe('a few wrong bytes', () => {
  // What shops paste into pages or cut off, between two elements so that the text beside it is whole.
  const wrong: [string, Buffer][] = [
    ['one byte', Buffer.from([0xff])],
    ['two bytes', Buffer.from([0x81, 0x20, 0xff])],
    ['half a character', Buffer.from([0xe3, 0x81])],
    ['a UTF-8 quotation mark', Buffer.from('”')],
    ['two UTF-8 letters', Buffer.from('é è')],
  ];

  it.each(wrong)('do not overrule a declaration: %s', (_name, bytes) => {
    for (const { charset, text, bytes: sample } of CHARSET_SAMPLES) {
      const page = join('<h1>', sample, '</h1><p>', bytes, '</p><h2>', sample, '</h2>');
      const heads: [string, string][] = [
        [`text/html; charset=${charset}`, ''],
        ['text/html', `<meta charset="${charset}">`],
        [`text/html; charset=${charset}`, `<meta charset="${charset}">`],
      ];
      for (const [contentType, before] of heads) {
        const read1 = read(contentType, join(before, page));
        expect(read1, charset).toContain(`<h1>${text}</h1>`);
        expect(read1, charset).toContain(`<h2>${text}</h2>`);
      }
    }
  });
});

// From the Encoding Standard's index; Chromium decodes each pair to the same character.
it.each<[string, string, string]>([
  [
    'big5',
    'A140 A145 A15A A1C3 A2CC A3E1 A4A4 C6A1 C6DE C7FC C879 F9D6 F9FE FEFE 8740 9D5A A040 FA40',
    '　‧╴￣十€中①〃И㇏碁￭秔䏰筑𨩚𠕇',
  ],
  [
    'euc-kr',
    'B0A1 C8FE A1A4 A2E6 A2E7 8141 817A 8FA1 9EF0 A041 B4B4 C641 C652 98B6 98DE 8C63 FDFE',
    '가힝·€®갂걕룪욒잸눼힍힣샄샾똠詰',
  ],
  ['shift_jis', '8140 815C 8160 817C FA40 EEFC', '　―～－ⅰ＂'],
  ['euc-jp', 'A1C0 A1C1 A1DD ADA1 8EB1 F9A1', '＼～－①ｱ纊'],
  ['gbk', 'A1A4 A2E3 80 FE50 A8BF', '·€€⺁ǹ'],
])("%s is the web's", (charset, pairs, expected) => {
  const bytes = Buffer.from(pairs.replaceAll(' ', ''), 'hex');
  expect(read(`text/html; charset=${charset}`, bytes)).toBe(expected);
});

it.each(['shift_jis', 'euc-jp', 'iso-2022-jp', 'gbk', 'gb18030', 'big5', 'euc-kr'])(
  'decodes %s to the same text, wherever it is cut',
  (charset) => {
    const byte = fc.oneof(fc.integer({ min: 0x80, max: 0xff }), fc.constantFrom(0x1b, 0x24, 0x28, 0x42, 0x30, 0x41));
    const decode = (pieces: number[][]): string => {
      const decoder = createDecoder(charset);
      return pieces.map((piece) => decoder.decode(Uint8Array.from(piece))).join('') + decoder.end();
    };
    fc.assert(
      fc.property(fc.array(fc.array(byte, { maxLength: 6 })), (pieces) => {
        expect(decode(pieces)).toBe(decode([pieces.flat()]));
      }),
      { numRuns: 40 },
    );
  },
);

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
