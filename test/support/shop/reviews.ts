/** Pages with many records: the reviews of a product, several per page, each page with a link to the next. */
import { seededRandom } from '../../../shared/adapters/random.ts';
import { escapeHtml } from './page.ts';
import { expectedProduct, hashText } from './product.ts';

export interface Review {
  /** Identifies a review within its product. */
  user: string;
  stars: number;
  text: string;
  /** ISO. */
  date: string;
}

export const REVIEWS_PER_PAGE = 10;

/** The mapping for the review pages: one row per review, page after page. */
export const REVIEWS_MAPPING = {
  url_parsers: ['a.next'],
  rows: { each: 'li.review', key: 'user', empty: 'p.no-reviews' },
  fields: {
    user: { css: '.user', required: true },
    stars: { css: '.stars', attr: 'data-stars', integer: true },
    text: 'p.text',
    date: { css: 'time', attr: 'datetime', date: 'yyyy-MM-dd' },
  },
} as const;

const TEXTS = [
  'Does what it should.',
  '思ったより軽いです。',
  'Broke after a week & a day.',
  'Très bien',
  '<3 it',
  'ok',
];

/**
 * The product's reviews in the order of the pages, up to 35; some products have none. A crawl must store these rows.
 */
export function expectedReviews(seed: number, id: string): Review[] {
  const random = seededRandom(hashText(`reviews:${seed}:${id}`));
  const below = (limit: number): number => Math.floor(random.next() * limit);
  const count = below(10) === 0 ? 0 : 1 + below(35);
  return Array.from({ length: count }, (_, i) => ({
    user: `${['ken', 'Mäx', '花子', "o'neil"][below(4)]!}-${i + 1}`,
    stars: 1 + below(5),
    text: TEXTS[below(TEXTS.length)]!,
    date: `2026-0${1 + below(9)}-${10 + below(18)}`,
  }));
}

/** Number of review pages; a product without reviews has one page that says so. */
export function reviewPages(reviews: readonly Review[]): number {
  return Math.max(1, Math.ceil(reviews.length / REVIEWS_PER_PAGE));
}

/** Page `number`, counted from 1; null when there is no such page. */
export function renderReviews(seed: number, id: string, path: string, number: number): string | null {
  const reviews = expectedReviews(seed, id);
  const pages = reviewPages(reviews);
  if (!Number.isInteger(number) || number < 1 || number > pages) return null;
  const shown = reviews.slice((number - 1) * REVIEWS_PER_PAGE, number * REVIEWS_PER_PAGE);
  const items = shown.map(
    ({ user, stars, text, date }) =>
      `<li class="review"><h3 class="user">${escapeHtml(user)}</h3><span class="stars" data-stars="${stars}">${'★'.repeat(stars)}</span><p class="text">${escapeHtml(text)}</p><time datetime="${date}">${date}</time></li>`,
  );
  const list = items.length > 0 ? `<ul>\n${items.join('\n')}\n</ul>` : '<p class="no-reviews">No reviews yet.</p>';
  const next = number < pages ? `<a class="next" href="${path}?page=${number + 1}">Next page</a>` : '';
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Reviews</title></head><body><h1>Reviews of ${escapeHtml(expectedProduct(seed, id).title)}</h1>
${list}\n${next}\n</body></html>\n`;
}
