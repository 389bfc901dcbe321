/** Sitemaps over HTTP: where their redirects may lead, and how much of them is kept. */
import { createServer, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { afterEach, describe, expect, it } from 'vitest';
import type { DiscoveryConfig } from '../../../orchestrator/features/discovery/discovery-config.ts';
import { siteSection } from '../../../orchestrator/core/config/site-section.ts';
import { readSitemaps } from '../../../orchestrator/features/discovery/read-sitemaps.ts';
import { closeServer, listen } from '../../../shared/adapters/http/listening.ts';

const servers: Server[] = [];
afterEach(() => Promise.all(servers.splice(0).map(closeServer)));

async function serve(answer: RequestListener): Promise<{ origin: string; asked: string[] }> {
  const asked: string[] = [];
  const server = createServer((request, response) => {
    asked.push(request.url!);
    answer(request, response);
  });
  servers.push(server);
  await listen(server, { port: 0, host: '127.0.0.1' });
  return { origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, asked };
}

function read(origin: string, robots?: 'ignore') {
  const site = siteSection.parse({
    product_url: `${origin}/{id}`,
    allow_private: true,
    timeout: '5s',
    interval: '1ms',
    mapping: 'mapping.yaml',
    robots,
  });
  const config = { values: { site }, discovery: { origin }, userAgent: 'test' } as unknown as DiscoveryConfig;
  const over = new AbortController();
  const said: string[] = [];
  const say = (text: string): void => void said.push(text);
  return { said, over, urls: readSitemaps(config, { sitemaps: 'auto', signal: over.signal, say }) };
}

const index = (urls: readonly string[]): string =>
  `<sitemapindex>${urls.map((url) => `<sitemap><loc>${url}</loc></sitemap>`).join('')}</sitemapindex>`;

describe('a redirect of a sitemap', () => {
  const redirecting = async (to: (origin: string) => string, robots?: 'ignore') => {
    const shop = await serve((request, response) => {
      if (request.url === '/robots.txt') response.end('User-agent: *\nDisallow: /private');
      else if (request.url === '/sitemap.xml') response.writeHead(302, { location: to(shop.origin) }).end();
      else response.end('http://x.example/found');
    });
    const { urls, said } = read(shop.origin, robots);
    return { found: (await Array.fromAsync(urls)).length, said, asked: shop.asked };
  };

  it('is followed within the site', async () => {
    expect(await redirecting((origin) => `${origin}/real.xml`)).toMatchObject({ found: 1, said: [] });
  });

  it.each(['ignore', undefined] as const)('to another host is not followed, with robots: %s', async (robots) => {
    const other = await serve((_request, response) => response.end('http://x.example/found'));
    const { found, said } = await redirecting(() => `${other.origin}/sitemap.xml`, robots);
    expect([found, other.asked]).toEqual([0, []]);
    expect(said).toEqual([expect.stringMatching(/leads to .*, another site$/)]);
  });

  it('is not followed to what robots.txt forbids', async () => {
    const { said, asked } = await redirecting((origin) => `${origin}/private/map.xml`);
    expect(asked).toEqual(['/robots.txt', '/sitemap.xml']);
    expect(said).toEqual([expect.stringMatching(/which robots\.txt forbids$/)]);
    expect(await redirecting((origin) => `${origin}/private/map.xml`, 'ignore')).toMatchObject({ found: 1, said: [] });
  });
});

describe('a sitemap on another host', () => {
  /** A name, so that `allow_private` holds: the guard lets the site's own address pass, and no other one. */
  const byName = (origin: string): string => origin.replace('127.0.0.1', 'localhost');
  const answers =
    (files: () => Record<string, string>): RequestListener =>
    (request, response) => {
      const file = files()[request.url!];
      if (file === undefined) response.writeHead(404).end();
      else response.end(file);
    };
  const withOther = async (files: (cdn: string) => Record<string, string>, cdnFiles: Record<string, string>) => {
    const other = await serve(answers(() => cdnFiles));
    const cdn = byName(other.origin);
    const shop = await serve(answers(() => files(cdn)));
    const { urls, said } = read(shop.origin);
    return { found: (await Array.fromAsync(urls)).map(({ url }) => url), said, asked: other.asked, cdn, shop };
  };
  const MAP = 'https://shop.example/found';

  it('is read where robots.txt names it, after the robots.txt of its host', async () => {
    const files = (cdn: string) => ({ '/robots.txt': `Sitemap: ${cdn}/a.xml\nSitemap: ${cdn}/b.xml` });
    const { found, asked, said } = await withOther(files, { '/a.xml': MAP, '/b.xml': '/relative' });
    expect(asked).toEqual(['/robots.txt', '/a.xml', '/b.xml']);
    expect([found.length, found[0], said]).toEqual([2, MAP, []]);
  });

  it('is read where an index of the site names it, and so are those of its host that it names', async () => {
    const cdnFiles: Record<string, string> = { '/1.xml': MAP };
    const files = (cdn: string) => {
      cdnFiles['/index.xml'] = index([`${cdn}/1.xml`, 'https://third.example/a.xml', 'https://third.example/b.xml']);
      return { '/sitemap.xml': index([`${cdn}/index.xml`]) };
    };
    const { found, asked, said } = await withOther(files, cdnFiles);
    expect([found, asked]).toEqual([[MAP], ['/robots.txt', '/index.xml', '/1.xml']]);
    expect(said).toEqual([
      expect.stringMatching(
        /index\.xml is not on the site and names 2 of other hosts, such as https:\/\/third\.example\/a/,
      ),
    ]);
  });

  it('is not read against the robots.txt of its host', async () => {
    const files = (cdn: string) => ({ '/robots.txt': `Sitemap: ${cdn}/a.xml` });
    const { asked, said } = await withOther(files, { '/robots.txt': 'User-agent: *\nDisallow: /a', '/a.xml': MAP });
    expect(asked).toEqual(['/robots.txt']);
    expect(said).toEqual([expect.stringMatching(/a\.xml is not read: robots\.txt of its host forbids it$/)]);
  });

  it('is not read at a private address', async () => {
    const other = await serve((_request, response) => response.end(MAP));
    const shop = await serve(answers(() => ({ '/robots.txt': `Sitemap: ${other.origin}/a.xml` })));
    const { urls, said } = read(shop.origin);
    expect([await Array.fromAsync(urls), other.asked]).toEqual([[], []]);
    expect(said).toEqual([expect.stringMatching(/127\.0\.0\.1:\d+ is not a public address/)]);
  });
});

describe('indexes of indexes', () => {
  it('are read up to 1,000 sitemaps', { tags: ['nightly'] }, async () => {
    let next = 0;
    const { origin, asked } = await serve((request, response) =>
      request.url === '/robots.txt'
        ? response.writeHead(404).end()
        : response.end(index(Array.from({ length: 20 }, () => `${origin}/${next++}.xml`))),
    );
    const { urls, said } = read(origin);
    expect(await Array.fromAsync(urls)).toEqual([]);
    expect([asked.length, said]).toEqual([1_001, ['! there are more than 1000 sitemaps: the others are not read']]);
  });

  it('keep no URL that will not be read', { tags: ['nightly'] }, async () => {
    setFlagsFromString('--expose-gc');
    const collect = runInNewContext('gc') as () => void;
    const { promise: sixth, resolve } = Promise.withResolvers<void>();
    let next = 0;
    const { origin, asked } = await serve((request, response) => {
      if (request.url === '/robots.txt') return void response.writeHead(404).end();
      if (asked.length === 7) return resolve();
      response.end(index(Array.from({ length: 20_000 }, () => `${origin}/${'x'.repeat(1_000)}${next++}.xml`)));
    });
    collect();
    const before = process.memoryUsage().heapUsed;
    const { urls, over } = read(origin);
    const all = Array.fromAsync(urls);
    await sixth;
    collect();
    // They named 100 MB of URLs.
    expect(process.memoryUsage().heapUsed - before).toBeLessThan(50_000_000);
    over.abort();
    await Promise.all(servers.splice(0).map(closeServer));
    await all;
  });
});
