/**
 * Secrets on their way to one instance: callbacks are plain HTTP, signed and not encrypted. They are encrypted to a key
 * that a process of the instance makes anew and keeps in memory alone (X25519, HKDF-SHA-256, AES-256-GCM), and bound to
 * run, slot and epoch: a copy can be decrypted nowhere else.
 */
import {
  createCipheriv,
  createDecipheriv,
  createPublicKey,
  diffieHellman,
  generateKeyPairSync,
  hkdfSync,
  type KeyObject,
  randomBytes,
} from 'node:crypto';
import { z } from 'zod';
import type { EpochId } from '../domain/epoch-id.ts';

/** The instance that a message is encrypted for. */
export type Recipient = { run: string } & EpochId;

export const secretsSchema = z.strictObject({
  /** What is sent, by the text that stands for it in the settings. */
  values: z.record(z.string(), z.string()),
  /** The values of the variables alone, to be masked where a site repeats them. */
  masked: z.array(z.string()),
});
export type Secrets = z.infer<typeof secretsSchema>;

const NONCE_BYTES = 12;
const TAG_BYTES = 16;
/** An X25519 key in DER. */
const KEY_BYTES = 44;

/** What the instance signs, so that only itself can name the key that its secrets are encrypted to. */
export const secretsKeyText = (key: string, { run, slot, epoch }: Recipient): Buffer =>
  Buffer.from(['crawlfleet-secrets-key-1', run, slot, epoch, key].join('\n'));

/** A new pair; `key` is base64 of the DER form of its public half. */
export function createSecretsKey(): { key: string; privateKey: KeyObject } {
  const { publicKey, privateKey } = generateKeyPairSync('x25519');
  return { key: exportKey(publicKey), privateKey };
}

const exportKey = (key: KeyObject): string => key.export({ type: 'spki', format: 'der' }).toString('base64');

function importKey(der: Uint8Array): KeyObject {
  const key = createPublicKey({ key: Buffer.from(der), type: 'spki', format: 'der' });
  if (key.asymmetricKeyType !== 'x25519') throw new Error('not an X25519 public key');
  return key;
}

/** True for what `encryptSecrets` takes. */
export function isSecretsKey(key: string): boolean {
  try {
    return importKey(Buffer.from(key, 'base64')).asymmetricKeyType === 'x25519';
  } catch {
    return false;
  }
}

/** Encrypts to the public key of an instance. @param key as `createSecretsKey` gives it; throws for any other */
export function encryptSecrets(secrets: Secrets, key: string, recipient: Recipient): string {
  const own = createSecretsKey();
  const der = Buffer.from(own.key, 'base64');
  const shared = diffieHellman({ privateKey: own.privateKey, publicKey: importKey(Buffer.from(key, 'base64')) });
  const nonce = randomBytes(NONCE_BYTES);
  const cipher = createCipheriv('aes-256-gcm', cipherKey(shared, own.key + key), nonce);
  cipher.setAAD(context(recipient));
  const text = Buffer.concat([cipher.update(JSON.stringify(secrets), 'utf8'), cipher.final()]);
  return Buffer.concat([der, nonce, cipher.getAuthTag(), text]).toString('base64');
}

/** The secrets; null when they were encrypted to another key, run, slot or epoch, or are damaged. */
export function decryptSecrets(
  encrypted: string,
  { key, privateKey }: ReturnType<typeof createSecretsKey>,
  recipient: Recipient,
): Secrets | null {
  try {
    const bytes = Buffer.from(encrypted, 'base64');
    const der = bytes.subarray(0, KEY_BYTES);
    const shared = diffieHellman({ privateKey, publicKey: importKey(der) });
    const rest = bytes.subarray(KEY_BYTES);
    const nonce = rest.subarray(0, NONCE_BYTES);
    const decipher = createDecipheriv('aes-256-gcm', cipherKey(shared, der.toString('base64') + key), nonce, {
      authTagLength: TAG_BYTES,
    });
    decipher.setAAD(context(recipient));
    decipher.setAuthTag(rest.subarray(NONCE_BYTES, NONCE_BYTES + TAG_BYTES));
    const text = Buffer.concat([decipher.update(rest.subarray(NONCE_BYTES + TAG_BYTES)), decipher.final()]);
    return secretsSchema.parse(JSON.parse(text.toString('utf8')));
  } catch {
    return null;
  }
}

/** Both public keys go into it: a message encrypted to one pair of them opens with no other. */
const cipherKey = (shared: Buffer, keys: string): Buffer =>
  Buffer.from(hkdfSync('sha256', shared, keys, 'crawlfleet-secrets-1', 32));

const context = ({ run, slot, epoch }: Recipient): Buffer =>
  Buffer.from(['crawlfleet-secrets-1', run, slot, epoch].join('\n'));
