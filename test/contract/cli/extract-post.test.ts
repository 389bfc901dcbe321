/** `orchestrator extract` of pages that are requested by POST: as the configuration says it. */
import { writeFileSync } from 'node:fs';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { stringify } from 'yaml';
import { startStub, type Stub } from '../crawl-api/http-stub.ts';
import { type TempDir, tempDir } from '../../support/temp-dir.ts';
import { runExtract } from './run-extract.ts';

const asked: string[] = [];
let shop: Stub;
let folder: TempDir;

beforeAll(async () => {
  folder = tempDir('crawlfleet-extract-post-');
  shop = await startStub(({ method, url, headers }, body, response) => {
    asked.push(`${method} ${url} ${headers['content-type'] ?? '-'} ${body.toString('utf8')}`);
    const status = Number(/\/to(\d+)/.exec(url!)?.[1] ?? 200);
    if (status !== 200) response.writeHead(status, { location: '/api' }).end();
    else response.writeHead(200, { 'content-type': 'application/json' }).end('{"data":{"title":"Teapot"}}');
  });
});
afterEach(() => void asked.splice(0));
afterAll(async () => {
  await shop.close();
  folder.remove();
});

const post = { method: 'POST', reads_only: true, body: { id: '{id}' } };
const title = { jsonpath: '$.data.title', required: true };

function configFor(site: object): string {
  const path = folder.file('fleet.yaml');
  const config = {
    site: { product_url: `${shop.url}/api`, request: post, mapping: { fields: { title } }, ...site },
    products: { query: 'select id from products' },
    database: { url: 'sqlite:fleet.db' },
    run: { deadline: '1m' },
  };
  writeFileSync(path, stringify(config));
  return path;
}

it('asks for a product by its ID, and says how', async () => {
  const { exitCode, report, text } = await runExtract({ configPath: configFor({}), id: 'a"b' });
  expect(exitCode).toBe(0);
  expect(asked).toEqual(['POST /api application/json {"id":"a\\"b"}']);
  expect(report).toMatchObject({ outcome: 'stored', url: `${shop.url}/api` });
  expect(text).toContain(`POST ${shop.url}/api {"id":"a\\"b"}`);
});

it('does not advise a browser, which opens pages by GET', async () => {
  const mapping = { fields: { title: { jsonpath: '$.nothing', required: true } } };
  const { exitCode, report, text } = await runExtract({ configPath: configFor({ mapping }), id: 'P1' });
  expect(exitCode).toBe(12);
  expect(report).toMatchObject({ reason: 'parse', post: '{"id":"P1"}' });
  expect(text).not.toContain('--render browser');
});

it('asks for a product by GET where the configuration does', async () => {
  const configPath = configFor({ product_url: `${shop.url}/item/{id}`, request: null });
  expect((await runExtract({ configPath, id: 'a b' })).report.outcome).toBe('stored');
  expect(asked).toEqual(['GET /item/a%20b - ']);
});

it('asks for the page of a section by its request, for the product that is named', async () => {
  const section = { name: 'more', url_patterns: ['/more'], request: post, fields: { title } };
  const product = { name: 'product', fields: { title } };
  const configPath = configFor({
    product_url: `${shop.url}/item/{id}`,
    request: null,
    mapping: { mappings: [section, product] },
  });
  await runExtract({ configPath, url: `${shop.url}/more`, id: 'P1' });
  await runExtract({ configPath, url: `${shop.url}/item/P1` });
  expect(asked).toEqual(['POST /more application/json {"id":"P1"}', 'GET /item/P1 - ']);
  await expect(runExtract({ configPath, url: `${shop.url}/more` })).rejects.toThrow(/is made for a product/);
});

it.each([301, 302, 303])('does not follow a %i', async (status) => {
  const { report } = await runExtract({ configPath: configFor({ product_url: `${shop.url}/to${status}` }), id: 'P1' });
  expect(asked).toHaveLength(1);
  expect(report).toMatchObject({ outcome: 'failed', reason: 'redirect' });
  expect(report.detail).toMatch(/after a POST it asks for a GET, so it is not followed/);
});

it.each([307, 308])('sends the same request to where a %i leads', async (status) => {
  const { report } = await runExtract({ configPath: configFor({ product_url: `${shop.url}/to${status}` }), id: 'P1' });
  expect(asked.map((one) => one.replace(/ \/\S+/, ''))).toEqual(Array(2).fill('POST application/json {"id":"P1"}'));
  expect(report.outcome).toBe('stored');
});

it.each([
  [{ url: true }, /is made for a product/],
  [{ id: 'P1', render: 'browser' }, /a browser opens pages by GET/],
  [{ id: '' }, /the product ID of --id is empty/],
  [{ id: 'P1', file: 'page.html' }, /name one page/],
] as const)('refuses %j', async (flags, message) => {
  const given = 'url' in flags ? { url: `${shop.url}/api` } : flags;
  await expect(runExtract({ configPath: configFor({}), ...given })).rejects.toThrow(message);
  expect(asked).toEqual([]);
});
