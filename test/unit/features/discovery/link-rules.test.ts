import { describe, expect, it } from 'vitest';
import { idleDenyLines } from '../../../../orchestrator/core/config/deny-lines.ts';
import { LinkRules, TrapWatch } from '../../../../orchestrator/features/discovery/link-rules.ts';
import type { Mapping, PageMapping } from '../../../../shared/domain/mapping.ts';
import type { DiscoverSettings } from '../../../../orchestrator/core/model/discovery.ts';

const pageOf = (name: string, urlPatterns: string[], hasFields: boolean): PageMapping => ({
  name,
  urlPatterns,
  urlParsers: [],
  rows: null,
  fields: hasFields ? [{ name: 'title', steps: [{ type: 'css', selector: 'h1' }], required: true }] : [],
});

const MAPPING: Mapping = { pages: [pageOf('item', ['/item/'], true), pageOf('lists', ['/list', '/$'], false)] };

const settingsOf = (more: Partial<DiscoverSettings>): DiscoverSettings => ({
  origin: 'https://shop.example',
  id: '/item/(\\d+)',
  depth: 2,
  order: 'breadth',
  allow: [],
  keep: 10,
  pages: 10,
  seen: 'auto',
  ...more,
});

const rulesOf = (more: Partial<DiscoverSettings> = {}, deny: string[] = [], cut: string[] = []): LinkRules =>
  new LinkRules(settingsOf(more), MAPPING, { deny, cut });

const judge = (rules: LinkRules, path: string, depth = 1): unknown => {
  const judged = rules.judge(new URL(path, 'https://shop.example').href, depth);
  return 'denied' in judged ? judged.denied : judged.key;
};

describe('link rules', () => {
  it('knows a product by its ID and a page of links by its path', () => {
    const rules = rulesOf();
    expect(rules.judge('https://shop.example/item/7/teapot?utm_source=x', 2)).toEqual({
      path: '/item/7/teapot',
      key: 'item 7',
      id: '7',
      depth: 2,
    });
    expect(judge(rules, '/item/7?colour=red')).toBe('item 7');
    expect(judge(rules, '/list?page=2')).toBe('page /list?page=2');
    expect(judge(rulesOf({ id: null }), '/item/seven')).toBe('item /item/seven');
  });

  it.each([
    ['https://other.example/item/7', 'site'],
    ['mailto:help@shop.example', 'site'],
    ['/about', 'mapping'],
    ['/item/seven', 'mapping'],
    ['/list/a/a/a/a', 'trap'],
  ])('denies %s: %s', (link, why) => {
    expect(judge(rulesOf(), link)).toBe(why);
  });

  it('denies links that are too deep, match no allowed pattern, or begin with an entry of the deny list', () => {
    expect(judge(rulesOf(), '/item/7', 3)).toBe('depth');
    expect(judge(rulesOf({ allow: ['^/item/'] }), '/list')).toBe('allow');
    const deny = [
      '# comment',
      '/item/9',
      '/item/91',
      'https://shop.example/list?page=',
      'other.example',
      'example.com',
    ];
    const rules = rulesOf({}, deny);
    expect(['/item/9', '/item/91', '/item/912', '/list?page=3'].map((path) => judge(rules, path))).toEqual(
      Array(4).fill('list'),
    );
    expect(['/item/8', '/list'].map((path) => judge(rules, path))).toEqual(['item 8', 'page /list']);
    expect(judge(rulesOf({}, ['example']), '/item/7')).toBe('list');
    expect(judge(rulesOf({}, ['SHOP.example']), '/item/7')).toBe('list');
  });

  it.each([
    ['/list/größe', '/list/gr%C3%B6%C3%9Fe'],
    ['/list/caf%c3%a9', '/list/café/menu'],
    ['/list?b=2&a=1', '/list?a=1&b=2&page=3'],
    ['/list?', '/list?page=1'],
    ['/list/a/../admin', '/list/admin/x'],
    ['/list/admin', '//list//admin/x'],
    ['//list', '//list'],
    ['https://www.shop.example/list/x', '/list/x'],
    ['shop.example/list/größe', '/list/größe'],
  ])('the line %s denies %s', (line, path) => {
    const link = `https://shop.example${path}`;
    expect(rulesOf({}, [line]).judge(link, 1)).toEqual({ denied: 'list' });
  });

  it.each([
    ['/list?', '/list'],
    ['//', '/list'],
    ['/list//', '/list/a'],
    ['/list?utm_source=x', '/list'],
    ['/list?b=//x', '/list?b=/x'],
  ])('the line %s does not deny %s', (line, path) => {
    expect(judge(rulesOf({}, [line]), path)).toBe(`page ${path}`);
  });

  it('names the lines that no link can match', () => {
    const idle = ['admin', '*.pdf', '/list?utm_source=x', `/${'x'.repeat(800)}`];
    const others = ['/list', 'example', 'other.example', 'https://other.example/x', '# admin', ''];
    expect(idleDenyLines([...idle, ...others], ['https://shop.example'])).toEqual(idle);
  });

  it('finds a path in a deny list of 20,000 lines, wherever its line is', () => {
    const lines = Array.from({ length: 20_000 }, (_, i) => `/item/${i * 7}/`);
    const rules = rulesOf({}, lines);
    const some = [0, 7_777, 19_999].flatMap((i) => Array.from({ length: 7 }, (_, k) => i * 7 + k));
    expect(some.filter((i) => judge(rules, `/item/${i}/x`) === 'list')).toEqual([0, 7_777 * 7, 19_999 * 7]);
  });

  it('allows a path of a trap that the user names', () => {
    expect(judge(rulesOf({}, [], ['/list']), '/list')).toBe('trap');
    expect(judge(rulesOf({ allow: ['^/list'] }, [], ['/list']), '/list')).toBe('page /list');
    expect(judge(rulesOf({ allow: ['^/list'] }), '/list/a/a/a/a')).toBe('page /list/a/a/a/a');
  });
});

