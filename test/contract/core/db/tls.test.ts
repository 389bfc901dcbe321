/** TLS to the database (`?ssl=true`): the certificate is checked, and each failure is named with what to do. */
import { writeFileSync } from 'node:fs';
import { getCACertificates, setDefaultCACertificates } from 'node:tls';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { openDatabase } from '../../../../orchestrator/core/db/connect.ts';
import { createProductSource } from '../../../../orchestrator/core/db/product-source.ts';
import { createTestDatabase } from '../../../support/mariadb/database.ts';
import { type DatabaseServer, startDatabaseServer } from '../../../support/mariadb/server.ts';
import { makeSelfSigned } from '../../../support/self-signed.ts';
import { type TempDir, tempDir } from '../../../support/temp-dir.ts';

const ADDRESS = '127.0.9.1';

let folder: TempDir;
let server: DatabaseServer;
const trusted = getCACertificates('default');

beforeAll(async () => {
  folder = tempDir('crawlfleet-tls-');
  writeCertificate(ADDRESS);
  server = await startDatabaseServer({
    options: [
      `--ssl-cert=${folder.file('cert')}`,
      `--ssl-key=${folder.file('key')}`,
      `--ssl-ca=${folder.file('cert')}`,
    ],
  });
  await server.query('', 'create database shop');
  await server.query('', `create user secure identified by 'p' require ssl`);
  await server.query('', 'grant all on shop.* to secure');
});
afterEach(() => setDefaultCACertificates(trusted));
afterAll(async () => {
  await server.stop();
  folder.remove();
});

function writeCertificate(host: string, untilMs?: number): string {
  const { key, cert } = makeSelfSigned(host, untilMs);
  writeFileSync(folder.file('key'), key);
  writeFileSync(folder.file('cert'), cert);
  return cert;
}

/** The server shows another certificate from now on, which this process trusts. */
async function showing(host: string, untilMs?: number): Promise<void> {
  setDefaultCACertificates([...trusted, writeCertificate(host, untilMs)]);
  await server.query('', 'flush ssl');
}

const secured = (user = 'crawlfleet'): string => {
  const url = new URL(server.url('shop'));
  if (user !== 'crawlfleet') [url.username, url.password] = [user, 'p'];
  url.searchParams.set('ssl', 'true');
  return url.href;
};
const plain = (user?: string): string => secured(user).replace('?ssl=true', '');

const refusal = async (url: string): Promise<{ message: string; hint: string }> => {
  const error: unknown = await openDatabase(url).then(
    (db) => db.close(),
    (fault: unknown) => fault,
  );
  expect(error).toMatchObject({ code: 'database-unreachable' });
  return error as { message: string; hint: string };
};

it('a server whose trusted certificate names its address is used, by the product query too', async () => {
  await showing(ADDRESS);
  await using db = await openDatabase(secured('secure'));
  const [[row]] = (await db.knex.raw(`show status like 'Ssl_version'`)) as [[{ Value: string }]];
  expect(row.Value).toMatch(/^TLSv1\.[23]$/);
  expect(await Array.fromAsync(createProductSource(secured('secure'), 'select 1 as id').read())).toEqual(['1']);
});

it.each<[what: string, arrange: () => Promise<void>, url: () => string, hint: RegExp]>([
  [
    'an unknown authority',
    () => showing(ADDRESS).then(() => setDefaultCACertificates(trusted)),
    secured,
    /set NODE_EXTRA_CA_CERTS.* \(PEM\)\.$/,
  ],
  ['a certificate for another host', () => showing('db.example'), secured, /for another server than 127\.0\.9\.1/],
  ['a certificate for another address', () => showing('127.0.0.1'), secured, /for another server than 127\.0\.9\.1/],
  ['an expired certificate', () => showing(ADDRESS, -60_000), secured, /^Renew the certificate/],
  [
    'a user who must use TLS and does not',
    async () => undefined,
    () => plain('secure'),
    /REQUIRE SSL\): then append \?ssl=true/,
  ],
])('%s is named, with what to do', async (_, arrange, url, hint) => {
  await arrange();
  expect((await refusal(url())).hint).toMatch(hint);
});

it('a server that accepts only TLS, or has none, is named, with what to do', async () => {
  await server.query('', 'set global require_secure_transport = 1');
  expect(await refusal(plain())).toMatchObject({ hint: expect.stringContaining('append ?ssl=true') as string });
  const database = await createTestDatabase('mysql');
  expect((await refusal(`${database.url}?ssl=true`)).hint).toMatch(/has no TLS: .* take \?ssl=true out/);
  await database.drop();
});
