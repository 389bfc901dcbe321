/** Whether two nodes of a page describe the same product: a review widget adds a second one to the shop's. */
import { decodeHTML } from 'entities/decode';
import { listOf, type Node, own, textOf } from './nodes.ts';
import type { PageAddress } from './page-address.ts';

/** A node, and how surely it is the page's: see PageAddress. */
export interface ScoredNode {
  node: Node;
  score: number;
}

const GTINS = ['gtin', 'gtin13', 'gtin14', 'gtin12', 'gtin8'];

/**
 * Whether two nodes are one product. In order of strength: the `@id`; another identifier tells them apart; the same sku
 * or GTIN, or that both are the page's, makes them one whatever their names; else their names and links must agree.
 */
export function areSame(one: ScoredNode, other: ScoredNode, address: PageAddress): boolean {
  const nodes = [one.node, other.node] as const;
  if (agree(...nodes, (node) => textOf(node, '@id')) === true) return true;
  const strong = [textAt('sku'), gtinOf].map((valueOf) => agree(...nodes, valueOf));
  const weak = [textAt('mpn'), textAt('productID')].map((valueOf) => agree(...nodes, valueOf));
  if ([...strong, ...weak].includes(false)) return false;
  if (strong.includes(true) || (one.score > 0 && other.score > 0)) return true;
  if (isRatingOf(one, other) || isRatingOf(other, one)) return true;
  const [url, another] = nodes.map((node) => textOf(node, 'url'));
  const isLinked = typeof url === 'string' && typeof another === 'string';
  if (isLinked && !address.areSame(url, another)) return false;
  const isNamed = agree(...nodes, nameOf);
  return isNamed ?? (isLinked || weak.includes(true));
}

/** Whether a node that only rates the page's product names this one within its own name: `Teapot reviews`. */
function isRatingOf(rating: ScoredNode, product: ScoredNode): boolean {
  const [name, inner] = [nameOf(rating.node), nameOf(product.node)];
  if (rating.score === 0 || !isRating(rating.node) || name === null || inner === null) return false;
  return textOf(product.node, 'url') === null && wordsOf(name).includes(wordsOf(inner));
}

/** Whether the node has a rating or reviews, and no offers. */
export function isRating(node: Node): boolean {
  const has = (key: string): boolean => listOf(own(node, key)).length > 0;
  return !has('offers') && (has('aggregateRating') || has('review'));
}

/** Whether both nodes have the same value; null unless both have one. */
function agree(one: Node, other: Node, valueOf: (node: Node) => string | null): boolean | null {
  const [value, another] = [valueOf(one), valueOf(other)];
  return value === null || another === null ? null : value === another;
}

const textAt =
  (key: string) =>
  (node: Node): string | null =>
    textOf(node, key)?.toLowerCase() ?? null;

/** All spellings of a GTIN without their leading zeros: they differ in length only. */
function gtinOf(node: Node): string | null {
  for (const name of GTINS) {
    const gtin = textOf(node, name);
    if (gtin !== null) return gtin.replace(/^0+/, '');
  }
  return null;
}

/** The node's name in lower case; widgets escape it once more. */
function nameOf(node: Node): string | null {
  const name = textOf(node, 'name');
  return name === null ? null : decodeHTML(name).trim().replace(/\s+/g, ' ').toLowerCase();
}

const wordsOf = (name: string): string => ` ${name.replace(/[^\p{L}\p{N}]+/gu, ' ').trim()} `;
