/** The SDK's clients and its credential chain behind a proxy, which tunnels to a TLS server that plays AWS. */
import { writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { createServer as createSecureServer } from 'node:https';
import { type AddressInfo, connect } from 'node:net';
import { getCACertificates, setDefaultCACertificates } from 'node:tls';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { readKeys } from '../../../../orchestrator/core/cloud/credentials.ts';
import { whoAmI } from '../../../../orchestrator/core/cloud/right-checks.ts';
import { S3ObjectStore } from '../../../../shared/adapters/s3-object-store.ts';
import { makeSelfSigned } from '../../../support/self-signed.ts';
import { type TempDir, tempDir } from '../../../support/temp-dir.ts';

const credentials = { accessKeyId: 'AKIABASE', secretAccessKey: 'secret' };
const IDENTITY =
  '<GetCallerIdentityResponse><GetCallerIdentityResult><Account>111122223333</Account><Arn>arn:me</Arn></GetCallerIdentityResult></GetCallerIdentityResponse>';
const ASSUMED =
  '<AssumeRoleResponse><AssumeRoleResult><Credentials><AccessKeyId>ASIAROLE</AccessKeyId><SecretAccessKey>s</SecretAccessKey><SessionToken>t</SessionToken><Expiration>2999-01-01T00:00:00Z</Expiration></Credentials></AssumeRoleResult></AssumeRoleResponse>';

let folder: TempDir | null = null;
const stops: (() => unknown)[] = [];
afterEach(() => {
  vi.unstubAllEnvs();
  for (const stop of stops.splice(0)) stop();
  folder?.remove();
  folder = null;
});

/** A proxy, and behind it AWS under this host name. `asked` has what the proxy was asked to connect to. */
async function behind(host: string) {
  const { key, cert } = makeSelfSigned(host);
  const aws = createSecureServer({ key, cert }, (request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => response.end(Buffer.concat(chunks).includes('AssumeRole') ? ASSUMED : IDENTITY));
  });
  const asked: string[] = [];
  const proxy = createServer((_, response) => response.writeHead(405).end());
  proxy.on('connect', (request, socket) => {
    asked.push(request.url!);
    const tunnel = connect((aws.address() as AddressInfo).port, '127.0.0.1', () => {
      socket.write('HTTP/1.1 200 Connection established\r\n\r\n');
      tunnel.pipe(socket).pipe(tunnel);
    });
    for (const end of [tunnel, socket]) end.on('error', () => end.destroy());
  });
  for (const server of [aws, proxy]) await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  const trusted = getCACertificates('default');
  setDefaultCACertificates([...trusted, cert]);
  stops.push(() => {
    setDefaultCACertificates(trusted);
    for (const server of [aws, proxy]) server.close().closeAllConnections();
  });
  return { asked, url: `http://127.0.0.1:${(proxy.address() as AddressInfo).port}` };
}

describe('behind a proxy', () => {
  it('clients reach AWS through it, except hosts in NO_PROXY', async () => {
    const { asked, url } = await behind('sts.aws.test');
    const options = { region: 'eu-west-1', endpoint: 'https://sts.aws.test', credentials, maxAttempts: 1 };
    expect(await whoAmI({ ...options, proxy: { HTTPS_PROXY: url } })).toMatchObject({ account: '111122223333' });
    expect(asked).toEqual(['sts.aws.test:443']);
    await expect(whoAmI({ ...options, proxy: { HTTPS_PROXY: url, NO_PROXY: '.aws.test' } })).rejects.toThrow(
      'ENOTFOUND',
    );
    expect(asked).toHaveLength(1);
  });

  it('the bucket is reached through it, too', async () => {
    const { asked, url } = await behind('s3.aws.test');
    const place = { region: 'eu-west-1', bucket: 'b', endpoint: 'https://s3.aws.test', credentials };
    const store = new S3ObjectStore({ ...place, proxy: { https_proxy: url } });
    stops.push(() => store.close());
    expect(await store.putIfAbsent('k', Uint8Array.of(1), 'text/plain')).toBe('created');
    expect(asked).toEqual(['s3.aws.test:443']);
  });

  it('the credential chain assumes its role through it', async () => {
    const { asked, url } = await behind('sts.eu-west-1.amazonaws.com');
    folder = tempDir('crawlfleet-proxy-');
    const base = '[base]\naws_access_key_id = AKIABASE\naws_secret_access_key = secret\n';
    const role =
      '[crawl]\nrole_arn = arn:aws:iam::111122223333:role/crawl\nsource_profile = base\nregion = eu-west-1\n';
    writeFileSync(folder.file('credentials'), base + role);
    writeFileSync(folder.file('config'), '');
    vi.stubEnv('AWS_SHARED_CREDENTIALS_FILE', folder.file('credentials'));
    vi.stubEnv('AWS_CONFIG_FILE', folder.file('config'));
    vi.stubEnv('AWS_PROFILE', 'crawl');
    vi.stubEnv('AWS_REGION', 'eu-west-1');
    for (const name of ['AWS_ACCESS_KEY_ID', 'AWS_SECRET_ACCESS_KEY', 'AWS_SESSION_TOKEN']) vi.stubEnv(name, undefined);
    expect(await readKeys(undefined, { HTTPS_PROXY: url })).toMatchObject({ accessKeyId: 'ASIAROLE' });
    expect(asked).toEqual(['sts.eu-west-1.amazonaws.com:443']);
  });
});
