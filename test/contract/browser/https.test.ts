/** Rendering over TLS: the proxy tunnels it, and still sees when the request goes out. */
import { writeFileSync } from 'node:fs';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createAddressGuard } from '../../../shared/adapters/http/address-guard.ts';
import { makeSelfSigned, type SelfSigned } from '../../support/self-signed.ts';
import { tempDir } from '../../support/temp-dir.ts';
import { chromiumPath, LOCAL_ADDRESS, neverAborted, NO_HOOKS, openStage, Site, type Stage, titleOf } from './stage.ts';

const ADDRESS = '127.0.7.14';
const folder = tempDir();
let certificate: SelfSigned;
let plain: Site;
let stage: Stage;
let url: string;
const asked: { path: string; from: string }[] = [];
let onRequest = (): void => {};

const server = createServer((request, response) => {
  asked.push({ path: request.url ?? '', from: request.socket.remoteAddress ?? '' });
  onRequest();
  if (request.url === '/p/away') return void response.writeHead(302, { location: 'https://169.254.169.254/' }).end();
  response.writeHead(200, { 'content-type': 'text/html' });
  response.end(request.url?.startsWith('/data') ? 'tunnelled' : (SCRIPTS[request.url ?? ''] ?? PAGE));
});
const SCRIPTS: Record<string, string> = {
  '/p/reload': '<script>setInterval(() => location.reload(), 1)</script>',
  '/p/flood':
    '<body><script>(async () => { for (let i = 0; i < 400; i++) await fetch("/data?" + i).catch(() => {}); document.body.innerHTML = "<h1>flooded</h1>" })()</script>',
};
const PAGE =
  '<body><script>fetch("/data").then((r) => r.text()).then((t) => { document.body.innerHTML = `<h1>${t}</h1>` })</script>';

beforeAll(async () => {
  certificate = makeSelfSigned(ADDRESS);
  server.setSecureContext(certificate);
  await new Promise<void>((resolve) => server.listen(0, ADDRESS, resolve));
  url = `https://${ADDRESS}:${(server.address() as AddressInfo).port}`;
  plain = await Site.start('127.0.7.15');
  stage = await openStage(plain, { guard: guardOf(), executablePath: trusting(certificate.spkiHash) });
});
afterAll(async () => {
  await stage.close();
  await plain.stop();
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
  folder[Symbol.dispose]();
});

const guardOf = () => createAddressGuard({ productUrl: `${url}/p/{id}`, allowPrivate: false, forbidden: [] });

/** A browser that trusts this one key: Chromium has no other way to add a certificate for one start. */
function trusting(spkiHash: string): string {
  const file = folder.file('trusting-chromium');
  writeFileSync(file, `#!/bin/sh\nexec "${chromiumPath()}" "$@" --ignore-certificate-errors-spki-list=${spkiHash}\n`, {
    mode: 0o755,
  });
  return file;
}

describe('the browser source over TLS', () => {
  it('reads a page and what its scripts fetch, from its own address', async () => {
    expect(titleOf(await stage.source.fetch(`${url}/p/1`, NO_HOOKS, neverAborted()))).toBe('tunnelled');
    expect(asked.slice(-2)).toEqual([
      { path: '/p/1', from: LOCAL_ADDRESS },
      { path: '/data', from: LOCAL_ADDRESS },
    ]);
  });

  it('reports the start before the request is sent, then the first byte, also on a kept-alive connection', async () => {
    for (const path of ['/p/2', '/p/3']) {
      const events: string[] = [];
      onRequest = () => void events.push('asked');
      const hooks = { onStart: () => void events.push('start'), onFirstByte: () => void events.push('first byte') };
      expect(titleOf(await stage.source.fetch(url + path, hooks, neverAborted()))).toBe('tunnelled');
      expect(events).toEqual(['start', 'asked', 'first byte', 'asked']);
    }
    onRequest = () => {};
  });

  it('sends one request for a page that reloads itself', async () => {
    const before = asked.length;
    const result = await stage.source.fetch(`${url}/p/reload`, NO_HOOKS, neverAborted());
    expect(result).toMatchObject({ kind: 'redirect', to: `${url}/p/reload`, reply: { body: SCRIPTS['/p/reload'] } });
    expect(titleOf(await stage.source.fetch(`${url}/p/1`, NO_HOOKS, neverAborted()))).toBe('tunnelled');
    expect(asked.slice(before).map(({ path }) => path)).toEqual(['/p/reload', '/p/1', '/data']);
  });

  it('fails with network when the certificate is not trusted', async () => {
    const strict = await openStage(plain, { guard: guardOf() });
    const before = asked.length;
    try {
      const result = await strict.source.fetch(`${url}/p/5`, NO_HOOKS, neverAborted());
      expect(result).toMatchObject({ kind: 'failed', reason: 'network', detail: expect.stringMatching(/CERT/) });
      expect(asked.length).toBe(before);
    } finally {
      await strict.close();
    }
  });
});
