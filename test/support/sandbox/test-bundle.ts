/**
 * A program to boot in place of the crawl API: it reads its identity from the metadata service, as the real one does,
 * and serves a few routes on the instance's address. `userDataFor` renders the user data that installs it.
 */
import { createHash, generateKeyPairSync } from 'node:crypto';
import { encodeSettingsLine, type UserData } from '../../../shared/wire/settings.ts';
import { packArchive } from '../../../userdata/archive.ts';

/** The port on the instance's address where the program listens. */
export const TEST_BUNDLE_PORT = 18_080;

const TEST_PROGRAM = `
import { createServer } from 'node:http';
import { appendFileSync, readFileSync } from 'node:fs';
const imds = process.env.AWS_EC2_METADATA_SERVICE_ENDPOINT;
const token = await (await fetch(imds + '/latest/api/token', { method: 'PUT', headers: { 'x-aws-ec2-metadata-token-ttl-seconds': '60' } })).text();
const read = async (path) => (await fetch(imds + '/latest/' + path, { headers: { 'x-aws-ec2-metadata-token': token } })).text();
const id = await read('meta-data/instance-id');
const address = await read('meta-data/local-ipv4');
appendFileSync(process.env.STATE_DIRECTORY + '/starts', process.pid + '\\n');
process.on('SIGTERM', () => process.exit(0));
createServer((request, response) => {
  const url = new URL(request.url, 'http://x');
  response.setHeader('x-instance', id);
  if (url.pathname === '/healthz') return response.end('ready');
  if (url.pathname === '/whoami') return response.end(JSON.stringify({ id, address, env: Object.keys(process.env).sort(), starts: readFileSync(process.env.STATE_DIRECTORY + '/starts', 'utf8').trim().split('\\n').length }));
  if (url.pathname === '/headers') return response.end(JSON.stringify(request.headers));
  if (url.pathname === '/echo') return request.pipe(response);
  if (url.pathname === '/hang') return;
  if (url.pathname === '/hang-in-body') return response.flushHeaders();
  if (url.pathname === '/reset') return request.socket.destroy();
  if (url.pathname === '/exit') { response.end(); setImmediate(() => process.exit(Number(url.searchParams.get('code')))); return; }
  response.statusCode = 404; response.end();
}).listen(${TEST_BUNDLE_PORT}, address, () => console.log('test bundle: serving as ' + id));
`;

export const TEST_BUNDLE = packArchive(Buffer.from(TEST_PROGRAM));
export const TEST_BUNDLE_SHA256 = createHash('sha256').update(TEST_BUNDLE).digest('hex');

export interface UserDataOptions {
  bundleUrl: string;
  sha256?: string;
  /** Default: in an hour. */
  powerOffAtMs?: number;
  /** With the SSM agent. */
  commands?: true;
}

/** A user-data script as the main server renders it, base64. */
export function userDataFor(options: UserDataOptions): string {
  const { publicKey } = generateKeyPairSync('ed25519');
  const inAnHour = new Date(Date.now() + 3_600_000).toISOString();
  const settings: UserData = {
    version: 2,
    run: 'test-run',
    slot: 0,
    epoch: 1,
    token: 'a'.repeat(64),
    runPublicKey: publicKey.export({ type: 'spki', format: 'der' }).toString('base64'),
    callbackUrl: 'http://127.0.0.1:1/',
    apiPort: TEST_BUNDLE_PORT,
    localPort: TEST_BUNDLE_PORT + 1,
    bundle: { url: options.bundleUrl, sha256: options.sha256 ?? TEST_BUNDLE_SHA256 },
    crawlSettings: { url: 'http://127.0.0.1:1/settings', sha256: '0'.repeat(64) },
    s3: { region: 'ap-northeast-1', bucket: 'bundles', endpoint: null },
    startedAt: new Date().toISOString(),
    deadline: inAnHour,
    powerOffAt: options.powerOffAtMs === undefined ? inAnHour : new Date(options.powerOffAtMs).toISOString(),
    ...(options.commands ? { commands: true } : {}),
    heartbeatMs: 500,
    partMs: 1_000,
  };
  return Buffer.from(`#!/bin/sh\n${encodeSettingsLine(settings)}\n`).toString('base64');
}
