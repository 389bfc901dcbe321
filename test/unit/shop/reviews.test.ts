/** Review pages: every record is on exactly one page, in order, and each page links to the next. */
import { describe, expect, it } from 'vitest';
import { productIds } from '../../support/shop/product.ts';
import { expectedReviews, renderReviews, reviewPages } from '../../support/shop/reviews.ts';

const PRODUCTS = productIds(60);
const pagesOf = (id: string): string[] =>
  Array.from({ length: reviewPages(expectedReviews(1, id)) }, (_, i) => renderReviews(1, id, `/reviews/${id}`, i + 1)!);

describe('review pages', () => {
  it('show each review once, in order', () => {
    for (const id of PRODUCTS) {
      const shown = pagesOf(id).flatMap((page) => [...page.matchAll(/<li class="review">/g)]);
      expect(shown).toHaveLength(expectedReviews(1, id).length);
    }
  });

  it('link from each page to the next, and from the last to none', () => {
    for (const id of PRODUCTS) {
      const next = pagesOf(id).map((page) => /class="next" href="([^"]*)"/.exec(page)?.[1] ?? null);
      const expected = next.map((_, i) => (i + 1 < next.length ? `/reviews/${id}?page=${i + 2}` : null));
      expect(next).toEqual(expected);
    }
  });

  it('identify the reviews of a product by their user', () => {
    for (const id of PRODUCTS) {
      const users = expectedReviews(1, id).map((review) => review.user);
      expect(new Set(users).size).toBe(users.length);
    }
  });

  it('exist in every number: none, one page, several', () => {
    const counts = PRODUCTS.map((id) => expectedReviews(1, id).length);
    expect(counts).toContain(0);
    expect(new Set(PRODUCTS.map((id) => pagesOf(id).length))).toEqual(new Set([1, 2, 3, 4]));
    const empty = PRODUCTS[counts.indexOf(0)]!;
    expect(pagesOf(empty)[0]).toContain('<p class="no-reviews">');
  });

  it.each([0, 5, 1.5, Number.NaN])('have no page %s', (number) => {
    expect(renderReviews(1, 'P00001', '/reviews/P00001', number)).toBeNull();
  });
});
