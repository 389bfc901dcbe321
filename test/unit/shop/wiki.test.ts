/** The wiki's links and scores, and what a crawl in the order of the scores gains on it: without any server. */
import { describe, expect, it } from 'vitest';
import { Wiki, wikiScores } from '../../support/shop/linked/wiki.ts';

const wiki = new Wiki();
const scores = Float64Array.from(wikiScores(), ({ score }) => score);

/** Pages that were found and not yet taken. */
interface Frontier {
  add(page: number): void;
  take(): number | undefined;
}

const firstFound = (): Frontier => {
  const pages: number[] = [];
  let taken = 0;
  return { add: (page) => pages.push(page), take: () => pages[taken++] };
};

/** All scores differ: rank 0 is the best page, and the frontier holds what is set in `waiting`. */
const bestFirst = (): Frontier => {
  const rankOf = (page: number): number => Math.round(1 / scores[page]!) - 1;
  const waiting = new Int32Array(scores.length).fill(-1);
  let best = 0;
  return {
    add(page) {
      const rank = rankOf(page);
      waiting[rank] = page;
      best = Math.min(best, rank);
    },
    take() {
      while (best < waiting.length && waiting[best] === -1) best++;
      const page = waiting[best];
      if (page !== undefined) waiting[best] = -1;
      return page;
    },
  };
};

/** The pages from `/wiki/0` in the order in which the frontier gives them, each once. */
function* crawl(frontier: Frontier): Generator<number> {
  const found = new Uint8Array(wiki.pages);
  const add = (page: number): void => {
    if (found[page] === 1) return;
    found[page] = 1;
    frontier.add(page);
  };
  add(0);
  for (let page = frontier.take(); page !== undefined; page = frontier.take()) {
    yield page;
    wiki.links(page).forEach(add);
  }
}

/** Requests until the pages taken have this share of the total score. */
function requestsUntil(share: number, frontier: Frontier): number {
  const goal = share * scores.reduce((sum, score) => sum + score);
  let requests = 0;
  let reached = 0;
  for (const page of crawl(frontier)) {
    requests++;
    if ((reached += scores[page]!) >= goal) break;
  }
  return requests;
}

describe('the wiki', () => {
  it('leads from its first page to all 50,000', () => {
    expect(new Set(crawl(firstFound())).size).toBe(50_000);
  });

  it('has 3 to 30 links a page, most pages few, to pages that differ from it and from each other', () => {
    const counts = Array.from({ length: 1_000 }, (_, page) => {
      const links = wiki.links(page);
      expect(new Set([page, ...links]).size).toBe(links.length + 1);
      return links.length;
    });
    expect([Math.min(...counts), Math.max(...counts)]).toEqual([3, 30]);
    expect(counts.filter((count) => count <= 5).length).toBeGreaterThan(500);
  });

  it('has pages with exactly these links, and the same ones each time', () => {
    const hrefs = [...wiki.render('/wiki/7')!.matchAll(/href="\/wiki\/(\d+)"/g)].map(([, page]) => Number(page));
    expect(hrefs).toEqual(new Wiki().links(7));
    expect(['/wiki/50000', '/wiki/07', '/wiki/x', '/wiki/7/'].map((path) => wiki.render(path))).toEqual(
      Array(4).fill(null),
    );
  });
});

describe('the scores', () => {
  it('are 1, 1/2, 1/3 …, each on one page', () => {
    const sorted = [...scores].sort((a, b) => b - a);
    expect(sorted).toEqual(sorted.map((_, i) => 1 / (i + 1)));
    expect([...wikiScores(40)].map(({ path }) => path)).toEqual(Array.from({ length: 40 }, (_, i) => `/wiki/${i}`));
  });

  it('say nothing about the links', () => {
    const best = Array.from(scores.keys())
      .sort((a, b) => scores[b]! - scores[a]!)
      .slice(0, 5_000);
    const mean = (pages: number[]): number =>
      pages.reduce((sum, page) => sum + wiki.links(page).length, 0) / pages.length;
    expect(mean(best) / mean([...scores.keys()])).toBeCloseTo(1, 1);
  });

  // Seeds and exponents were fixed before the first measurement. What is left of the gap to an order that knows all
  // pages (5,117 requests) is that a page must be found first: with 7 links a page, 14,877 pages lead to 88 % of the
  // wiki.
  it('lead to 80 % of the total score after 0.38 of the requests that breadth first needs', () => {
    expect([requestsUntil(0.8, firstFound()), requestsUntil(0.8, bestFirst())]).toEqual([39_018, 14_877]);
  });
});