describe('traps', () => {
  const target = (path: string, id: string | null = null) => ({
    path,
    id,
    key: id === null ? `page ${path}` : `item ${id}`,
  });

  /** Number of pages until the pattern is cut; null: it is not. */
  function cutAfter(pages: number, linksOf: (i: number) => ReturnType<typeof target>[], pathOf: (i: number) => string) {
    const watch = new TrapWatch([]);
    for (let i = 1; i <= pages; i++) {
      watch.note(pathOf(i), linksOf(i));
      if (watch.fresh.size > 0) return i;
    }
    return null;
  }

  it('cuts a calendar that leads only to months', () => {
    const month = (i: number): string => `/calendar/${2026 + Math.floor(i / 12)}/${1 + (i % 12)}`;
    const footer = [target('/'), target('/about'), target('/item/1', '1')];
    expect(cutAfter(100, (i) => [...footer, target(month(i + 1)), target(month(i - 1))], month)).toBe(51);
  });

  it('cuts a list in every order of the same products', () => {
    const list = (i: number): string => `/list?filter=${i}&sort=name`;
    const same = Array.from({ length: 48 }, (_, i) => target(`/item/${i}`, String(i)));
    expect(cutAfter(100, (i) => [...same, target(list(i + 1))], list)).toBe(51);
  });

  it('keeps a search of 200 pages, even when every product is known', () => {
    const search = (i: number): string => `/search?page=${i}&q=tea`;
    const shown = (i: number) =>
      Array.from({ length: 48 }, (_, k) => target(`/item/${i * 48 + k}`, String(i * 48 + k)));
    expect(cutAfter(200, (i) => [...shown(i), target(search(i + 1))], search)).toBe(null);
  });

  it('keeps a tree of categories whose leaves have products', () => {
    const category = (i: number): string => `/c/${i}`;
    const links = (i: number) => (i % 10 === 0 ? [target(`/item/${i}`, String(i))] : [target(category(i * 10))]);
    expect(cutAfter(500, links, category)).toBe(null);
  });
});
