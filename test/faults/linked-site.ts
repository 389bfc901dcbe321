/**
 * A small site of lists and products, drawn from a seed: what its pages give, what they link to, and what may be taken.
 */
import { seededRandom } from '../../shared/adapters/random.ts';
import type { ItemResult } from '../../shared/wire/part.ts';
import type { RunSettings } from '../../orchestrator/core/model/run-settings.ts';
import { LinkRules } from '../../orchestrator/features/discovery/link-rules.ts';
import { Dice } from './dice.ts';
import type { DiscoverSettings } from '../../orchestrator/core/model/discovery.ts';

const ORIGIN = 'https://shop.example';
const PAGE = { name: '', urlParsers: [], rows: null };
const TITLE = { name: 'title', steps: [{ type: 'css', selector: 'h1' }], required: true } as const;

export const LINKED_MAPPING: RunSettings['mapping'] = {
  pages: [
    { ...PAGE, name: 'product', urlPatterns: ['/item/'], fields: [{ ...TITLE, steps: [...TITLE.steps] }] },
    { ...PAGE, name: 'list', urlPatterns: ['/list/'], fields: [] },
  ],
};

export class LinkedSite {
  readonly discover: DiscoverSettings;
  readonly seeds = [`${ORIGIN}/list/0`];
  /** Absolute URLs by path. */
  readonly #links = new Map<string, string[]>();

  /** @param pages at most */
  constructor(seed: number, pages: number) {
    const dice = new Dice(seededRandom(seed ^ 0x11a4));
    const lists = dice.between(1, Math.ceil(pages / 4));
    const items = Math.max(0, pages - lists);
    this.discover = {
      origin: ORIGIN,
      id: '/item/(\\w+)',
      depth: dice.pick([2, 20, 20])!,
      order: dice.pick(['breadth', 'score'] as const)!,
      allow: [],
      keep: dice.pick([5, 1_000, 1_000])!,
      pages: dice.pick([pages >> 1, 1_000, 1_000])! + 1,
      seen: 'exact',
    };
    const list = (n: number): string => `${ORIGIN}/list/${n}`;
    const item = (n: number): string => `${ORIGIN}/item/p${n}`;
    const add = (from: string, ...to: string[]): void => {
      const path = new URL(from).pathname;
      this.#links.set(path, [...(this.#links.get(path) ?? []), ...to]);
    };
    // Each page hangs on an earlier one.
    for (let n = 1; n < lists; n++) add(list(dice.between(0, n - 1)), list(n));
    for (let n = 0; n < items; n++) {
      const from = n > 0 && dice.chance(0.3) ? item(dice.between(0, n - 1)) : list(dice.between(0, lists - 1));
      add(from, item(n));
    }
    const others = ['https://other.example/', `${ORIGIN}/about`, `${list(0)}#top`];
    for (let n = 0; n < pages; n++) {
      const known = item(dice.between(0, Math.max(0, items - 1)));
      add(dice.chance(0.5) ? list(dice.between(0, lists - 1)) : known, dice.pick(others)!, `${known}?utm_source=x`);
    }
  }

  /** What a crawl of this path gives: some pages are gone, some cannot be read. */
  result({ n, id: path }: { n: number; id: string }): ItemResult {
    const common = { n, id: path, url: ORIGIN + path, at: '2026-01-01T00:00:00.000Z', attempts: 1 };
    const number = Number(/\d+$/.exec(path)?.[0]);
    if (path.startsWith('/item/') && number % 10 === 9) return { ...common, outcome: 'gone', status: 404 };
    if (path.startsWith('/item/') && number % 10 === 7)
      return { ...common, outcome: 'failed', reason: 'parse', detail: 'no title' };
    const rows = path.startsWith('/item/') ? [{ key: null, row: { title: `Title ${path}` } }] : [];
    return { ...common, outcome: 'stored', rows, links: this.#links.get(path) ?? [] };
  }

  /** The links of a page at this depth: the keys of those that may be taken, and how many may not. */
  linksOf(path: string, depth: number): { found: number; keys: string[]; denied: number } {
    const links = this.#links.get(path) ?? [];
    const rules = new LinkRules(this.discover, LINKED_MAPPING, { deny: [], cut: [] });
    const keys = links.flatMap((link) => {
      const judged = rules.judge(link, depth + 1);
      return 'key' in judged ? [judged.key] : [];
    });
    return { found: links.length, keys, denied: links.length - keys.length };
  }
}
