/**
 * A wiki for crawls in the order of a score: `/wiki/0` leads to every page. Links and scores come from generators of
 * their own, so that neither says anything about the other.
 */
import { seededRandom } from '../../../../shared/adapters/random.ts';
import { escapeHtml } from '../page.ts';
import { hashText } from '../product.ts';
import { linkedPage } from './page-frame.ts';

const WIKI_PAGES = 50_000;

/** The mapping for wiki pages. */
export const WIKI_MAPPING = { fields: { title: { css: 'h1', required: true } } } as const;

const LEAST_LINKS = 3;
const MOST_LINKS = 30;

/** P(links ≤ LEAST_LINKS + i) where P(k links) falls as k^-2. */
const LINK_SHARES = (() => {
  const weights = Array.from({ length: MOST_LINKS - LEAST_LINKS + 1 }, (_, i) => (LEAST_LINKS + i) ** -2);
  const total = weights.reduce((sum, weight) => sum + weight);
  let below = 0;
  return weights.map((weight) => (below += weight) / total);
})();

export class Wiki {
  readonly pages: number;
  readonly #seed: number;
  /** A ring through all pages: each has one link from it, which makes every page reachable. */
  readonly #next: Uint32Array;

  constructor(pages = WIKI_PAGES, seed = 1) {
    if (pages <= MOST_LINKS) throw new Error(`a wiki has more than ${MOST_LINKS} pages`);
    this.pages = pages;
    this.#seed = seed;
    const order = shuffled(pages, `wiki-ring:${seed}`);
    this.#next = new Uint32Array(pages);
    for (const [i, page] of order.entries()) this.#next[page] = order[(i + 1) % pages]!;
  }

  /** The pages that page `n` links to: 3 to 30, all different. */
  links(n: number): number[] {
    const random = seededRandom(hashText(`wiki-links:${this.#seed}:${n}`));
    const share = random.next();
    const count = LEAST_LINKS + LINK_SHARES.findIndex((below) => share < below);
    const targets = new Set([this.#next[n]!]);
    while (targets.size < count) {
      const target = Math.floor(random.next() * this.pages);
      if (target !== n) targets.add(target);
    }
    return [...targets];
  }

  /** The page's HTML; null for a path that is none of the wiki's. */
  render(path: string): string | null {
    const n = Number(/^\/wiki\/(0|[1-9]\d*)$/.exec(path)?.[1] ?? Infinity);
    if (n >= this.pages) return null;
    const links = this.links(n).map((to) => `<li><a href="/wiki/${to}">${escapeHtml(wikiTitle(to))}</a></li>`);
    const main = `<p>What links here is not listed.</p><ul>\n${links.join('\n')}\n</ul>`;
    return linkedPage(wikiTitle(n), main, { header: 'The wiki', footer: 'Free to copy.' });
  }
}

/** The title that a crawl with WIKI_MAPPING must store. */
export function wikiTitle(n: number): string {
  return `Article ${n}: ${hashText(`title:${n}`).toString(36)}`;
}

/** A score for each page, in the order of the pages: 1 / rank (Zipf), where the ranks are a seeded permutation. */
export function* wikiScores(pages = WIKI_PAGES, seed = 1): Generator<{ path: string; score: number }> {
  for (const [n, rank] of shuffled(pages, `wiki-scores:${seed}`).entries())
    yield { path: `/wiki/${n}`, score: 1 / (rank + 1) };
}

/** The numbers below `count` in an order that the seed determines (Fisher-Yates). */
function shuffled(count: number, seed: string): Uint32Array {
  const random = seededRandom(hashText(seed));
  const order = Uint32Array.from({ length: count }, (_, i) => i);
  for (let i = count - 1; i > 0; i--) {
    const j = Math.floor(random.next() * (i + 1));
    [order[i], order[j]] = [order[j]!, order[i]!];
  }
  return order;
}
