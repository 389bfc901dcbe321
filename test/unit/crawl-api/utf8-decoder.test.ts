/** Any bytes, split anywhere, decode to the same text as with TextDecoder. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Utf8Decoder } from '../../../crawl-api/fetch/text-reader.ts';

/** Bytes at the limits of valid UTF-8, mixed with bytes of all kinds. */
const byte = fc.oneof(
  fc.constantFrom(0x80, 0x8f, 0x90, 0x9f, 0xa0, 0xbf, 0xbb, 0xc0, 0xc1, 0xc2, 0xdf, 0xe0, 0xed, 0xef, 0xf0, 0xf4, 0xf5),
  fc.nat(255),
);
const character = fc.string({ unit: 'binary', minLength: 1, maxLength: 2 }).map((text) => [...Buffer.from(text)]);
const piece = fc
  .array(
    fc.oneof(
      byte.map((one) => [one]),
      character,
    ),
    { maxLength: 6 },
  )
  .map((parts) => parts.flat());
const mark = fc.constantFrom([], [0xef, 0xbb, 0xbf], [0xef], [0xef, 0xbb]);

describe('UTF-8 in pieces', () => {
  it('decodes to the same text as TextDecoder', () => {
    fc.assert(
      fc.property(mark, fc.array(piece), (start, pieces) => {
        const all = [start, ...pieces].map((bytes) => Uint8Array.from(bytes));
        const reference = new TextDecoder();
        const expected = reference.decode(Buffer.concat(all));
        const decoder = new Utf8Decoder();
        let text = '';
        for (const bytes of all) {
          text += decoder.decode(bytes);
          // The decoded text does not depend on the sender's buffer.
          bytes.fill(0x41);
        }
        expect(text + decoder.end()).toBe(expected);
      }),
      { numRuns: 5_000 },
    );
  });

  it('emits a character once its last byte has arrived', () => {
    const decoder = new Utf8Decoder();
    const bytes = Buffer.from('a日');
    expect([...bytes].map((one) => decoder.decode(Uint8Array.of(one)))).toEqual(['a', '', '', '日']);
    expect(decoder.end()).toBe('');
  });
});
