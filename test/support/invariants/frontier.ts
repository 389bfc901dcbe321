/**
 * I14: each link that a discovery found is new, known, denied or dropped, once; each URL that it took is one product;
 * and no URL is lost.
 */
import { NOT_CRAWLED } from '../../../shared/domain/outcome.ts';
import { type History, type SeenProduct, type SeenUrl, type Violation, violationsOf } from './history.ts';

/** What a URL is known by: `Candidate.key`. */
const keyOf = ({ id, path }: Pick<SeenUrl, 'id' | 'path'>): string => (id === null ? `page ${path}` : `item ${id}`);

export function checkLinks({ run, products, frontier }: History): Violation[] {
  const { discovery } = run;
  if (frontier === null || products === null || discovery === undefined) return [];
  const found: string[] = [];
  const expect = (what: string, expected: number, seen: number): void => {
    if (expected !== seen) found.push(`${what}: ${seen} instead of ${expected}`);
  };
  const { urls, linksOf } = frontier;
  const taken = new Map(urls.filter((url) => url.run_id === run.id).map((url) => [url.n, url]));
  expect('products of URLs that were taken', products.length, taken.size);
  const astray = products.filter(({ n, id }) => taken.get(n)?.path !== id);
  if (astray.length > 0) found.push(`${astray.length} products are not what was taken, the first is ${astray[0]!.id}`);

  const pages = products.filter(({ outcome }) => outcome === 'stored');
  const links = pages.map(({ n, id }) => linksOf(id, taken.get(n)?.depth ?? 0));
  const sum = (counts: readonly number[]): number => counts.reduce((all, one) => all + one, 0);
  const denied = sum(Object.values(discovery.denied));
  expect('links of the stored pages', sum(links.map((page) => page.found)), discovery.found);
  expect('links that may not be taken', sum(links.map((page) => page.denied)), denied);
  expect('found links', discovery.fresh + discovery.known + denied + discovery.dropped, discovery.found);
  expect('new URLs', urls.filter((url) => url.found_run === run.id).length, discovery.fresh);

  const known = new Set(urls.map(keyOf));
  const lost = new Set(links.flatMap((page) => page.keys).filter((key) => !known.has(key)));
  if (lost.size > discovery.dropped + discovery.fell)
    found.push(`${lost.size} found URLs are in no frontier, the first is ${[...lost][0]!}`);
  return violationsOf('I14', found);
}

/** A discovery and the night after it, which nothing disturbed. */
export interface TwoNights {
  first: History;
  second: History;
  /** Nothing waited between them: pages of links are read again. */
  isNewRound: boolean;
}

/** Never asked for, or without an answer. */
const isLeft = ({ reason }: SeenProduct): boolean =>
  reason !== null && reason !== 'robots' && (NOT_CRAWLED as readonly string[]).includes(reason);

/** I14 from one night to the next: what was crawled is not asked for again, and what was not is crawled now. */
export function checkNights({ first, second, isNewRound }: TwoNights): Violation[] {
  const found: string[] = [];
  const isCrawled = ({ outcome }: { outcome: string | null }): boolean => outcome === 'stored' || outcome === 'gone';
  const crawled = new Set((first.products ?? []).filter(isCrawled).map(({ id }) => id));
  const urls = second.frontier!.urls;
  const isPage = new Set(urls.filter(({ id }) => id === null).map(({ path }) => path));
  const again = (second.products ?? []).filter(({ id }) => crawled.has(id) && !(isNewRound && isPage.has(id)));
  if (again.length > 0) found.push(`${again.length} URLs are asked for again, the first is ${again[0]!.id}`);
  const { discover } = second.run.settings;
  const left = urls.filter(({ state }) => state === 'waiting');
  const hasRoom = second.run.planned < discover!.pages && second.run.phase === 'completed';
  const asked = new Set((second.products ?? []).map(({ id }) => id));
  const forgotten = (first.products ?? []).filter((product) => isLeft(product) && !asked.has(product.id));
  if (hasRoom && forgotten.length > 0 && first.run.discovery!.dropped + first.run.discovery!.fell === 0)
    found.push(`${forgotten.length} URLs were not crawled in either night, the first is ${forgotten[0]!.id}`);
  if (hasRoom && left.length > 0) found.push(`${left.length} URLs wait after a night with room for them`);
  return violationsOf('I14', found);
}
