import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { CHECKSUMS, startChecksum } from '../../../sandbox/s3/checksums.ts';
import { decodeAwsChunked } from '../../../sandbox/s3/receive-body.ts';
import { compareKeys, keyToPath } from '../../../sandbox/s3/key-path.ts';
import { listKeys } from '../../../sandbox/s3/list-actions.ts';
import { readRange } from '../../../sandbox/s3/object-actions.ts';
import { checkCaller } from '../../../sandbox/server/s3-endpoint.ts';

const keys = fc.string({ unit: 'binary', minLength: 1, maxLength: 300 }).filter((key) => key.isWellFormed());

describe('file names of keys', () => {
  it('are safe for any key: plain characters, no parent folder, no overlong component', () => {
    fc.assert(
      fc.property(fc.oneof(keys, fc.constantFrom('..', '.', '../x', '/', '//', 'a/../../b', '\0')), (key) => {
        for (const piece of keyToPath(key).split('/')) {
          expect(piece).toMatch(/^[A-Za-z0-9_%@-][A-Za-z0-9._%-]*\+?$/);
          expect(piece.length).toBeLessThanOrEqual(255);
        }
      }),
    );
  });

  it('differ for different keys, and no file occupies the path of a folder of another key', () => {
    fc.assert(
      fc.property(keys, keys, (a, b) => {
        fc.pre(a !== b);
        expect(keyToPath(a)).not.toBe(keyToPath(b));
        expect(keyToPath(a).startsWith(`${keyToPath(b)}/`)).toBe(false);
      }),
    );
    const long = 'x'.repeat(200);
    expect(keyToPath(`${long}y`).startsWith(`${keyToPath(long)}/`)).toBe(false);
  });
});

describe('listings', () => {
  const small = fc.array(fc.string({ unit: fc.constantFrom('a', 'b', '/'), minLength: 1, maxLength: 5 }), {
    maxLength: 20,
  });

  it('are the same for any page size', () => {
    fc.assert(
      fc.property(
        small,
        fc.constantFrom('', 'a', 'a/', '/'),
        fc.constantFrom('', '/'),
        fc.integer({ min: 1, max: 5 }),
        (some, prefix, delimiter, maxKeys) => {
          const all = [...new Set(some)].sort(compareKeys);
          const whole = listKeys(all, { prefix, delimiter, after: '', maxKeys: 1_000 });
          const paged = { keys: [] as string[], commonPrefixes: [] as string[] };
          let after: string | null = '';
          while (after !== null) {
            const page = listKeys(all, { prefix, delimiter, after, maxKeys });
            expect(page.keys.length + page.commonPrefixes.length).toBeLessThanOrEqual(maxKeys);
            paged.keys.push(...page.keys);
            paged.commonPrefixes.push(...page.commonPrefixes);
            after = page.next;
          }
          expect(paged).toEqual({ keys: whole.keys, commonPrefixes: whole.commonPrefixes });
          expect(whole.keys).toEqual(
            all.filter((k) => k.startsWith(prefix) && !(delimiter && k.slice(prefix.length).includes('/'))),
          );
        },
      ),
    );
  });

  it('of no keys at all are not truncated', () => {
    expect(listKeys(['a'], { prefix: '', delimiter: '', after: '', maxKeys: 0 })).toEqual({
      keys: [],
      commonPrefixes: [],
      next: null,
    });
  });
});

describe('checksums', () => {
  // The CRC catalogue's check values for "123456789", and the examples for "abc" in the hash standards.
  it.each([
    ['crc32', '123456789', 'cbf43926'],
    ['crc32c', '123456789', 'e3069283'],
    ['crc64nvme', '123456789', 'ae8b14860a799888'],
    ['sha1', 'abc', 'a9993e364706816aba3e25717850c26c9cd0d89d'],
    ['sha256', 'abc', 'ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad'],
  ] as const)('%s of %s', (name, text, hex) => {
    const checksum = startChecksum(name);
    for (const char of text) checksum.update(Buffer.from(char));
    expect(Buffer.from(checksum.digest(), 'base64').toString('hex')).toBe(hex);
  });

  it('do not depend on how the data is split', () => {
    fc.assert(
      fc.property(fc.constantFrom(...CHECKSUMS), fc.uint8Array({ maxLength: 200 }), fc.nat(200), (name, data, cut) => {
        const [whole, parts] = [startChecksum(name), startChecksum(name)];
        whole.update(data);
        parts.update(data.subarray(0, cut));
        parts.update(data.subarray(cut));
        expect(parts.digest()).toBe(whole.digest());
      }),
    );
  });
});

