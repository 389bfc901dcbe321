/** An instance's metadata, by path. */
import { randomBytes } from 'node:crypto';
import type { MachineSpec } from '../ec2/machine.ts';

/** How long role credentials are valid. */
const CREDENTIALS_MS = 6 * 3_600_000;
const ROLES = 'meta-data/iam/security-credentials';

/** The value at a path below `/latest/`; null when there is none. */
export function readMetadata(path: string, spec: MachineSpec, nowMs: number): string | null {
  const values = new Map<string, string | null>([
    ['meta-data/ami-id', spec.imageId],
    ['meta-data/instance-id', spec.id],
    ['meta-data/instance-type', spec.instanceType],
    ['meta-data/local-ipv4', spec.address],
    ['meta-data/public-ipv4', spec.publicAddress],
    ['meta-data/placement/availability-zone', spec.zone],
    ['meta-data/placement/region', spec.region],
    ['user-data', spec.userData || null],
    [ROLES, spec.role],
  ]);
  if (spec.role !== null) values.set(`${ROLES}/${spec.role}`, credentials(nowMs));
  return values.get(path.replace(/\/+$/, '')) ?? null;
}

function credentials(nowMs: number): string {
  const seconds = (ms: number): string => new Date(ms).toISOString().replace(/\.\d+Z$/, 'Z');
  return JSON.stringify({
    Code: 'Success',
    LastUpdated: seconds(nowMs),
    Type: 'AWS-HMAC',
    AccessKeyId: `ASIA${randomBytes(8).toString('hex').toUpperCase()}`,
    SecretAccessKey: randomBytes(30).toString('base64'),
    Token: randomBytes(96).toString('base64'),
    Expiration: seconds(nowMs + CREDENTIALS_MS),
  });
}
