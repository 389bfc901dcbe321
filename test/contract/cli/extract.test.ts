import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, afterEach, beforeAll, describe, expect, inject, it } from 'vitest';
import { AppError } from '../../../shared/domain/errors.ts';
import { runCommand } from '../../support/processes.ts';
import { tempDir } from '../../support/temp-dir.ts';
import { runExtract } from './run-extract.ts';

const folder = tempDir('crawlfleet-extract-');
afterAll(() => folder.remove());

let files = 0;
function write(text: string | Uint8Array, ending = 'html'): string {
  const path = folder.file(`file-${++files}.${ending}`);
  writeFileSync(path, text);
  return path;
}

const TITLE = write('fields: { title: { css: h1, required: true }, price: { css: .price, integer: true } }\n', 'yaml');

describe('extract --file', () => {
  it('shows each value with its type and its path', async () => {
    const file = write('<h1> Blue  teapot </h1><p class=price>¥ 1,200</p>');
    const { exitCode, text, report } = await runExtract({ mapping: TITLE, file });
    expect(exitCode).toBe(0);
    expect(report).toMatchObject({
      outcome: 'stored',
      by: 'file',
      kind: 'html',
      mapping: 'mapping',
      requests: [],
      dom: [],
      rows: null,
    });
    expect(report.fields).toMatchObject([
      { name: 'title', type: 'text', required: true, value: 'Blue teapot' },
      { name: 'price', type: 'integer', required: false, value: 1200 },
    ]);
    expect(report.fields[1]!.steps.map(({ count, values }) => [count, values])).toEqual([
      [1, ['¥ 1,200']],
      [1, ['¥ 1,200']],
      [1, [1200]],
    ]);
    expect(text).toContain('title  text, required: "Blue teapot"');
    expect(text).toContain('price  integer: 1200');
    expect(text).toContain('The product would be stored.');
  });

  it('shows which source of a field gave its value', async () => {
    const mapping = write('fields: { title: [{ json_ld: name, required: true }, h1, h2] }\n', 'yaml');
    const { text, report } = await runExtract({ mapping, file: write('<h1>A</h1><h2>B</h2>') });
    expect(report.fields[0]).toMatchObject({ value: 'A', sources: { of: 3, won: 2 } });
    expect(text).toContain(
      [
        'title  text, required, from source 2 of 3: "A"',
        '    1. json_ld name  nothing',
        '       trim          nothing',
        '    2. css h1        "A"',
        '       trim          "A"',
      ].join('\n'),
    );
  });

  it('lists the paths that the page has when one finds nothing', async () => {
    const mapping = write(
      'fields: { title: h1, brand: { json_ld: maker }, sku: [{ microdata: sku }, { json_ld: mpn }] }\n',
      'yaml',
    );
    const product = { '@type': 'Product', name: 'A', brand: { name: 'K' }, offers: [{ price: 1 }, { price: 2 }] };
    const file = write(`<h1>A</h1><script type="application/ld+json">${JSON.stringify(product)}</script>`);
    const { text, report } = await runExtract({ mapping, file });
    expect(report.paths).toEqual([
      { source: 'json_ld', paths: ['@type', 'name', 'brand.name', 'offers.price'] },
      { source: 'microdata', paths: [] },
    ]);
    expect(text).toContain('Paths     that json_ld has on this page:\n  @type\n  name\n  brand.name\n  offers.price\n');
    expect(text).toContain('The page has no microdata to read.');
  });

  it('refuses paths in a spelling that finds nothing, with the right one', async () => {
    const paths = ['$.name', 'offers[0].price', 'Product.name', 'Organization.name', 'offers[*].price'];
    const fields = paths.map((path, i) => `  f${i}: { json_ld: ${JSON.stringify(path)} }`).join('\n');
    const mapping = write(`fields:\n${fields}\n`, 'yaml');
    const fault = await runExtract({ mapping, file: write('<h1>A</h1>') }).catch((error: unknown) => error as AppError);
    expect(fault).toMatchObject({ code: 'config-invalid' });
    const lines = (fault as AppError).message.split('\n').slice(1);
    expect(lines.map((line) => /line (\d+).*; write (.*)$/.exec(line)?.slice(1))).toEqual([
      ['2', 'name'],
      ['3', 'offers.0.price'],
      ['4', 'name'],
      ['5', 'name, with node: Organization for that type'],
      ['6', 'offers.price'],
    ]);
  });

  it('refuses jsonpath on a page that is HTML', async () => {
    const mapping = write('fields: { title: h1, price: { jsonpath: "$.offers[0].price" } }\n', 'yaml');
    const { exitCode, text } = await runExtract({ mapping, file: write('<h1>A</h1>') });
    expect(exitCode).toBe(4);
    expect(text).toContain(
      'price: jsonpath reads a page that is JSON, and this one is HTML; of JSON-LD in the page: { json_ld: offers.0.price }',
    );
    expect(text).not.toContain('would be stored');
    const either = write('fields: { title: [{ jsonpath: "$.title" }, h1] }\n', 'yaml');
    expect((await runExtract({ mapping: either, file: write('<h1>A</h1>') })).exitCode).toBe(0);
  });

  it('shows only the requested field', async () => {
    const { report, text } = await runExtract({ mapping: TITLE, file: write('<h1>A</h1>'), field: 'price' });
    expect(report.fields.map((field) => field.name)).toEqual(['price']);
    expect(text).not.toContain('title');
  });

  it('ends with 12 when a required field has no value, and still shows the others', async () => {
    const file = write('<p class=price>5</p>');
    const { exitCode, text, report } = await runExtract({ mapping: TITLE, file });
    expect(exitCode).toBe(12);
    expect(report).toMatchObject({ outcome: 'failed', reason: 'parse', exitCode: 12 });
    expect(report.fields).toMatchObject([
      { name: 'title', value: null },
      { name: 'price', value: 5 },
    ]);
    expect(text).toContain('NO VALUE, but it is required');
    expect(text).toContain('The product would be failed(parse): title has no value, and it is required.');
  });

  it('ends with 12 when no mapping matches the address', async () => {
    const mapping = write('{ url_patterns: [/item/], fields: { title: h1 } }', 'yaml');
    const run = await runExtract({ mapping, file: write('<h1>A</h1>'), urlOf: 'https://shop.example/about' });
    expect(run.exitCode).toBe(12);
    expect(run.report).toMatchObject({ outcome: 'failed', mapping: null, fields: [] });
    expect(run.text).toContain('no mapping has a url_pattern that fits this URL');
  });

  it('uses the mapping whose pattern matches, and resolves links against the address', async () => {
    const mapping = write(
      '- { name: a, url_patterns: [/a/], fields: { title: h1 } }\n' +
        '- { name: b, url_parsers: [a.next], fields: { title: h2, link: { css: a, attr: href, url: true } } }\n',
      'yaml',
    );
    const file = write('<h1>A</h1><h2>B</h2><a class=next href="?page=2">next</a>');
    const { report } = await runExtract({ mapping, file, urlOf: 'https://shop.example/b/1' });
    expect(report).toMatchObject({ mapping: 'b', links: ['https://shop.example/b/1?page=2'] });
    expect(report.fields.map((field) => field.value)).toEqual(['B', 'https://shop.example/b/1?page=2']);
  });

  it('lists records, and shows the path in the first one', async () => {
    const mapping = write(
      '{ rows: { each: li, key: id }, fields: { id: { css: ":scope", attr: id, required: true }, name: b } }',
      'yaml',
    );
    const file = write('<ul><li id=a><b>A</b></li><li><b>no id</b></li><li id=c><b>C</b></li></ul>');
    const { report, text } = await runExtract({ mapping, file });
    expect(report.rows).toEqual([
      { key: 'a', row: { id: 'a', name: 'A' } },
      { key: 'c', row: { id: 'c', name: 'C' } },
    ]);
    expect(report.fields).toMatchObject([
      { name: 'id', value: 'a' },
      { name: 'name', value: 'A' },
    ]);
    expect(text).toContain('Records   2');
  });

  it('names the field that needs a tree', async () => {
    const mapping = write('fields: { a: h1, b: { xpath: //h1 }, c: "h1:has(b)" }', 'yaml');
    const { report, text } = await runExtract({ mapping, file: write('<h1>A <b>B</b></h1>') });
    expect(report.dom).toEqual(['b: xpath //h1', 'c: css h1:has(b)']);
    expect(report.fields.map((field) => field.value)).toEqual(['A B', 'A B', 'A B']);
    expect(text).toContain('as a tree, which is slower, for b: xpath //h1');
  });

  it('decodes the bytes as a crawl would, whatever their encoding', async () => {
    // 価格 in Shift_JIS.
    const bytes = Buffer.from([0x89, 0xbf, 0x8a, 0x69]);
    const file = write(Buffer.concat([Buffer.from('<meta charset=shift_jis><h1>'), bytes, Buffer.from('</h1>')]));
    const { report } = await runExtract({ mapping: TITLE, file });
    expect(report.fields[0]!.value).toBe('価格');
  });

  it('prints no control sequence of the page', async () => {
    const file = write('<h1>\u001b[2J\u009b31m\u202eevil</h1>');
    const { text, report } = await runExtract({ mapping: TITLE, file });
    expect(report.fields[0]!.value).toContain('evil');
    expect(text).toContain('evil');
    for (const control of ['\u001b', '\u009b', '\u202e']) expect(text).not.toContain(control);
  });

  it('gives up a page that is too large', async () => {
    const file = write(`<h1>A</h1>${'x'.repeat(5_100_000)}`);
    const { exitCode, report } = await runExtract({ mapping: TITLE, file });
    expect(exitCode).toBe(1);
    expect(report).toMatchObject({ outcome: 'failed', reason: 'too-large', fields: [] });
  });
});

