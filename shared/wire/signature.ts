/**
 * Authenticates messages (docs/http-api.md, "Signatures"). Three uses of one canonical text:
 * hello is MACed with the enrolment token; callbacks are signed by the instance's key with a counter that only grows;
 * offers and heartbeat replies are signed by the run's key. Method, path, run, slot, epoch, counter and the body's hash
 * are all under the signature, so no message can be reused elsewhere.
 */
import {
  createHmac,
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  hash,
  type KeyObject,
  sign,
  timingSafeEqual,
  verify,
} from 'node:crypto';

export const HEADER = {
  run: 'x-crawlfleet-run',
  slot: 'x-crawlfleet-slot',
  epoch: 'x-crawlfleet-epoch',
  counter: 'x-crawlfleet-counter',
  signature: 'x-crawlfleet-signature',
  /** The header on every reply of an instance: it shows that a crawl API answered, not some gateway on the way. */
  instance: 'x-crawlfleet-instance',
} as const;

/** The signed fields besides the body. Fields that a message lacks are left out of the headers and empty here. */
export interface Envelope {
  /** `POST`, or `REPLY` for the reply to a callback. */
  method: string;
  /** Path without query. */
  path: string;
  run: string;
  slot?: number;
  epoch?: number;
  counter?: number | null;
}

export function sha256Hex(data: Uint8Array | string): string {
  return hash('sha256', data);
}

/** The signed text: one field per line, the body by its SHA-256. */
function canonicalText(envelope: Envelope, body: Uint8Array | string): string {
  const { method, path, run, slot, epoch, counter } = envelope;
  return ['crawlfleet-1', method, path, run, slot ?? '', epoch ?? '', counter ?? '', sha256Hex(body)].join('\n');
}

/** Base64 Ed25519 signature. */
export function signMessage(privateKey: KeyObject, envelope: Envelope, body: Uint8Array | string): string {
  return sign(null, Buffer.from(canonicalText(envelope, body)), privateKey).toString('base64');
}

/** False for a wrong or malformed signature; never throws. */
export function verifyMessage(
  publicKey: KeyObject,
  envelope: Envelope,
  body: Uint8Array | string,
  signature: string,
): boolean {
  try {
    return verify(null, Buffer.from(canonicalText(envelope, body)), publicKey, Buffer.from(signature, 'base64'));
  } catch {
    return false;
  }
}

/** Signs messages and parts, and checks signatures. The simulation uses a faster implementation. */
export interface Signatures {
  sign(privateKey: KeyObject, envelope: Envelope, body: Uint8Array | string): string;
  verify(publicKey: KeyObject, envelope: Envelope, body: Uint8Array | string, signature: string): boolean;
  /** 64 bytes over a text that itself says what it is for. */
  signText(privateKey: KeyObject, text: Uint8Array): Uint8Array;
  verifyText(publicKey: KeyObject, text: Uint8Array, signature: Uint8Array): boolean;
}

export const ED25519: Signatures = {
  sign: signMessage,
  verify: verifyMessage,
  signText: (privateKey, text) => sign(null, text, privateKey),
  verifyText: (publicKey, text, signature) => verify(null, text, publicKey, signature),
};

/** Base64 HMAC-SHA256 with the enrolment token as key; the token itself is never sent. */
export function macMessage(token: string, envelope: Envelope, body: Uint8Array | string): string {
  return createHmac('sha256', token).update(canonicalText(envelope, body)).digest('base64');
}

export function verifyMac(token: string, envelope: Envelope, body: Uint8Array | string, mac: string): boolean {
  const expected = Buffer.from(macMessage(token, envelope, body));
  const given = Buffer.from(mac);
  return expected.length === given.length && timingSafeEqual(expected, given);
}

export interface KeyPair {
  privateKey: KeyObject;
  publicKey: KeyObject;
}

export function createKeyPair(): KeyPair {
  return generateKeyPairSync('ed25519');
}

/** Base64 of the DER form (SPKI), as in user data and hello. */
export function exportPublicKey(key: KeyObject): string {
  return key.export({ type: 'spki', format: 'der' }).toString('base64');
}

/** Throws unless the key is an Ed25519 public key. */
export function importPublicKey(text: string): KeyObject {
  const key = createPublicKey({ key: Buffer.from(text, 'base64'), type: 'spki', format: 'der' });
  if (key.asymmetricKeyType !== 'ed25519') throw new Error('not an Ed25519 public key');
  return key;
}

/** Base64 of the DER form (PKCS 8). */
export function exportPrivateKey(key: KeyObject): string {
  return key.export({ type: 'pkcs8', format: 'der' }).toString('base64');
}

export function importPrivateKey(text: string): KeyObject {
  return createPrivateKey({ key: Buffer.from(text, 'base64'), type: 'pkcs8', format: 'der' });
}

/** Envelope fields as request headers. */
export function envelopeHeaders(envelope: Envelope, signature: string): Record<string, string> {
  return {
    [HEADER.run]: envelope.run,
    ...(envelope.slot === undefined ? {} : { [HEADER.slot]: String(envelope.slot) }),
    ...(envelope.epoch === undefined ? {} : { [HEADER.epoch]: String(envelope.epoch) }),
    ...(envelope.counter === undefined ? {} : { [HEADER.counter]: String(envelope.counter) }),
    [HEADER.signature]: signature,
  };
}
