import { readConfig } from '../../../support/features.ts';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { fleetFileOf, mappingFileOf } from '../../../../orchestrator/features/init/propose-shop.ts';

const folder = mkdtempSync(join(tmpdir(), 'crawlfleet-propose-'));
afterAll(() => rmSync(folder, { recursive: true }));

const FIELD = { options: {}, required: false, doubt: null };

describe('the files that `init --url` writes', () => {
  it.each(['https://s.example/item/{id}', 'https://s.example/$$/{id}?a=$x', 'https://s.example/p/${id}'])(
    'have %s as it is, and are valid',
    (template) => {
      const fields = [{ ...FIELD, name: 'title', sources: [{ css: 'h1' }], values: ['x\u2028y'], doubt: 'why' }];
      writeFileSync(join(folder, 'fleet.yaml'), fleetFileOf({ template, own: null, render: 'browser' }));
      writeFileSync(join(folder, 'mapping.yaml'), mappingFileOf({ fields, ids: ['1'] }));
      const { values, mapping } = readConfig(join(folder, 'fleet.yaml'), {});
      expect(values.site).toMatchObject({ product_url: template, render: 'browser' });
      expect(mapping.pages[0]!.fields.map(({ name }) => name)).toEqual(['title']);
    },
  );

  it('have the hosts of products with URLs of their own, and a query with their URLs', () => {
    const own = { hosts: ['https://s.example', 'https://b.example'], urls: [] };
    const text = fleetFileOf({ template: null, own, render: 'http' });
    writeFileSync(join(folder, 'fleet.yaml'), text);
    const { values } = readConfig(join(folder, 'fleet.yaml'), {});
    expect(values.site.hosts).toEqual(own.hosts);
    expect(values.products.query).toBe('select id, url from products');
    expect(text).not.toContain('{id}');
  });

  it('show above each field what it gave, and a doubt', () => {
    const price = { ...FIELD, name: 'price', sources: [{ css: '.price' }], options: { price: true } };
    const text = mappingFileOf({
      fields: [{ ...price, values: [5, null], currencies: ['EUR', null], doubt: 'the same on all pages' }],
      ids: ['1', '2'],
    });
    expect(text).toContain(
      '  # "5 EUR" | null (doubtful: the same on all pages)\n  price: { css: .price, price: true }\n',
    );
    expect(parse(text)).toEqual({ fields: { price: { css: '.price', price: true } } });
  });
});
