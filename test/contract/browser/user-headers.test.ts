/** Headers and cookies of the user in a browser, over plain HTTP and over TLS: what arrives where. */
import { writeFileSync } from 'node:fs';
import { createServer as createPlain, type IncomingMessage, type ServerResponse } from 'node:http';
import { createServer as createTls } from 'node:https';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { PageAnswer } from '../../../crawl-api/fetch/page-result.ts';
import { UserHeaders } from '../../../crawl-api/fetch/user-headers.ts';
import { createAddressGuard } from '../../../shared/adapters/http/address-guard.ts';
import { CookieJar } from '../../../shared/adapters/http/cookie-jar.ts';
import { systemClock } from '../../../shared/adapters/system-clock.ts';
import { makeSelfSigned } from '../../support/self-signed.ts';
import { tempDir } from '../../support/temp-dir.ts';
import { chromiumPath, neverAborted, NO_HOOKS, openStage, Site, type Stage, titleOf } from './stage.ts';

const [SHOP, OTHER] = ['127.0.7.24', '127.0.7.25'];
const folder = tempDir();

interface Hit {
  port: number;
  path: string;
  key: string | undefined;
  language: string | undefined;
  cookie: string | undefined;
}

describe.each(['http', 'https'] as const)('headers of the user in a browser, by %s', (scheme) => {
  const hits: Hit[] = [];
  const servers: (ReturnType<typeof createPlain> | ReturnType<typeof createTls>)[] = [];
  const certificates = { [SHOP]: makeSelfSigned(SHOP), [OTHER]: makeSelfSigned(OTHER) };
  const pages = new Map<string, string>();
  const urls = { shop: '', port: '', other: '', plain: '' };
  let site: Site;
  let stage: Stage;

  const answer = (request: IncomingMessage, response: ServerResponse): void => {
    const { headers, socket, url = '' } = request;
    const path = url.split('?')[0]!;
    const port = socket.localPort!;
    const key = headers['x-key'] as string | undefined;
    hits.push({ port, path, key, language: headers['accept-language'], cookie: headers.cookie });
    const to = new URLSearchParams(url.split('?')[1]).get('to');
    response.setHeader('access-control-allow-origin', '*');
    if (to !== null) return void response.writeHead(302, { location: to }).end();
    response.setHeader('set-cookie', ['currency=EUR; Path=/', 'visit=7; Path=/']);
    response.writeHead(200, { 'content-type': 'text/html' }).end(pages.get(path) ?? '<h1>a page</h1>');
  };

  async function listen(address: string, secure = scheme === 'https'): Promise<string> {
    const server = secure ? createTls(certificates[address]!, answer) : createPlain(answer);
    servers.push(server);
    await new Promise<void>((resolve) => server.listen(0, address, resolve));
    return `${secure ? 'https' : 'http'}://${address}:${(server.address() as AddressInfo).port}`;
  }

  beforeAll(async () => {
    urls.shop = await listen(SHOP);
    urls.port = await listen(SHOP);
    urls.other = await listen(OTHER);
    urls.plain = await listen(SHOP, false);
    site = await Site.start('127.0.7.26');
    const trusted = Object.values(certificates)
      .map(({ spkiHash }) => spkiHash)
      .join(',');
    const file = folder.file(`chromium-${scheme}`);
    const flags = `--ignore-certificate-errors-spki-list=${trusted}`;
    writeFileSync(file, `#!/bin/sh\nexec "${chromiumPath()}" "$@" ${flags}\n`, { mode: 0o755 });
    const guard = createAddressGuard({
      productUrl: `${urls.shop}/{id}`,
      further: [urls.port, urls.other, urls.plain],
      allowPrivate: false,
      forbidden: [],
    });
    stage = await openStage(site, { guard, executablePath: file, userOrigins: [urls.shop] });
  });
  beforeEach(() => {
    hits.length = 0;
    pages.clear();
  });
  afterAll(async () => {
    await stage.close();
    await site.stop();
    for (const server of servers) {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    }
  });

  const given = () =>
    new UserHeaders({
      userHeaders: [
        {
          origin: urls.shop,
          headers: { 'x-key': 'the-key', 'accept-language': 'de-CH' },
          cookies: { currency: 'JPY', session: { secret: '${A}' } },
        },
      ],
    });
  const jar = new CookieJar(systemClock);

  async function visit(path: string, at = urls.shop): Promise<PageAnswer> {
    const headers = given();
    headers.take('1', { values: { '${A}': 'the-session' }, masked: [] });
    const request = { cookies: jar, sends: headers.at(at + path) };
    const page = await stage.source.fetch(at + path, NO_HOOKS, neverAborted(), request);
    if (page.kind !== 'not-now') page.reply?.cookies?.keep();
    return page;
  }
  const at = (url: string): Hit[] => hits.filter(({ port }) => port === Number(new URL(url).port));

  it('go with the page, its scripts and its frames, and what the site sets does not replace them', async () => {
    pages.set(
      '/p/1',
      '<body><iframe src="/frame"></iframe><script>fetch("/data").then((r) => r.text()).then(() => { document.body.innerHTML = `<h1>${document.cookie}</h1>` })</script>',
    );
    const first = String(titleOf(await visit('/p/1')));
    expect(await visit('/p/2')).toMatchObject({ kind: 'page' });
    for (const { path, key, language } of at(urls.shop))
      expect([path, key, language]).toEqual([path, 'the-key', 'de-CH']);
    expect(new Set(hits.map(({ path }) => path))).toEqual(new Set(['/p/1', '/frame', '/data', '/p/2']));
    for (const path of ['/p/1', '/p/2'])
      expect(hits.find((hit) => hit.path === path)!.cookie).toContain('currency=JPY; session=the-session');
    expect(hits.find(({ path }) => path === '/p/2')!.cookie).toContain('visit=7');
    // A page's scripts may read what is no secret.
    expect(first).toContain('currency=');
    expect(first).not.toContain('the-session');
    expect(jar.names(urls.shop)).not.toContain('session');
  });

  it('do not go to third parties, other ports and other schemes that a page loads from', async () => {
    const from = [urls.other, urls.port, urls.plain];
    const scripts = from.map((url) => `<script src="${url}/x.js"></script><iframe src="${url}/frame"></iframe>`);
    const sockets = from.map((url) => `try { new WebSocket("${url.replace(/^http/, 'ws')}/ws") } catch {}`);
    pages.set('/p/3', `<body>${scripts.join('')}<script>${sockets.join('\n')}</script><h1>with others</h1>`);
    expect(titleOf(await visit('/p/3'))).toBe('with others');
    expect(at(urls.shop)[0]).toMatchObject({ path: '/p/3', key: 'the-key' });
    expect(at(urls.other).length).toBeGreaterThan(0);
    for (const url of from)
      for (const hit of at(url)) {
        expect(hit).toMatchObject({ key: undefined });
        expect(hit.language).not.toBe('de-CH');
        expect(hit.cookie ?? '').not.toMatch(/JPY|the-session/);
      }
    expect([...at(urls.port), ...at(urls.plain)]).toEqual([]);
  });

  it('do not follow a redirect of what a page loads to anywhere else, and come back with one to their authority', async () => {
    const away = encodeURIComponent(`${urls.other}/away`);
    const back = encodeURIComponent(`${urls.shop}/back`);
    pages.set(
      '/p/4',
      `<body><script>Promise.all([fetch("/go?to=${away}"), fetch("${urls.other}/go2?to=${back}", { mode: "no-cors" })]).finally(() => { document.body.innerHTML = "<h1>went</h1>" })</script>`,
    );
    expect(titleOf(await visit('/p/4'))).toBe('went');
    expect(hits.find(({ path }) => path === '/go')).toMatchObject({ key: 'the-key', language: 'de-CH' });
    const elsewhere = at(urls.other);
    expect(elsewhere.map(({ path }) => path).toSorted()).toEqual(['/away', '/go2']);
    for (const { key, language, cookie } of elsewhere) {
      expect([key, cookie]).toEqual([undefined, undefined]);
      expect(language).not.toBe('de-CH');
    }
    expect(hits.find(({ path }) => path === '/back')).toMatchObject({ key: 'the-key' });
  });

  it('do not go with a page at another authority, nor with what it loads from theirs', async () => {
    pages.set('/p/5', `<body><script src="${urls.shop}/x.js"></script><h1>elsewhere</h1>`);
    expect(titleOf(await visit('/p/5', urls.other))).toBe('elsewhere');
    expect(hits.length).toBeGreaterThan(0);
    for (const { key, cookie } of hits)
      expect([key, cookie ?? '']).toEqual([undefined, expect.not.stringContaining('JPY')]);
  });

  it('leave no cookie of the user behind for a page without them', async () => {
    await visit('/p/6');
    await stage.source.fetch(`${urls.port}/p/7`, NO_HOOKS, neverAborted(), { cookies: null });
    expect(at(urls.port)).toMatchObject([{ path: '/p/7', key: undefined, cookie: undefined }]);
  });
});

afterAll(() => folder.remove());
