/** What pages of many hosts usually have: learnt from each host, and for each section of the mapping. */
import { describe, expect, it } from 'vitest';
import type { PageResult } from '../../../../crawl-api/fetch/page-result.ts';
import type { PageMapping, Row } from '../../../../shared/domain/mapping.ts';
import { fine, results } from '../crawl-scene.ts';
import { type HostScene, openHostScene } from './host-scene.ts';

const fields = ['name', 'mail', 'phone', 'fax'].map((name): PageMapping['fields'][number] => ({
  name,
  steps: [{ type: 'css', selector: `.${name}` }],
  required: name === 'name',
}));
const section = (name: string): PageMapping => ({
  name,
  urlPatterns: [`/${name}/`],
  urlParsers: [],
  rows: null,
  fields,
});
const FULL: Row = { name: 'x', mail: 'm', phone: '1', fax: '2' };
const BARE: Row = { name: 'x', mail: null, phone: null, fax: null };

async function crawled(records: readonly string[], rowOf: (url: string) => Row): Promise<HostScene> {
  const world = (url: string): PageResult => fine(url, rowOf(url));
  const scene = await openHostScene({ world, sections: { pages: [section('shop'), section('person')] } });
  await scene.give(records, { sealed: true });
  await scene.run(3_600_000);
  return scene;
}

const many = (count: number, url: (i: number) => string): string[] => Array.from({ length: count }, (_, i) => url(i));
const pagesOf = ({ sent }: HostScene): string[] =>
  sent.map(({ url }) => url).filter((url) => !url.endsWith('/robots.txt'));

describe('the usual fields of pages at many hosts', () => {
  it('are those of a section: a page of another one is not in doubt', async () => {
    const records = [...many(12, (i) => `https://a.example/shop/${i}`), 'https://a.example/person/1'];
    const scene = await crawled(records, (url) => (url.includes('/shop/') ? FULL : BARE));
    expect(pagesOf(scene)).toEqual(records);
    expect(new Set(Object.values(scene.outcomes()))).toEqual(new Set(['stored']));
  });

  it('are learnt anew at each host: what others have puts no page in doubt', async () => {
    const records = [
      ...many(12, (i) => `https://a.example/shop/${i}`),
      ...many(9, (i) => `https://b${i}.example/shop/1`),
    ];
    const scene = await crawled(records, (url) => (url.startsWith('https://a.') ? FULL : BARE));
    expect(pagesOf(scene)).toHaveLength(records.length);
    expect(new Set(Object.values(scene.outcomes()))).toEqual(new Set(['stored']));
  });

  it('show a page that has lost them, which is stored only after a second look and the proof of another page', async () => {
    const records = many(14, (i) => `https://a.example/shop/${i}`);
    const bare = records[12]!;
    const scene = await crawled(records, (url) => (url === bare ? BARE : FULL));
    expect(pagesOf(scene).filter((url) => url === bare)).toHaveLength(2);
    expect(pagesOf(scene)).toHaveLength(records.length + 2);
    const result = results(scene.journal).find(({ id, outcome }) => id === bare && outcome === 'stored');
    expect(result).toMatchObject({ attempts: 2, first: { reason: 'parse' } });
  });
});