describe('extract --url', () => {
  const asked: { path: string; userAgent: string | undefined }[] = [];
  const server = http.createServer((request, response) => {
    const path = request.url ?? '';
    asked.push({ path, userAgent: request.headers['user-agent'] });
    if (path === '/old') response.writeHead(301, { location: '/item' }).end();
    else if (path === '/gate' && request.headers.cookie !== 's=1')
      response.writeHead(302, { location: '/gate', 'set-cookie': 's=1' }).end();
    else if (path === '/gate') response.writeHead(200, { 'content-type': 'text/html' }).end('<h1>A</h1>');
    else if (path === '/wall' && request.headers.cookie !== 'ok=1')
      response.writeHead(302, { location: '/consent' }).end();
    else if (path === '/wall') response.writeHead(200, { 'content-type': 'text/html' }).end('<h1>A</h1>');
    else if (path === '/consent')
      response
        .writeHead(200, { 'content-type': 'text/html', 'set-cookie': 'ok=1' })
        .end('<h1>Before you continue</h1>');
    else if (path === '/away') response.writeHead(302, { location: 'https://other.example/' }).end();
    else if (path === '/item') response.writeHead(200, { 'content-type': 'text/html' }).end('<h1>A</h1>');
    else if (path === '/script')
      response
        .writeHead(200, { 'content-type': 'text/html' })
        .end('<body><script>document.body.innerHTML="<h1>A</h1>"</script>');
    else if (path === '/down') response.writeHead(503).end('<h1>down</h1>');
    else response.writeHead(404).end('<h1>no</h1>');
  });
  let origin = '';
  beforeAll(async () => {
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.41', resolve));
    origin = `http://127.0.0.41:${(server.address() as AddressInfo).port}`;
  });
  afterAll(async () => {
    const closed = once(server, 'close');
    server.close();
    server.closeAllConnections();
    await closed;
  });
  afterEach(() => void asked.splice(0));

  it('makes one request and identifies itself', async () => {
    const { exitCode, report } = await runExtract({
      mapping: TITLE,
      url: `${origin}/item`,
      userAgent: 'testbot (+https://a.example)',
    });
    expect(exitCode).toBe(0);
    expect(asked).toEqual([{ path: '/item', userAgent: 'testbot (+https://a.example)' }]);
    expect(report).toMatchObject({ outcome: 'stored', requests: [{ url: `${origin}/item`, status: 200 }] });
    expect(report.fields[0]!.value).toBe('A');
  });

  it('follows a redirect within the site', async () => {
    const { report } = await runExtract({ mapping: TITLE, url: `${origin}/old` });
    expect(report.requests).toEqual([
      { url: `${origin}/old`, status: 301 },
      { url: `${origin}/item`, status: 200 },
    ]);
    expect(report.outcome).toBe('stored');
  });

  it.each([
    ['/gate', ['/gate', '/gate']],
    ['/wall', ['/wall', '/consent', '/wall']],
  ])('sends the cookies of %s back', async (path, paths) => {
    const { report } = await runExtract({ mapping: TITLE, url: origin + path });
    expect([report.outcome, report.fields[0]!.value]).toEqual(['stored', 'A']);
    expect(asked.map((request) => request.path)).toEqual(paths);
  });

  it('names the cookie that it does not send back, by the configuration', async () => {
    const config = write(
      `site: { product_url: "${origin}/{id}", keep_cookies: false, mapping: { fields: { title: h1 } } }\n` +
        'database: { url: "sqlite:fleet.db" }\nproducts: { query: "select 1 as id" }\naws: { region: eu-west-1, bucket: b-1 }\n',
      'yaml',
    );
    const { text } = await runExtract({ configPath: config, url: `${origin}/gate` });
    expect(text).toContain('The site sets the cookie s: set site.keep_cookies to true');
    expect(asked).toHaveLength(1);
  });

  it.each([
    ['/away', 'failed(redirect): leaves the site: to https://other.example/'],
    ['/down', 'failed(http-status)'],
    ['/none', 'The site says that there is no such page: status 404'],
  ])('ends with 1 for %s and explains why', async (path, expected) => {
    const { exitCode, text, report } = await runExtract({ mapping: TITLE, url: origin + path });
    expect(exitCode).toBe(1);
    expect(text).toContain(expected);
    expect(report.fields).toEqual([]);
    expect(asked).toHaveLength(1);
  });

  it('renders the page on request, and suggests it when it may help', async () => {
    const plain = await runExtract({ mapping: TITLE, url: `${origin}/script` });
    expect(plain.exitCode).toBe(12);
    expect(plain.text).toContain('try --render browser');
    const rendered = await runExtract({
      mapping: TITLE,
      url: `${origin}/script`,
      render: 'browser',
      chromiumPath: inject('chromiumPath'),
    });
    expect(rendered.exitCode).toBe(0);
    expect(rendered.report).toMatchObject({ by: 'browser', outcome: 'stored' });
    expect(rendered.report.fields[0]!.value).toBe('A');
  });

  it('names what to install where there is no browser', async () => {
    const chromiumPath = folder.file('no-browser');
    const run = runExtract({ mapping: TITLE, url: `${origin}/item`, render: 'browser', chromiumPath });
    await expect(run).rejects.toMatchObject({ code: 'platform', hint: expect.stringContaining('Chromium') as string });
    expect(asked).toEqual([]);
  });

  it('refuses a name that resolves to a private address', async () => {
    const url = origin.replace('127.0.0.41', 'localhost');
    const { exitCode, report } = await runExtract({ mapping: TITLE, url });
    expect(exitCode).toBe(1);
    expect(report).toMatchObject({ outcome: 'failed', reason: 'network' });
    expect(report.detail).toContain('not public');
  });

  it('takes mapping and site settings from a configuration', async () => {
    const config = write(
      `site: { product_url: "${origin}/{id}", user_agent: "configured (+https://a.example)", mapping: "${TITLE}" }\n` +
        'products: { query: "select 1 id" }\ndatabase: { url: "sqlite:./x.db" }\n',
      'yaml',
    );
    const { report } = await runExtract({ configPath: config, url: `${origin}/item` });
    expect(report.outcome).toBe('stored');
    expect(asked[0]!.userAgent).toBe('configured (+https://a.example)');
  });
});

