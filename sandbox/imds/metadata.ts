/** An instance's metadata, by path. */
import { randomBytes } from 'node:crypto';
import { ACCOUNT_ID } from '../ids.ts';
import type { MachineSpec } from '../ec2/machine.ts';

/** How long role credentials are valid, and how early they are renewed: AWS's values. */
const CREDENTIALS_MS = 6 * 3_600_000;
const RENEW_EARLIER_MS = 900_000;

export class MetadataTree {
  readonly #spec: MachineSpec;
  readonly #fixed: Map<string, string>;
  /** Of the role: the document, and when it was issued. */
  #credentials: { document: string; issuedAtMs: number } | null = null;

  constructor(spec: MachineSpec) {
    this.#spec = spec;
    this.#fixed = new Map([
      ['meta-data/ami-id', spec.imageId],
      ['meta-data/hostname', hostname(spec)],
      ['meta-data/instance-id', spec.id],
      ['meta-data/instance-type', spec.instanceType],
      ['meta-data/local-hostname', hostname(spec)],
      ['meta-data/local-ipv4', spec.address],
      ['meta-data/placement/availability-zone', spec.zone],
      ['meta-data/placement/region', spec.region],
      ['meta-data/services/domain', 'amazonaws.com'],
      ['dynamic/instance-identity/document', identityDocument(spec)],
      ...(spec.publicAddress === null ? [] : [['meta-data/public-ipv4', spec.publicAddress] as const]),
      ...(spec.userData === '' ? [] : [['user-data', spec.userData] as const]),
    ]);
  }

  /** The value at a path below `/latest/`, or the names below it; null when there is none. */
  read(path: string, nowMs: number): { body: string; type: string } | null {
    const clean = path.replace(/\/+$/, '');
    const role = this.#spec.role;
    if (role !== null && clean === `meta-data/iam/security-credentials/${role}`) {
      return { body: this.#credentialsDocument(nowMs), type: 'text/plain' };
    }
    const value = this.#fixed.get(clean);
    if (value !== undefined)
      return { body: value, type: clean === 'user-data' ? 'application/octet-stream' : 'text/plain' };
    const names = this.#namesBelow(clean);
    return names.length === 0 ? null : { body: names.join('\n'), type: 'text/plain' };
  }

  #namesBelow(folder: string): string[] {
    const paths = [...this.#fixed.keys()];
    if (this.#spec.role !== null) paths.push(`meta-data/iam/security-credentials/${this.#spec.role}`);
    const prefix = folder === '' ? '' : `${folder}/`;
    const names = paths
      .filter((path) => path.startsWith(prefix))
      .map((path) => path.slice(prefix.length).replace(/\/.*$/, '/'));
    return [...new Set(names)].sort();
  }

  #credentialsDocument(nowMs: number): string {
    if (!this.#credentials || nowMs > this.#credentials.issuedAtMs + CREDENTIALS_MS - RENEW_EARLIER_MS) {
      const document = pretty({
        Code: 'Success',
        LastUpdated: seconds(nowMs),
        Type: 'AWS-HMAC',
        AccessKeyId: `ASIA${randomBytes(8).toString('hex').toUpperCase()}`,
        SecretAccessKey: randomBytes(30).toString('base64'),
        Token: randomBytes(96).toString('base64'),
        Expiration: seconds(nowMs + CREDENTIALS_MS),
      });
      this.#credentials = { document, issuedAtMs: nowMs };
    }
    return this.#credentials.document;
  }
}

const pretty = (document: Record<string, unknown>): string => JSON.stringify(document, null, 2);

const seconds = (ms: number): string => new Date(ms).toISOString().replace(/\.\d+Z$/, 'Z');

const hostname = (spec: MachineSpec): string =>
  `ip-${spec.address.replaceAll('.', '-')}.${spec.region}.compute.internal`;

function identityDocument(spec: MachineSpec): string {
  return pretty({
    accountId: ACCOUNT_ID,
    architecture: spec.architecture,
    availabilityZone: spec.zone,
    billingProducts: null,
    imageId: spec.imageId,
    instanceId: spec.id,
    instanceType: spec.instanceType,
    kernelId: null,
    pendingTime: seconds(spec.launchedAtMs),
    privateIp: spec.address,
    ramdiskId: null,
    region: spec.region,
    version: '2017-09-30',
  });
}
