import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  createKeyPair,
  type Envelope,
  exportPrivateKey,
  exportPublicKey,
  importPrivateKey,
  importPublicKey,
  macMessage,
  signMessage,
  verifyMac,
  verifyMessage,
} from '../../../shared/wire/signature.ts';

const keys = createKeyPair();
const envelope: Envelope = { method: 'POST', path: '/v1/instances/heartbeat', run: 'r', slot: 1, epoch: 2, counter: 3 };

describe('signatures', () => {
  it('are valid for the signed message', () => {
    expect(verifyMessage(keys.publicKey, envelope, 'body', signMessage(keys.privateKey, envelope, 'body'))).toBe(true);
    expect(verifyMac('token', envelope, 'body', macMessage('token', envelope, 'body'))).toBe(true);
  });

  it.each<[string, Partial<Envelope>]>([
    ['method', { method: 'REPLY' }],
    ['path', { path: '/v1/instances/completion' }],
    ['run', { run: 's' }],
    ['slot', { slot: 2 }],
    ['epoch', { epoch: 1 }],
    ['counter', { counter: 4 }],
  ])('are invalid under another %s', (_name, change) => {
    expect(
      verifyMessage(keys.publicKey, { ...envelope, ...change }, 'body', signMessage(keys.privateKey, envelope, 'body')),
    ).toBe(false);
    expect(verifyMac('token', { ...envelope, ...change }, 'body', macMessage('token', envelope, 'body'))).toBe(false);
  });

  it('are invalid for another body, key or token, and never throw on garbage', () => {
    const signature = signMessage(keys.privateKey, envelope, 'body');
    expect(verifyMessage(keys.publicKey, envelope, 'bodY', signature)).toBe(false);
    expect(verifyMessage(createKeyPair().publicKey, envelope, 'body', signature)).toBe(false);
    expect(verifyMac('other', envelope, 'body', macMessage('token', envelope, 'body'))).toBe(false);
    fc.assert(
      fc.property(fc.string(), (rubbish) => {
        expect(verifyMessage(keys.publicKey, envelope, 'body', rubbish)).toBe(false);
        expect(verifyMac('token', envelope, 'body', rubbish)).toBe(false);
      }),
    );
  });

  it('remain valid after export and import of the keys', () => {
    const signature = signMessage(importPrivateKey(exportPrivateKey(keys.privateKey)), envelope, 'body');
    expect(verifyMessage(importPublicKey(exportPublicKey(keys.publicKey)), envelope, 'body', signature)).toBe(true);
  });
});
