/** From a shop's URL to the first rows: `init --url`, then a dry run with what it wrote, by the real command line. */
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import type { RunReport } from '../../orchestrator/core/model/report.ts';
import { type CommandResult, runCommand } from '../support/processes.ts';
import { type Shop, startShop } from '../support/shop/start-shop.ts';
import { type TempDir, tempDir } from '../support/temp-dir.ts';
import { LAUNCHER } from './fleet.ts';

describe('init --url', () => {
  let shop: Shop;
  let folder: TempDir;
  beforeAll(async () => {
    shop = await startShop({ products: 20 });
    folder = tempDir('crawlfleet-init-');
  });
  afterAll(async () => {
    folder.remove();
    await shop.stop();
  });

  const orchestrator = (...args: string[]): Promise<CommandResult> => runCommand(process.execPath, [LAUNCHER, ...args]);
  const page = (id: string): string => shop.productUrl.replace('{id}', id);

  it('writes a configuration that crawls the shop', { tags: ['nightly'] }, async () => {
    const target = folder.file('shop');
    const made = await orchestrator('init', target, '--url', page('P00011'), page('P00012'));
    expect(made.exitCode, made.stderr).toBe(0);
    expect(made.stdout).toContain(`A product page is ${shop.productUrl}`);
    const mapping = parse(readFileSync(`${target}/mapping.yaml`, 'utf8')) as { fields: Record<string, object> };
    expect(Object.keys(mapping.fields)).toEqual([
      'title',
      'price',
      'availability',
      'brand',
      'sku',
      'rating',
      'reviews',
    ]);
    expect(mapping.fields.title).toEqual({ json_ld: 'name', required: true });

    const config = ['--config', `${target}/fleet.yaml`];
    expect((await orchestrator('plan', ...config, '--deadline', '5m', '--dry-run')).exitCode).toBe(0);
    const run = await orchestrator('run', ...config, '--deadline', '1m', '--dry-run', '--json');
    expect((JSON.parse(run.stdout) as RunReport).products).toMatchObject({ planned: 2, stored: 2 });
    const { stdout } = await orchestrator('export', ...config, '--format', 'jsonl');
    expect(JSON.parse(stdout.split('\n')[0]!)).toMatchObject({
      product_id: 'P00011',
      price: expect.any(Number),
      price_currency: 'JPY',
    });
  });

  it('says when the shop answers differently by language', async () => {
    const ids = ['P00013', 'P00014'];
    await shop.setRules(ids.map((id) => ({ id, do: { type: 'localized' } })));
    const made = await orchestrator('init', folder.file('languages'), '--url', ...ids.map(page));
    expect(made.exitCode, made.stderr).toBe(0);
    expect(made.stdout).toMatch(
      /! the shop answers differently by language: with site.language: de the title is Artikel: /,
    );
    const languages = (await shop.log())
      .filter(({ id }) => ids.includes(id!))
      .map(({ headers }) => headers['accept-language']);
    expect(languages).toEqual([undefined, undefined, 'de']);
    const same = await orchestrator('init', folder.file('one-language'), '--url', page('P00015'), page('P00016'));
    expect(same.stdout).not.toContain('by language');
  });

  describe('of pages of other kinds', () => {
    const product = (n: string) => `<main><h1>Teapot ${n}</h1><p class="price">EUR ${n}9.90</p></main>`;
    const script = (n: string) => `<div id=app></div><script>document.all.app.innerHTML='${product(n)}'</script>`;
    const json = (n: string) =>
      JSON.stringify({ data: { name: `Teapot ${n}`, price: { value: Number(n), currency: 'EUR' } } });
    let server: Server;
    beforeAll(async () => {
      server = createServer(({ url = '' }, response) => {
        const [, kind, n = ''] = url.split('/');
        if (kind === 'robots.txt') return void response.end('User-agent: *\nDisallow: /js/2\n');
        if (kind === 'api') return void response.setHeader('content-type', 'application/json').end(json(n));
        response.setHeader('content-type', 'text/html');
        response.end(`<!doctype html><title>Teapot ${n}</title>${kind === 'js' ? script(n) : product(n)}`);
      }).listen(0, '127.0.0.1');
      await once(server, 'listening');
    });
    afterAll(() => void server.close());

    it.each([
      ['item', 'http', { title: 'h1', price: '.price' }, []],
      ['api', 'http', { title: '$.data.name', price: '$.data.price.value' }, []],
      ['js', 'browser', { title: 'h1', price: '.price' }, ['robots.txt forbids', 'scripts build the pages']],
    ])('reads those of /%s/ by %s', { tags: ['nightly'] }, async (kind, render, sources, notes) => {
      const { port } = server.address() as AddressInfo;
      const urls = ['1', '2'].map((n) => `http://127.0.0.1:${port}/${kind}/${n}`);
      const made = await orchestrator('init', folder.file(kind), '--url', ...urls, '--json');
      const document = JSON.parse(made.stdout) as { notes: string[]; fields: { name: string; source: object }[] };
      expect(document).toMatchObject({ render, notes: notes.map((note) => expect.stringContaining(note)) });
      const found = document.fields.map(({ name, source }) => [name, Object.values(source)[0] as string]);
      expect(Object.fromEntries(found)).toMatchObject(sources);
    });
  });

  it.each([
    ['a page that is missing', () => [page('404-x')], 2, 'gives no page'],
    [
      'a page without any of the usual fields',
      () => [page('untitled-x').replace(/item.*/, 'robots.txt')],
      2,
      'robots.txt',
    ],
    ['an address that is none', () => ['shop.example/item/1'], 2, 'is not an http or https URL'],
  ])('writes nothing for %s', async (what, urls, exitCode, message) => {
    const target = folder.file(what.replaceAll(' ', '-'));
    const refused = await orchestrator('init', target, '--url', ...urls());
    expect(refused.stderr).toContain(message);
    expect([refused.exitCode, existsSync(target)]).toEqual([exitCode, false]);
  });

  it('takes two addresses of one page for one', { tags: ['nightly'] }, async () => {
    const url = page('P00011');
    const made = await orchestrator('init', folder.file('twice'), '--url', url, `${url}?utm_source=mail`, '--json');
    const notes = [expect.stringContaining('give the URL of a second one')];
    expect([made.exitCode, JSON.parse(made.stdout)]).toMatchObject([0, { ids: ['P00011'], notes }]);
  });

  it('never writes over a file', async () => {
    const target = folder.file('mine');
    mkdirSync(target);
    writeFileSync(`${target}/fleet.yaml`, 'mine');
    expect((await orchestrator('init', target, '--url', page('P00011'))).exitCode).toBe(2);
    expect(readFileSync(`${target}/fleet.yaml`, 'utf8')).toBe('mine');
  });
});
