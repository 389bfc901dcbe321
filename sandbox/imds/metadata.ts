/**
 * The metadata service of one instance (IMDSv2 only), on that instance's address. Real instances use 169.254.169.254;
 * here the SDK finds it through its own variable AWS_EC2_METADATA_SERVICE_ENDPOINT.
 */
import { textBefore } from '../../shared/domain/text-before.ts';
import { randomBytes } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Clock } from '../../shared/ports/clock.ts';
import type { MachineSpec } from '../ec2/machine.ts';
import { ACCOUNT_ID } from '../ids.ts';
import { accessKeyOf } from '../instance-role.ts';
import { closeServer, listen } from '../../shared/adapters/http/listening.ts';

/** Below the kernel's ephemeral ports, so that it does not take the port the instance will serve on. */
const PORT = 1338;
const TTL_HEADER = 'x-aws-ec2-metadata-token-ttl-seconds';
const TOKEN_HEADER = 'x-aws-ec2-metadata-token';
const MAX_TTL_S = 21_600;
/** Maximum tokens: enough for every process of an instance; the oldest is dropped first. */
const MAX_TOKENS = 1_000;

export interface Metadata {
  /** `http://127.37.16.4:1338` */
  url: string;
  close(): Promise<void>;
}

export async function startMetadataServer(spec: MachineSpec, clock: Clock): Promise<Metadata> {
  const tree = new MetadataTree(spec);
  const tokens = new Map<string, number>();
  const server = createServer((request, response) => {
    request.resume();
    if (isForeign(request, spec.address)) request.socket.destroy();
    else answer(request, response, { tree, tokens, clock });
  });
  // Any free port when another program on this machine listens on this port at all addresses.
  await listen(server, { host: spec.address, port: PORT }).catch(() => listen(server, { host: spec.address, port: 0 }));
  return {
    url: `http://${spec.address}:${(server.address() as AddressInfo).port}`,
    close: () => closeServer(server),
  };
}

/** True for another instance's address. The instance itself uses its own, or 127.0.0.1 when it bound none. */
function isForeign(request: IncomingMessage, own: string): boolean {
  const from = request.socket.remoteAddress;
  return from !== own && from !== '127.0.0.1';
}

function answer(
  request: IncomingMessage,
  response: ServerResponse,
  { tree, tokens, clock }: { tree: MetadataTree; tokens: Map<string, number>; clock: Clock },
): void {
  const path = textBefore(request.url ?? '/', '?');
  // A forwarded request came through an open proxy on the machine: AWS refuses it too.
  if (request.headers['x-forwarded-for'] !== undefined) return end(response, 403);
  if (request.method === 'PUT' && path === '/latest/api/token') return giveToken(request, response, tokens, clock);
  if (request.method !== 'GET' && request.method !== 'HEAD') return end(response, 405);
  const token = request.headers[TOKEN_HEADER];
  if (typeof token !== 'string' || (tokens.get(token) ?? 0) <= clock.monotonic()) return end(response, 401);
  if (path === '/' || path === '') return end(response, 200, 'latest');
  const found = path.startsWith('/latest') ? tree.read(path.slice('/latest/'.length), clock.now()) : null;
  if (!found) return end(response, 404);
  end(response, 200, found.body, found.type);
}

function giveToken(
  request: IncomingMessage,
  response: ServerResponse,
  tokens: Map<string, number>,
  clock: Clock,
): void {
  const ttl = request.headers[TTL_HEADER];
  const seconds = typeof ttl === 'string' && /^\d{1,6}$/.test(ttl) ? Number(ttl) : 0;
  if (seconds < 1 || seconds > MAX_TTL_S) return end(response, 400);
  const token = randomBytes(42).toString('base64url');
  tokens.set(token, clock.monotonic() + seconds * 1_000);
  if (tokens.size > MAX_TOKENS) tokens.delete(tokens.keys().next().value!);
  response.setHeader(TTL_HEADER, String(seconds));
  end(response, 200, token);
}

function end(response: ServerResponse, status: number, body = '', type = 'text/plain'): void {
  response.writeHead(status, { 'content-type': type, 'content-length': Buffer.byteLength(body), server: 'EC2ws' });
  response.end(body);
}

/** How long role credentials are valid, and how early they are renewed: AWS's values. */
const CREDENTIALS_MS = 6 * 3_600_000;
const RENEW_EARLIER_MS = 900_000;

/** An instance's metadata, by path. */
export class MetadataTree {
  readonly #spec: MachineSpec;
  readonly #fixed: Map<string, string>;
  /** The credentials of the role: the document, and when it was issued. */
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
    if (role !== null && clean === `meta-data/iam/security-credentials/${role}`)
      return { body: this.#credentialsDocument(nowMs), type: 'text/plain' };
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
        AccessKeyId: accessKeyOf(this.#spec.id),
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