describe('the command line', () => {
  const run = (...args: string[]) => runCommand(process.execPath, ['orchestrator/main.ts', 'extract', ...args]);

  it('prints one JSON document with --json', async () => {
    const { stdout, exitCode } = await run('--mapping', TITLE, '--file', write('<h1>A</h1>'), '--json');
    expect(exitCode).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({ outcome: 'stored', exitCode: 0 });
  });

  it('prints faults of the mapping as JSON, too', async () => {
    const mapping = write('fields: { title: { css: h1, al: true } }', 'yaml');
    const { stdout, stderr, exitCode } = await run('--mapping', mapping, '--file', write('<h1>A</h1>'), '--json');
    expect(exitCode).toBe(4);
    expect(JSON.parse(stdout)).toMatchObject({ error: { code: 'config-invalid' }, exitCode: 4 });
    expect(stderr).toContain('line 1: fields.title.al: unknown key');
  });

  it('ends with 2 for a way to render that does not exist', async () => {
    expect((await run('--mapping', TITLE, '--url', 'https://a.example/', '--render', 'auto')).exitCode).toBe(2);
  });
});

describe('extract refuses', () => {
  const page = write('<h1>A</h1>');
  it.each<[RegExp, Parameters<typeof runExtract>[0], 'usage' | 'config-missing' | 'config-invalid']>([
    [/name one page/, { mapping: TITLE }, 'usage'],
    [/name one page/, { mapping: TITLE, file: page, url: 'https://a.example/' }, 'usage'],
    [/is not an http or https URL/, { mapping: TITLE, url: 'shop.example/1' }, 'usage'],
    [/--url-of goes with --file/, { mapping: TITLE, url: 'https://a.example/', urlOf: 'https://b.example/' }, 'usage'],
    [/there is no file/, { mapping: TITLE, file: folder.file('none.html') }, 'usage'],
    [/needs --url/, { mapping: TITLE, file: page, render: 'browser' }, 'usage'],
    [/no field brand/, { mapping: TITLE, file: page, field: 'brand' }, 'usage'],
    [/cannot read the mapping/, { mapping: folder.file('none.yaml'), file: page }, 'config-missing'],
    [/cannot read the configuration/, { configPath: folder.file('none.yaml'), file: page }, 'config-missing'],
    [
      /line 3: fields\.price\.intger: unknown key/,
      { mapping: write('fields:\n  title: "h1"\n  price: { css: "p", intger: true }\n', 'yaml'), file: page },
      'config-invalid',
    ],
    [
      /the address of the file counts/,
      { mapping: write('{ url_patterns: [/a/], fields: { title: h1 } }', 'yaml'), file: page },
      'usage',
    ],
  ])('what has the fault %s', async (message, flags, code) => {
    const error = await runExtract(flags).then(
      () => null,
      (thrown: unknown) => thrown,
    );
    expect(error).toBeInstanceOf(AppError);
    expect(error).toMatchObject({ code, exitCode: code === 'usage' ? 2 : 4 });
    expect((error as AppError).message).toMatch(message);
    expect((error as AppError).hint).toBeTruthy();
  });
});
