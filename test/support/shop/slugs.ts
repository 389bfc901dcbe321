/** Pages whose URLs do not name their product: `/amber-amber-amber/amber-birch` is that of P00001. */
import { productId } from './product.ts';

const WORDS = ['amber', 'birch', 'cedar', 'delta', 'ember', 'fern', 'grove', 'hazel', 'iris', 'jade'];

/** The path of a numbered product's page: the digits of its number in words. */
export function slugPath(id: string): string {
  const words = id
    .slice(1)
    .split('')
    .map((digit) => WORDS[Number(digit)]);
  return `/${words.slice(0, -2).join('-')}/${words.slice(-2).join('-')}`;
}

const SLUG = /^\/[a-z]+-[a-z]+-[a-z]+\/[a-z]+-[a-z]+$/;

/** The product of such a path; null for any other path. */
export function productOfSlug(path: string): string | null {
  if (!SLUG.test(path)) return null;
  const digits = path
    .slice(1)
    .split(/[-/]/)
    .map((word) => WORDS.indexOf(word));
  return digits.includes(-1) ? null : productId(Number(digits.join('')));
}
