/** Every decoder can read the shop's encoded texts, and the products' texts really use the charset. */
import { describe, expect, it } from 'vitest';
import { CHARSETS, CHARSET_SHORT_NAMES, byteOrderMark, encodeText } from '../../support/shop/charsets.ts';
import { expectedProduct } from '../../support/shop/product.ts';

const decode = (bytes: Buffer, charset: string): string => new TextDecoder(charset).decode(bytes);

describe('encodeText', () => {
  it.each(Object.entries(CHARSET_SHORT_NAMES))(
    'encodes the texts of %s- products so that they can be decoded',
    (short, charset) => {
      const { title, brand, category, description } = expectedProduct(1, `${short}-1`);
      const text = [title, brand, category, description].join('\n');
      const bytes = encodeText(text, charset, () => '<lost>');
      expect(decode(bytes, charset)).toBe(text);
      expect(text).toMatch(/[^\p{ASCII}]/u);
      if (charset !== 'utf-8') expect(decode(bytes, 'utf-8')).not.toBe(text);
    },
  );

  it.each(CHARSETS.filter((charset) => !charset.startsWith('utf-')))(
    'writes a reference for characters that %s lacks',
    (charset) => {
      expect(decode(encodeText('a🎌b', charset), charset)).toBe('a&#127884;b');
    },
  );

  it('writes Shift_JIS whose second byte is a backslash', () => {
    expect([...encodeText('表ソ', 'shift_jis')]).toEqual([0x95, 0x5c, 0x83, 0x5c]);
  });

  it('ends ISO-2022-JP in ASCII', () => {
    expect(encodeText('日a', 'iso-2022-jp').toString('latin1')).toBe('\x1b$BF|\x1b(Ba');
    expect(encodeText('日', 'iso-2022-jp').toString('latin1')).toBe('\x1b$BF|\x1b(B');
  });
});

describe('byteOrderMark', () => {
  it.each([
    ['utf-8', 'efbbbf'],
    ['utf-16le', 'fffe'],
    ['utf-16be', 'feff'],
    ['shift_jis', ''],
  ] as const)('of %s', (charset, hex) => {
    expect(byteOrderMark(charset).toString('hex')).toBe(hex);
  });
});
