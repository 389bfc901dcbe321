/** An instance whose browser does not restart in the middle of the crawl: fault rows F23 and F26. */
import { chmodSync, rmSync, writeFileSync } from 'node:fs';
import { gunzipSync } from 'node:zlib';
import { request } from 'undici';
import { afterEach, expect, it } from 'vitest';
import { StateFolder } from '../../../crawl-api/process/state-folder.ts';
import { runInstance } from '../../../crawl-api/instance.ts';
import { systemRandom } from '../../../shared/adapters/random.ts';
import { S3ObjectStore } from '../../../shared/adapters/s3-object-store.ts';
import { systemClock } from '../../../shared/adapters/system-clock.ts';
import { offerPath } from '../../../shared/wire/instance-api.ts';
import { itemResultSchema } from '../../../shared/wire/part.ts';
import type { InstanceSettings } from '../../../shared/wire/settings.ts';
import { createKeyPair, envelopeHeaders, exportPublicKey, signMessage } from '../../../shared/wire/signature.ts';
import { freePort } from '../../support/free-port.ts';
import { oneTitle } from '../../support/one-title.ts';
import { killLeftovers } from '../../support/processes.ts';
import { tempDir } from '../../support/temp-dir.ts';
import { ownAddress, until } from '../crawl-api/http-stub.ts';
import { startBucket, startMainServer } from '../crawl-api/stub-cloud.ts';
import { Site, USER_AGENT, chromiumPath } from './stage.ts';

const PRODUCTS = 6;
const closers: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

/** A browser that starts only while the file `refuse` does not exist. */
function unsureBrowser(script: string, refuse: string): void {
  writeFileSync(script, `#!/bin/sh\nif [ -e '${refuse}' ]; then exit 1; fi\nexec '${chromiumPath()}' "$@"\n`);
  chmodSync(script, 0o755);
}

async function createInstance(folder: ReturnType<typeof tempDir>) {
  const site = await Site.start(ownAddress());
  closers.push(() => site.stop());
  const [run, token] = [createKeyPair(), '0'.repeat(64)];
  const orders = { intervalMs: 50, deadline: new Date(Date.now() + 120_000).toISOString() };
  const main = await startMainServer(run, token, orders);
  const bucket = await startBucket();
  closers.push(
    () => main.close(),
    () => bucket.close(),
  );
  const address = ownAddress();
  const apiPort = await freePort(address);
  const common = oneTitle(`${site.url}/item/{id}`);
  const settings: InstanceSettings = {
    run: 'run-1',
    slot: 1,
    epoch: 1,
    token,
    runPublicKey: exportPublicKey(run.publicKey),
    callbackUrl: main.url,
    apiPort,
    localPort: await freePort(address),
    bundle: { url: 'http://127.0.0.1/bundle', sha256: '0'.repeat(64) },
    s3: { region: 'us-east-1', bucket: 'bucket', endpoint: bucket.url },
    startedAt: new Date().toISOString(),
    deadline: orders.deadline,
    powerOffAt: new Date(Date.now() + 180_000).toISOString(),
    heartbeatMs: 200,
    partMs: 300,
    mapping: common.mapping,
    site: {
      ...common.site,
      intervalMs: orders.intervalMs,
      timeoutMs: 20_000,
      userAgent: USER_AGENT,
      allowPrivate: false,
      render: 'browser',
    },
  };
  const warnings: string[] = [];
  const parts = {
    settings,
    metadata: { instanceId: 'i-0123456789abcdef0', address, userData: '' },
    metadataEndpoint: 'http://169.254.169.254',
    folder: new StateFolder(folder.file('state'), settings, systemClock.now()),
    chromiumPath: folder.file('browser'),
    openStore: async () =>
      new S3ObjectStore({
        ...settings.s3,
        localAddress: address,
        credentials: { accessKeyId: 'x', secretAccessKey: 'x' },
      }),
    readUserId: () => Promise.resolve('AROA1:i-1'),
    clock: systemClock,
    random: systemRandom,
    log: {
      info: () => undefined,
      warn: (_fields: object, text: string) => void warnings.push(text),
      error: () => undefined,
    },
  };
  const offer = async (): Promise<void> => {
    const products = Array.from({ length: PRODUCTS }, (_, i) => ({ n: i + 1, id: `p${i + 1}` }));
    const body = JSON.stringify({ chunk: '1-1', share: 100, products });
    const envelope = { method: 'POST', path: offerPath(settings.run), run: settings.run };
    const headers = {
      'content-type': 'application/json',
      ...envelopeHeaders(envelope, signMessage(run.privateKey, envelope, body)),
    };
    await until('the offer to be taken', async () => {
      const reply = await request(`http://${address}:${apiPort}${envelope.path}`, {
        method: 'POST',
        headers,
        body,
      }).catch(() => null);
      await reply?.body.dump();
      return reply?.statusCode === 202;
    });
  };
  const results = () =>
    [...bucket.objects]
      .filter(([key]) => key.endsWith('.ndjson.gz'))
      .flatMap(([, bytes]) => gunzipSync(bytes).toString('utf8').trim().split('\n'))
      .map((line) => itemResultSchema.parse(JSON.parse(line)));
  return { site, main, parts, offer, results };
}

it('ends without failing a product: the next process crawls them all', { tags: ['nightly'] }, async () => {
  const folder = tempDir();
  closers.push(() => folder.remove());
  closers.push(() => killLeftovers(folder.path));
  const refuse = folder.file('refuse');
  unsureBrowser(folder.file('browser'), refuse);
  const { site, main, parts, offer, results } = await createInstance(folder);
  let breaks = true;
  for (let n = 1; n <= PRODUCTS; n++) {
    site.pages.set(`/item/p${n}`, (_request, response) => {
      response.writeHead(200, { 'content-type': 'text/html' });
      if (n !== 3 || !breaks) return void response.end(`<h1>Item ${n}</h1>`);
      breaks = false;
      writeFileSync(refuse, '');
      killLeftovers(folder.file('state'));
    });
  }

  const stop = new AbortController();
  closers.push(() => stop.abort());
  const first = runInstance(parts, stop.signal);
  first.catch(() => undefined);
  await offer();
  await expect(first).rejects.toMatchObject({ code: 'platform', message: expect.stringContaining('did not start') });
  expect(site.paths()).toEqual(['/item/p1', '/item/p2', '/item/p3']);

  rmSync(refuse);
  main.orders.sealed = true;
  const second = runInstance(parts, stop.signal);
  await until('the completion', () => main.completions.length > 0, 40_000);
  stop.abort();
  expect(await second).toBe('stopped');
  expect(results().map((r) => [r.id, r.outcome, r.attempts])).toEqual([
    ['p1', 'stored', 1],
    ['p2', 'stored', 1],
    ['p4', 'stored', 1],
    ['p5', 'stored', 1],
    ['p6', 'stored', 1],
    ['p3', 'stored', 2],
  ]);
});
