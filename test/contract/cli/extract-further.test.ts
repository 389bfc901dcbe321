/** `orchestrator extract --url` with further pages of the product, at a site with a robots.txt. */
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { tempDir } from '../../support/temp-dir.ts';
import { runExtract } from './run-extract.ts';

const folder = tempDir('crawlfleet-extract-further-');
const asked: string[] = [];
const REVIEWS = 4;

/** A product whose reviews are on four pages; of another, one page has the price. */
const site = http.createServer((request, response) => {
  const { pathname, searchParams } = new URL(request.url!, 'http://site');
  asked.push(request.url!);
  if (pathname === '/robots.txt') return void response.end('User-agent: *\nDisallow: /forbidden\n');
  response.setHeader('content-type', 'text/html');
  const page = Number(searchParams.get('page') ?? 1);
  const next = page < REVIEWS ? `<a class=next href="${pathname}?page=${page + 1}">next</a>` : '';
  const pages: Record<string, string> = {
    '/reviews': `<li id=r${page}>good</li>${next}`,
    '/partly': `<li id=r1>good</li><a class=next href="/forbidden/2">next</a>`,
    '/item': '<h1>A</h1><a class=next href="/item/price">price</a>',
    '/item/price': '<b class=price>5</b>',
    '/away': '<li id=r1>good</li><a class=next href="/gone-away">next</a>',
  };
  if (pathname === '/gone-away') return void response.writeHead(302, { location: 'http://other.example/' }).end();
  const body = pages[pathname];
  response.writeHead(body === undefined ? 404 : 200).end(body ?? 'none');
});
let origin = '';

beforeAll(async () => {
  await once(site.listen(0, '127.0.0.43'), 'listening');
  origin = `http://127.0.0.43:${(site.address() as AddressInfo).port}`;
});
afterEach(() => void asked.splice(0));
afterAll(() => {
  site.close();
  folder.remove();
});

let files = 0;
function configOf(mapping: string, more = ''): string {
  const path = folder.file(`fleet-${++files}.yaml`);
  writeFileSync(
    path,
    `site: { product_url: "${origin}/{id}", interval: 20ms, ${more}mapping: ${mapping} }\n` +
      'products: { query: "select 1 id" }\ndatabase: { url: "sqlite:./x.db" }\n',
  );
  return path;
}
const ROWS =
  '{ url_parsers: [a.next], rows: { each: li, key: id }, fields: { id: { css: ":scope", attr: id, required: true } } }';
const ONE = '{ url_parsers: [a.next], fields: { title: h1, price: { css: .price, integer: true, required: true } } }';

it('reads three pages of the product, and says how many more there are', async () => {
  const { report, text, exitCode } = await runExtract({ configPath: configOf(ROWS), url: `${origin}/reviews` });
  expect(exitCode).toBe(0);
  expect(asked).toEqual(['/robots.txt', '/reviews', '/reviews?page=2', '/reviews?page=3']);
  expect(report.rows?.map(({ key }) => key)).toEqual(['r1', 'r2', 'r3']);
  expect(report.further).toEqual({
    requests: [2, 3].map((page) => ({ url: `${origin}/reviews?page=${page}`, status: 200 })),
    leftOut: {},
    partial: false,
    notRead: 1,
  });
  expect(text).toContain('… and 1 more, which --pages would read');
  expect(text).toContain('The product would be stored.');
});

it('reads as many as --pages says, up to the limit of a run', async () => {
  const all = await runExtract({ configPath: configOf(ROWS), url: `${origin}/reviews`, pages: 9 });
  expect(all.report.further).toMatchObject({ requests: { length: 3 }, leftOut: {}, notRead: 0 });
  const limited = configOf(ROWS, 'pages_per_product: { mean: 2, max: 2 }, ');
  const { report, text } = await runExtract({ configPath: limited, url: `${origin}/reviews`, pages: 9 });
  expect(report.further).toMatchObject({
    requests: { length: 1 },
    leftOut: { limit: { pages: 1, example: `${origin}/reviews?page=3` } },
    partial: true,
  });
  expect(text).toContain('The product would be stored as partial');
  asked.splice(0);
  await runExtract({ configPath: configOf(ROWS), url: `${origin}/reviews`, pages: 1 });
  expect(asked).toEqual(['/reviews']);
});

it('says which pages robots.txt forbids, and does not ask for them', async () => {
  const { report, text } = await runExtract({ configPath: configOf(ROWS), url: `${origin}/partly` });
  expect(asked).toEqual(['/robots.txt', '/partly']);
  expect(report.further).toMatchObject({ partial: true, leftOut: { robots: { pages: 1 } } });
  expect(text).toContain(`left out: 1 forbidden by robots.txt, of 1 product, such as ${origin}/forbidden/2`);
});

it('says that a page leads to another host', async () => {
  const { report } = await runExtract({ configPath: configOf(ROWS), url: `${origin}/away` });
  expect(report).toMatchObject({ outcome: 'stored', further: { leftOut: { elsewhere: { pages: 1 } }, partial: true } });
});

it('finds a required field on a further page', async () => {
  const { report, exitCode } = await runExtract({ configPath: configOf(ONE), url: `${origin}/item` });
  expect(exitCode).toBe(0);
  expect(report).toMatchObject({ outcome: 'stored', further: { requests: [{ status: 200 }] } });
});

it('refuses --pages for a saved page', async () => {
  const file = folder.file('page.html');
  writeFileSync(file, '<li id=r1>good</li>');
  await expect(runExtract({ configPath: configOf(ROWS), file, pages: 2 })).rejects.toMatchObject({ code: 'usage' });
});
