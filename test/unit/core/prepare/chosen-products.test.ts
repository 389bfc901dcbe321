import { writeFileSync } from 'node:fs';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { ProductUrl } from '../../../../shared/domain/domains.ts';
import { NO_URL } from '../../../../shared/domain/own-url.ts';
import { idsFrom } from '../../../../orchestrator/core/prepare/chosen-products.ts';
import { type TempDir, tempDir } from '../../../support/temp-dir.ts';

let folder: TempDir;
beforeEach(() => (folder = tempDir('crawlfleet-ids-')));
afterEach(() => folder.remove());

const HOSTS = ['https://shop.example', 'https://b.example'].map((host) => ({ url: `${host}/{url}`, weight: 1 }));

const productsIn = async (contents: string | Buffer, productUrl: ProductUrl, maxFailed = 0.5) => {
  writeFileSync(folder.file('ids.txt'), contents);
  const config = { values: { site: { product_url: productUrl }, run: { max_failed: maxFailed } } };
  return (await idsFrom(folder.file('ids.txt')).choose({ config } as never, null))!.products;
};
const idsIn = async (contents: string | Buffer) => (await productsIn(contents, 'https://shop.example/{id}')).ids;

describe('a list of product IDs', () => {
  it('has no byte order mark in an ID, also where files were joined', async () => {
    expect(await idsIn('\uFEFFP1\r\nP2\n\uFEFFP3\n\uFEFF\n')).toEqual(['P1', 'P2', 'P3']);
  });

  it('is refused in another encoding than UTF-8, which would change its IDs', async () => {
    const latin1 = Buffer.from('größe\n', 'latin1');
    await expect(async () => await idsIn(latin1)).rejects.toThrow(/ids\.txt is not a text file in UTF-8/);
  });

  it('has tabs in its IDs where they make the URLs', async () => {
    expect(await idsIn('P1\thttps://shop.example/a\n')).toEqual(['P1\thttps://shop.example/a']);
  });
});

describe('a list of products with URLs of their own', () => {
  it('has each URL after a tab, and says on which lines it has none', async () => {
    const lines = 'P1\thttps://shop.example/a\tb\n\nP2\nP3\thttps://b.example/c#x\nP1\thttps://b.example/d\n';
    const { ids, duplicates, urls, hosts, urlNotes } = await productsIn(lines, HOSTS);
    expect({ ids, duplicates, hosts }).toEqual({
      ids: ['P1', 'P2', 'P3'],
      duplicates: 1,
      hosts: [
        { origin: 'https://shop.example', products: 1 },
        { origin: 'https://b.example', products: 1 },
      ],
    });
    // A URL has no tabs: parsers drop them.
    expect(Array.from(ids, (id) => [id, urls!.get(id)])).toEqual([
      ['P1', 'https://shop.example/ab'],
      ['P2', NO_URL],
      ['P3', 'https://b.example/c'],
    ]);
    expect(urlNotes).toEqual([
      '1 of 3 products has no URL to request, and will end as failed(redirect) without a request: line 3 (P2): it has no URL',
    ]);
  });

  it('is refused when more of them have none than run.max_failed allows', async () => {
    const lines = 'a\nb\nc\nd\ne\nf\ng\thttps://shop.example/g\n';
    await expect(async () => await productsIn(lines, HOSTS)).rejects.toMatchObject({
      code: 'products-query',
      message: expect.stringMatching(
        /^6 of 7 products have no URL to request, more than run\.max_failed allows: line 1 \(a\): .*; and 1 more$/,
      ) as string,
    });
  });

  it('names hosts without a product, and products with one URL', async () => {
    const { urlNotes } = await productsIn('a\thttps://shop.example/x\nb\thttps://shop.example/x#1\n', HOSTS);
    expect(urlNotes).toEqual([
      'no product has a URL on https://b.example, which site.hosts names',
      '1 product has the URL of another one, for example a and b (https://shop.example/x): it is requested for each of them',
    ]);
  });
});

describe('a list of IDs with slashes', () => {
  it('says which of them lead out of the template', async () => {
    const { ids, urls, urlNotes } = await productsIn('tea/pot\n../admin\n', 'https://shop.example/p/{segments}');
    expect({ ids, urls }).toEqual({ ids: ['tea/pot', '../admin'], urls: undefined });
    expect(urlNotes).toEqual([
      '1 of 2 products has no URL to request, and will end as failed(redirect) without a request: line 2 (../admin): its ID has a dot segment',
    ]);
  });
});
