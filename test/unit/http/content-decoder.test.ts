/** Decoding content encodings, whatever the bytes and the pieces they arrive in. */
import { buffer } from 'node:stream/consumers';
import zlib from 'node:zlib';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createContentDecoder, decoded, isBinary } from '../../../shared/adapters/http/content-decoder.ts';

async function* pieces(bytes: Uint8Array, size: number): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}

const bytes = fc.uint8Array({ maxLength: 2_000 });
const size = fc.integer({ min: 1, max: 500 });

describe('gzip', () => {
  it('is decoded up to its end, in any pieces, of any number of members, and with anything behind them', async () => {
    const junk = bytes.filter(([first]) => first !== 0x1f);
    await fc.assert(
      fc.asyncProperty(fc.array(bytes, { minLength: 1, maxLength: 4 }), junk, size, async (texts, behind, length) => {
        const body = Buffer.concat([...texts.map((text) => zlib.gzipSync(text)), behind]);
        expect(await buffer(decoded(pieces(body, length), 'gzip'))).toEqual(Buffer.concat(texts));
      }),
      { numRuns: 50 },
    );
  });

  it('is cut off where its compressed data is, and nowhere else', async () => {
    const text = Buffer.from('Fine stoneware from a small kiln by the sea. '.repeat(20));
    const body = zlib.gzipSync(text);
    for (let end = 11; end <= body.length; end++) {
      const reading = buffer(decoded(pieces(body.subarray(0, end), 7), 'gzip'));
      if (end >= body.length - 8) expect(await reading).toEqual(text);
      else await expect(reading).rejects.toThrow('unexpected end of file');
    }
  });
});

describe('any bytes', () => {
  it('end once, decoded or as a fault, under any encoding', async () => {
    const encoding = fc.constantFrom('gzip', 'deflate', 'br', 'zstd', 'gzip, deflate', 'lzma');
    const start = fc.constantFrom(
      [],
      [0x1f, 0x8b, 8],
      [0x1f, 0x8b, 8, 0x1e, 0, 0, 0, 0, 0, 3],
      [0x78, 0x9c],
      [0x28, 0xb5, 0x2f, 0xfd],
    );
    await fc.assert(
      fc.asyncProperty(encoding, start, bytes, size, async (name, first, rest, length) => {
        const ends: string[] = [];
        const { promise, resolve } = Promise.withResolvers<void>();
        const end = (how: string) => (): void => {
          ends.push(how);
          resolve();
        };
        const decoder = createContentDecoder(name, {
          onBytes: () => true,
          onDrain: () => undefined,
          onEnd: end('end'),
          onError: end('error'),
        });
        for await (const piece of pieces(Buffer.concat([Buffer.from(first), rest]), length)) decoder.push(piece);
        decoder.end();
        await promise;
        await new Promise(setImmediate);
        expect(ends).toHaveLength(1);
        decoder.destroy();
      }),
      { numRuns: 150 },
    );
  });

  it('are text unless they have a byte that no text has', () => {
    for (const text of ['', '<p>\t\r\n\f\x1b caf\xe9', '\xff\xfeh\0i\0', ' '.repeat(512) + '\0'])
      expect(isBinary(Buffer.from(text, 'latin1'))).toBe(false);
    for (const binary of ['a\0', '\x01', '\x0b', '\x1f\x8b'])
      expect(isBinary(Buffer.from(binary, 'latin1'))).toBe(true);
  });
});
