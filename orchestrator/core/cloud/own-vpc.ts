/**
 * Where in EC2's network this machine is, if it is an EC2 instance: from its own metadata (IMDSv2).
 * https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/instancedata-data-retrieval.html
 */
import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { AppError, describeError } from '../../../shared/domain/errors.ts';

/** The link-local address of an instance's metadata; on other machines it does not answer. */
const METADATA = 'http://169.254.169.254';
/** The time limit per attempt to get a token: on other machines the packets go nowhere. */
const TOKEN_MS = 1_000;
/** Total time for all requests after the token: a service that returns a token also answers. */
const REST_MS = 5_000;
/** The attempts per request, as in the SDKs: a packet may be lost, and the service throttles frequent requests. */
const TRIES = 3;
const PAUSE_MS = 100;

export interface MetadataOptions {
  /** AWS_EC2_METADATA_DISABLED, as the SDKs read it. */
  disabled: boolean;
  /** AWS_EC2_METADATA_SERVICE_ENDPOINT; null for the usual address. */
  endpoint: string | null;
  /** The time limit per attempt to get a token. Default 1 s. */
  timeoutMs?: number;
  /** The time limit for all other requests together. Default 5 s. */
  restMs?: number;
  /** Whether other evidence shows an EC2 machine. Default: its firmware. */
  isEc2?: () => boolean;
}

/** Settings from the SDKs' own variables. */
export const metadataOptions = (environment: Readonly<Record<string, string | undefined>>): MetadataOptions => ({
  disabled: environment.AWS_EC2_METADATA_DISABLED?.toLowerCase() === 'true',
  endpoint: environment.AWS_EC2_METADATA_SERVICE_ENDPOINT || null,
});

/** An interface of this machine. */
export interface OwnInterface {
  vpcId: string;
  securityGroupIds: string[];
  /** IPv4, private. */
  addresses: string[];
  /** IPv4, public. */
  publicAddresses: string[];
}

/**
 * Every interface of this machine that is in a VPC; empty when it is no EC2 instance. On an EC2 instance it throws
 * `config-invalid` when the metadata are unavailable, and `aws-failed` when only the reply is missing.
 */
export async function ownInterfaces(options: MetadataOptions): Promise<OwnInterface[]> {
  const { disabled, endpoint, timeoutMs = TOKEN_MS, restMs = REST_MS, isEc2 = isEc2Machine } = options;
  const base = `${(endpoint ?? METADATA).replace(/\/$/, '')}/latest`;
  const token = disabled ? null : await askToken(base, timeoutMs);
  if (token === null) {
    if (!isEc2()) return [];
    const why = disabled ? 'disabled (AWS_EC2_METADATA_DISABLED)' : 'unavailable';
    throw unknown('config-invalid', `this machine is an EC2 instance, but its metadata are ${why}`);
  }
  const over = AbortSignal.timeout(restMs);
  const ask = (path: string): Promise<string[]> =>
    askLines(`${base}/meta-data/network/interfaces/macs/${path}`, token, over);
  try {
    const macs = (await ask('')).map((line) => line.replace(/\/$/, '')).filter((mac) => /^[0-9a-f:]{17}$/i.test(mac));
    const found = await Promise.all(
      macs.map(async (mac) => {
        const [vpcIds, securityGroupIds, addresses, publicAddresses] = await Promise.all([
          ask(`${mac}/vpc-id`),
          ask(`${mac}/security-group-ids`),
          ask(`${mac}/local-ipv4s`),
          ask(`${mac}/public-ipv4s`),
        ]);
        return vpcIds.map((vpcId) => ({ vpcId, securityGroupIds, addresses, publicAddresses }));
      }),
    );
    return found.flat();
  } catch (error) {
    throw unknown(
      'aws-failed',
      `the metadata service of this machine does not answer (${describeError(error)})`,
      error,
    );
  }
}

const unknown = (code: 'config-invalid' | 'aws-failed', why: string, cause?: unknown): AppError =>
  new AppError(code, `${why}, so its VPC is unknown and aws.balancer_scheme: auto cannot be resolved`, {
    hint: 'Set aws.balancer_scheme: internal where this machine reaches the private addresses of the VPC, else internet-facing.',
    ...(cause === undefined ? {} : { cause }),
  });

/** A token of the metadata service; null where no service answers, or the service has no token. */
async function askToken(base: string, timeoutMs: number): Promise<string | null> {
  const headers = { 'x-aws-ec2-metadata-token-ttl-seconds': '60' };
  for (let left = TRIES; left > 0; left--) {
    try {
      const signal = AbortSignal.timeout(timeoutMs);
      const response = await fetch(`${base}/api/token`, { method: 'PUT', headers, signal, redirect: 'error' });
      const text = await response.text();
      if (response.ok) return text;
      if (!isPassing(response.status)) return null;
    } catch {
      // Another attempt may get through.
    }
    await sleep(PAUSE_MS);
  }
  return null;
}

/** The lines of an entry; empty where there is none. */
async function askLines(url: string, token: string, signal: AbortSignal): Promise<string[]> {
  const headers = { 'x-aws-ec2-metadata-token': token };
  for (let left = TRIES; ;) {
    const response = await fetch(url, { headers, signal, redirect: 'error' });
    const text = await response.text();
    if (response.status === 404) return [];
    if (response.ok)
      return text
        .split('\n')
        .map((line) => line.trim())
        .filter(Boolean);
    if (--left === 0 || !isPassing(response.status)) throw new Error(`HTTP ${response.status}`);
    await sleep(PAUSE_MS);
  }
}

const isPassing = (status: number): boolean => status === 429 || status >= 500;

/**
 * True on an EC2 machine, by the firmware of current machines and the hypervisor of older ones; false where neither is
 * shown.
 */
function isEc2Machine(): boolean {
  const read = (file: string): string => {
    try {
      return readFileSync(file, 'utf8').trim();
    } catch {
      return '';
    }
  };
  return read('/sys/devices/virtual/dmi/id/sys_vendor') === 'Amazon EC2' || /^ec2/i.test(read('/sys/hypervisor/uuid'));
}