describe('aws-chunked bodies', () => {
  async function decode(text: string, cut = text.length): Promise<{ data: string; trailers: Map<string, string> }> {
    const trailers = new Map<string, string>();
    const pieces = [text.slice(0, cut), text.slice(cut)].filter((p) => p !== '').map((p) => Buffer.from(p));
    let data = '';
    for await (const chunk of decodeAwsChunked(
      (async function* () {
        yield* pieces;
      })(),
      trailers,
    ))
      data += chunk.toString();
    return { data, trailers };
  }
  const BODY = '5;chunk-signature=ab\r\nhello\r\n1\r\n!\r\n0\r\nX-Amz-Checksum-Crc32: abc=\r\n\r\n';

  it('give their data and trailers wherever the network splits them', async () => {
    for (let cut = 1; cut <= BODY.length; cut++) {
      const { data, trailers } = await decode(BODY, cut);
      expect([data, trailers.get('x-amz-checksum-crc32')]).toEqual(['hello!', 'abc=']);
    }
  });

  it.each([
    ['end too early', '5\r\nhel', 'IncompleteBody'],
    ['have no last chunk', '5\r\nhello\r\n', 'IncompleteBody'],
    ['have an invalid size', 'xyz\r\n', 'InvalidRequest'],
    ['have more data than their size', '2\r\nhello\r\n', 'InvalidRequest'],
  ])('are refused when they %s', async (_what, text, code) => {
    await expect(decode(text)).rejects.toMatchObject({ code });
  });
});

it.each([
  ['bytes=0-3', { start: 0, end: 3 }],
  ['bytes=5-', { start: 5, end: 9 }],
  ['bytes=-3', { start: 7, end: 9 }],
  ['bytes=-30', { start: 0, end: 9 }],
  ['bytes=5-100', { start: 5, end: 9 }],
  ['bytes=5-2', null],
  ['bytes=0-1,3-4', null],
  ['lines=1-2', null],
  [undefined, null],
])('the range %s of ten bytes is %j', (text, expected) => {
  expect(readRange(text, 10)).toEqual(expected);
});

describe('presigned requests', () => {
  const query = (parameters: Record<string, string>) => new URLSearchParams(parameters);
  const v4 = (more: Record<string, string>) =>
    query({
      'X-Amz-Signature': 's',
      'X-Amz-Credential': 'c',
      'X-Amz-Date': '20260101T000000Z',
      'X-Amz-Expires': '60',
      ...more,
    });
  const START = Date.UTC(2026, 0, 1);

  it('are valid until they expire', () => {
    expect(() => checkCaller(v4({}), undefined, START + 60_000)).not.toThrow();
    expect(() => checkCaller(v4({}), undefined, START + 60_001)).toThrow('Request has expired');
    const old = query({ Signature: 's', Expires: String(START / 1_000) });
    expect(() => checkCaller(old, undefined, START)).not.toThrow();
    expect(() => checkCaller(old, undefined, START + 1)).toThrow('Request has expired');
  });

  it.each([[{ 'X-Amz-Date': 'today' }], [{ 'X-Amz-Expires': '' }], [{ 'X-Amz-Expires': '604801' }]])(
    'are refused with %j',
    (more) => {
      expect(() => checkCaller(v4(more), undefined, START)).toThrow(
        expect.objectContaining({ code: 'AuthorizationQueryParametersError' }) as Error,
      );
    },
  );
});
