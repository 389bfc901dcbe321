/** Secrets encrypted to one process of one instance. */
import { describe, expect, it } from 'vitest';
import { createSecretsKey, isSecretsKey, decryptSecrets, encryptSecrets } from '../../../shared/wire/secrets.ts';
import { createKeyPair, exportPublicKey } from '../../../shared/wire/signature.ts';

const RECIPIENT = { run: 'r-1', slot: 3, epoch: 2 };
const SECRETS = { values: { '${A}': 'the secret', 'Bearer ${B}': 'Bearer größer' }, masked: ['the secret', 'größer'] };

describe('encryptSecrets', () => {
  it('decrypts with the key that it was encrypted to', () => {
    const key = createSecretsKey();
    const encrypted = encryptSecrets(SECRETS, key.key, RECIPIENT);
    expect(decryptSecrets(encrypted, key, RECIPIENT)).toEqual(SECRETS);
    expect(Buffer.from(encrypted, 'base64').includes('secret')).toBe(false);
  });

  it('is another text each time', () => {
    const { key } = createSecretsKey();
    expect(encryptSecrets(SECRETS, key, RECIPIENT)).not.toBe(encryptSecrets(SECRETS, key, RECIPIENT));
  });

  it.each([
    ['run', { ...RECIPIENT, run: 'r-2' }],
    ['slot', { ...RECIPIENT, slot: 4 }],
    ['epoch', { ...RECIPIENT, epoch: 3 }],
  ])('does not decrypt for another %s', (_what, other) => {
    const key = createSecretsKey();
    expect(decryptSecrets(encryptSecrets(SECRETS, key.key, RECIPIENT), key, other)).toBeNull();
  });

  it('does not decrypt with another key, nor under another public key', () => {
    const [key, other] = [createSecretsKey(), createSecretsKey()];
    const encrypted = encryptSecrets(SECRETS, key.key, RECIPIENT);
    expect(decryptSecrets(encrypted, other, RECIPIENT)).toBeNull();
    expect(decryptSecrets(encrypted, { ...key, key: other.key }, RECIPIENT)).toBeNull();
  });

  it('does not decrypt when a byte of it was changed, cut off or added', () => {
    const key = createSecretsKey();
    const bytes = Buffer.from(encryptSecrets(SECRETS, key.key, RECIPIENT), 'base64');
    for (let at = 0; at < bytes.length; at += 7) {
      const changed = Buffer.from(bytes);
      changed[at]! ^= 1;
      expect(decryptSecrets(changed.toString('base64'), key, RECIPIENT), `byte ${at}`).toBeNull();
    }
    for (const wrong of [bytes.subarray(0, 50), bytes.subarray(1), Buffer.concat([bytes, Buffer.of(0)]), Buffer.of()])
      expect(decryptSecrets(wrong.toString('base64'), key, RECIPIENT)).toBeNull();
  });

  it('knows its keys', () => {
    expect(isSecretsKey(createSecretsKey().key)).toBe(true);
    expect(isSecretsKey(exportPublicKey(createKeyPair().publicKey))).toBe(false);
    expect(isSecretsKey('AAAA')).toBe(false);
  });
});
