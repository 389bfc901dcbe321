/** Generates a certificate for TLS servers in tests, without a key in the repository or an external program. */
import { createHash, generateKeyPairSync, randomBytes, sign } from 'node:crypto';
import { isIPv4 } from 'node:net';

export interface SelfSigned {
  /** PEM. */
  key: string;
  /** PEM. */
  cert: string;
  /** SHA-256 of the public key in base64, for Chromium's --ignore-certificate-errors-spki-list. */
  spkiHash: string;
}

const DAY_MS = 86_400_000;

/** Valid for this host name or IPv4 address, from yesterday until tomorrow unless told otherwise. */
export function makeSelfSigned(host: string, untilMs = DAY_MS): SelfSigned {
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const spki = publicKey.export({ type: 'spki', format: 'der' });
  const algorithm = der(0x30, oid(0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x02)); // ecdsa-with-SHA256
  const name = der(0x30, der(0x31, der(0x30, oid(0x55, 0x04, 0x03), der(0x0c, Buffer.from('crawlfleet test')))));
  const altName = isIPv4(host) ? der(0x87, Buffer.from(host.split('.').map(Number))) : der(0x82, Buffer.from(host));
  const extensions = [
    extension(oid(0x55, 0x1d, 0x11), der(0x30, altName)),
    extension(oid(0x55, 0x1d, 0x13), der(0x30, der(0x01, Buffer.from([0xff])))), // a CA, so that clients can trust it
  ];
  const body = der(
    0x30,
    der(0xa0, der(0x02, Buffer.from([2]))),
    der(0x02, Buffer.concat([Buffer.from([1]), randomBytes(15)])),
    algorithm,
    name,
    der(0x30, time(-DAY_MS), time(untilMs)),
    name,
    spki,
    der(0xa3, der(0x30, ...extensions)),
  );
  const signature = der(0x03, Buffer.from([0]), sign('sha256', body, privateKey));
  return {
    key: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
    cert: toPem(der(0x30, body, algorithm, signature)),
    spkiHash: createHash('sha256').update(spki).digest('base64'),
  };
}

function der(tag: number, ...parts: Buffer[]): Buffer {
  const content = Buffer.concat(parts);
  const { length } = content;
  const head = length < 128 ? [length] : length < 256 ? [0x81, length] : [0x82, length >> 8, length & 0xff];
  return Buffer.concat([Buffer.from([tag, ...head]), content]);
}

const oid = (...bytes: number[]): Buffer => der(0x06, Buffer.from(bytes));

const extension = (id: Buffer, value: Buffer): Buffer => der(0x30, id, der(0x04, value));

function time(offsetMs: number): Buffer {
  const text = new Date(Date.now() + offsetMs).toISOString().replaceAll(/[-:T]|\.\d+/g, '');
  return der(0x18, Buffer.from(text));
}

function toPem(bytes: Buffer): string {
  const lines = bytes.toString('base64').match(/.{1,64}/g) ?? [];
  return `-----BEGIN CERTIFICATE-----\n${lines.join('\n')}\n-----END CERTIFICATE-----\n`;
}
