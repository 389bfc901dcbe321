/**
 * Further pages that products were stored without: why, how many, and one of them. With `rows` such a product is
 * partial where one of these pages may have had rows of it. Pure.
 */

/**
 * robots     robots.txt does not allow it
 * denied     it redirects to what site.follow.deny denies
 * elsewhere  it is on another host, or redirects there
 * gone       the site has no such page any more
 * unread     of many hosts: it could not be read
 * limit      the product has as many pages as site.pages_per_product allows
 */
export const LEFT_OUT_REASONS = ['robots', 'denied', 'elsewhere', 'gone', 'unread', 'limit'] as const;
export type LeftOutReason = (typeof LEFT_OUT_REASONS)[number];

/** Of one product: how many pages, and the URL of one of them. */
export type LeftOut = Partial<Record<LeftOutReason, { pages: number; example: string }>>;

/** Of many products. */
export type LeftOutCounts = Partial<Record<LeftOutReason, { pages: number; example: string; products: number }>>;

const IN_WORDS: Record<LeftOutReason, string> = {
  robots: 'forbidden by robots.txt',
  denied: 'redirected to what site.follow.deny denies',
  elsewhere: 'on hosts that are neither of the site nor in site.follow.hosts',
  gone: 'gone',
  unread: 'that could not be read',
  limit: 'beyond the limit of site.pages_per_product',
};

/** The pages of one product that were left out, whatever the reason. */
export const pagesLeftOut = (leftOut: LeftOut): number =>
  Object.values(leftOut).reduce((sum, { pages }) => sum + pages, 0);

/** Counts what several products were stored without. The first example of each reason stays. */
export const countLeftOut = (products: readonly LeftOut[]): LeftOutCounts =>
  sumLeftOut(
    products.map((leftOut) =>
      Object.fromEntries(Object.entries(leftOut).map(([reason, left]) => [reason, { ...left, products: 1 }])),
    ),
  );

/** The sum of such counts. The first example of each reason stays. */
export function sumLeftOut(counts: readonly LeftOutCounts[]): LeftOutCounts {
  const sum: LeftOutCounts = {};
  for (const reason of LEFT_OUT_REASONS)
    for (const { [reason]: more } of counts) {
      if (more === undefined) continue;
      const { products = 0, pages = 0, example = more.example } = sum[reason] ?? {};
      sum[reason] = { products: products + more.products, pages: pages + more.pages, example };
    }
  return sum;
}

/** One line a reason: `36 forbidden by robots.txt, of 4 products, such as https://shop.example/p1?page=2`. */
export function describeLeftOut(counts: LeftOutCounts): string[] {
  return LEFT_OUT_REASONS.flatMap((reason) => {
    const count = counts[reason];
    if (count === undefined) return [];
    const { pages, products, example } = count;
    return `${pages} ${IN_WORDS[reason]}, of ${products === 1 ? '1 product' : `${products} products`}, such as ${example}`;
  });
}
