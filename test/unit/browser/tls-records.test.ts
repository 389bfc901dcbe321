import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { DataDetector } from '../../../crawl-api/fetch/browser/open-tunnel.ts';

const record = (type: number, length: number): number[] => [
  type,
  3,
  3,
  length >> 8,
  length & 255,
  ...Array(length).fill(0x17),
];
const HELLO = record(22, 300);
const CIPHER = record(20, 1);
const DATA = record(23, 40);

describe('the offset of the first application data in a connection', () => {
  it.each([
    ['a handshake', [...HELLO, ...CIPHER], false],
    ['a handshake and data', [...HELLO, ...CIPHER, ...DATA], true],
    ['an empty handshake record', [...record(22, 0), ...DATA], true],
    ['plain HTTP', [...Buffer.from('GET / HTTP/1.1\r\n')], true],
    ['nothing', [], false],
  ])('%s', (_, bytes, expected) => {
    expect(new DataDetector().scan(Uint8Array.from(bytes))).toBe(expected);
  });

  it('is the same however the bytes are split', () => {
    const bytes = [...HELLO, ...CIPHER, ...DATA];
    const dataAt = HELLO.length + CIPHER.length + 4;
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 1, max: bytes.length - 1 }), { maxLength: 12 }), (cuts) => {
        const detector = new DataDetector();
        const edges = [0, ...new Set(cuts), bytes.length].sort((a, b) => a - b);
        for (let i = 1; i < edges.length; i++) {
          const found = detector.scan(Uint8Array.from(bytes.slice(edges[i - 1], edges[i])));
          // The header of the data record ends in exactly one of the pieces.
          expect(found).toBe(edges[i - 1]! <= dataAt && dataAt < edges[i]!);
        }
      }),
    );
  });
});
