import { gunzipSync, gzipSync } from 'node:zlib';
import { expect, it } from 'vitest';
import { isSignedPart, signPart } from '../../../shared/wire/part-signature.ts';
import { createKeyPair } from '../../../shared/wire/signature.ts';

const keys = createKeyPair();
const place = { run: '20261121-021500-k3f9', slot: 3, epoch: 2, seq: 7 };
const text = '{"n":1}\n{"n":2}\n'.repeat(500);
const gzip = gzipSync(text);
const signed = signPart(gzip, place, keys.privateKey);

it('signs a part in its gzip header: the same bytes each time, read by any other reader of gzip', () => {
  expect(signPart(gzipSync(text), place, keys.privateKey).equals(signed)).toBe(true);
  expect(signed).toHaveLength(gzip.length + 70);
  expect(gunzipSync(signed).toString()).toBe(text);
  expect(isSignedPart(signed, place, keys.publicKey)).toBe(true);
});

it.each([
  ['another run', { ...place, run: 'other' }],
  ['another slot', { ...place, slot: 4 }],
  ['another epoch', { ...place, epoch: 1 }],
  ['another number', { ...place, seq: 8 }],
])('proves nothing at the place of %s', (_what, other) => {
  expect(isSignedPart(signed, other, keys.publicKey)).toBe(false);
});

it('proves nothing for another key, for an unsigned part, and for bytes that are cut or added', () => {
  expect(isSignedPart(signed, place, createKeyPair().publicKey)).toBe(false);
  expect(isSignedPart(gzip, place, keys.publicKey)).toBe(false);
  for (const length of [0, 3, 10, 79, 80, signed.length - 1])
    expect(isSignedPart(signed.subarray(0, length), place, keys.publicKey)).toBe(false);
  expect(isSignedPart(Buffer.concat([signed, gzipSync('{"n":3}')]), place, keys.publicKey)).toBe(false);
});

it('proves nothing once any bit has changed', () => {
  for (let i = 0; i < signed.length; i++) {
    const spoilt = Buffer.from(signed);
    spoilt[i]! ^= 1 << (i % 8);
    expect(isSignedPart(spoilt, place, keys.publicKey), `byte ${i}`).toBe(false);
  }
});
