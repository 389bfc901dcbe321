/**
 * Which nodes of a page a path is searched in.
 *
 * A page with products: one of them is the page's. It is the one whose url, `@id` or mainEntityOfPage is the page's;
 * else the first with offers that is neither an aside (related products, lists) nor part of another product; else the
 * first such one; else none, because a value of another product would be worse than none. What it lacks is taken from
 * nodes that name the same product, then from its group, then from its variants. Offers of its sizes are its offers.
 *
 * A page without products: all nodes but those that describe the site or the page, then their `mainEntity`, then the
 * variants of those.
 */
import { NodeIndex, type PlacedNode } from './node-index.ts';
import { bareName, isSiteType, typesOf } from './node-types.ts';
import { isNode, listOf, type Node, own, textOf } from './nodes.ts';
import type { PageAddress } from './page-address.ts';
import { areSame, isRating, type ScoredNode } from './same-product.ts';

/** Nodes that are searched in turn. */
export interface Stage {
  nodes: readonly unknown[];
  /** Groups of nodes whose offers are those of one product. */
  pools: readonly (readonly unknown[])[];
  isVariants: boolean;
}

/** Maximum nodes that are compared with the chosen one, and maximum links of one. */
const MAX_SAME = 100;

export class PageNodes {
  readonly #roots: readonly unknown[];
  readonly #address: PageAddress;
  readonly #index: NodeIndex;
  readonly #stages = new Map<string | null, Stage[]>();

  constructor(roots: readonly unknown[], address: PageAddress) {
    this.#roots = roots;
    this.#address = address;
    this.#index = new NodeIndex(roots);
  }

  /** The node that a reference stands for; any other value itself. */
  resolve(value: unknown): unknown {
    return this.#index.resolve(value);
  }

  /** What stands at the top of the page's data: each block, and each member of its `@graph`. */
  top(): unknown[] {
    return this.#roots.flatMap(listOf).flatMap((root) => [root, ...listOf(own(root, '@graph'))]);
  }

  /**
   * `type`: the name of a type; null for the page's product, or on a page without products for any node. `all`: values
   * of all nodes of the type are wanted; of products it is always one.
   */
  stages(type: string | null, all: boolean): Stage[] {
    const name = type === null ? null : bareName(type);
    const asked =
      name === null || name === 'product' ? null : this.#index.nodes.filter(({ types }) => types.includes(name));
    if (asked !== null && all) return [stageOf(asked.map(({ node }) => node))];
    const known = this.#stages.get(name);
    if (known !== undefined) return known;
    const stages = asked === null ? this.#stagesOfPage(name) : this.#stagesOf(asked);
    this.#stages.set(name, stages);
    return stages;
  }

  #stagesOfPage(name: string | null): Stage[] {
    const products = this.#index.nodes.filter(({ isProduct }) => isProduct);
    if (name === null && products.length === 0) return this.#stagesOfAny();
    return this.#stagesOf(products.filter((one) => this.#isEligible(one)));
  }

  #stagesOf(placed: readonly PlacedNode[]): Stage[] {
    const best = this.#best(placed);
    if (best === null) return [];
    // A widget may name the page where the product that it rates does not.
    const rated = isRating(best.node) ? this.#sameAs(best, placed).find(({ node }) => this.#isSold(node)) : undefined;
    const chosen = rated ?? best;
    const { node } = chosen;
    const others = this.#othersThan(chosen, placed);
    const same = this.#sameAs(chosen, placed);
    const sizes = others.filter((one) => areSizes(one.node, node));
    const group = this.#index.groupOf(node);
    return [
      { nodes: [node], pools: [[node, ...sizes.map((one) => one.node)]], isVariants: false },
      ...same.map((one) => stageOf([one.node])),
      stageOf(group === null ? [] : [group]),
      variantStage(this.#index.variantsOf(node)),
    ];
  }

  /** The first of the highest rank; null without any. */
  #best(placed: readonly PlacedNode[]): PlacedNode | null {
    let best: PlacedNode | null = null;
    let most: readonly number[] = [];
    for (const one of placed) {
      const ranks = this.#ranksOf(one);
      if (best !== null && !isBefore(ranks, most)) continue;
      best = one;
      most = ranks;
    }
    return best;
  }

  #othersThan(chosen: PlacedNode, placed: readonly PlacedNode[]): PlacedNode[] {
    return placed.filter((one) => one.node !== chosen.node && isFree(one)).slice(0, MAX_SAME);
  }

  #sameAs(chosen: PlacedNode, placed: readonly PlacedNode[]): PlacedNode[] {
    const scored = (one: PlacedNode): ScoredNode => ({ node: one.node, score: this.#scoreOf(one) });
    const wanted = scored(chosen);
    return this.#othersThan(chosen, placed).filter((one) => areSame(scored(one), wanted, this.#address));
  }

  #stagesOfAny(): Stage[] {
    const top = this.top();
    const entities = this.#inside(top, 'mainEntity');
    return [
      stageOf(top.filter((node) => this.#isSubject(node))),
      stageOf(entities.filter((node) => this.#isSubject(node))),
      variantStage(this.#inside([...top, ...entities], 'hasVariant')),
    ];
  }

  #inside(nodes: readonly unknown[], key: string): unknown[] {
    const values = nodes.flatMap((node) => listOf(own(node, key)));
    return [...new Set(values.map((value) => this.resolve(value)))];
  }

  #isSubject(node: unknown): boolean {
    if (!isNode(node)) return true;
    return !isSiteType(typesOf(node), () => !this.#address.isFrontPage && this.#score(node, false) > 0);
  }

  /** Whether this may be the product of the page. */
  #isEligible(placed: PlacedNode): boolean {
    return isFree(placed) || this.#scoreOf(placed) > 0;
  }

  /** Whether it or a variant of it has offers. */
  #isSold(node: Node): boolean {
    return [node, ...this.#index.variantsOf(node)].some(hasOffers);
  }

  #ranksOf(placed: PlacedNode): number[] {
    return [this.#scoreOf(placed), Number(isFree(placed)), this.#standing(placed.node)];
  }

  /** Offers count most, unless the product or they are said to be of another page. */
  #standing(node: Node): number {
    const url = textOf(node, 'url');
    const links = url === null ? offerLinksOf(node).slice(0, MAX_SAME) : [url];
    if (links.some((link) => this.#address.score(link) > 0)) return 4;
    if (links.length > 0 && links.every((link) => this.#address.isElsewhere(link))) return hasOffers(node) ? 1 : 0;
    if (hasOffers(node)) return 3;
    return textOf(node, 'name') === null ? 0 : 2;
  }

  #scoreOf({ node, isAside }: PlacedNode): number {
    return this.#score(node, isAside);
  }

  /** How surely the node is the page's: see PageAddress. */
  #score(node: Node, isAside: boolean): number {
    const links = [...linksOf(node), ...(this.#index.groupOf(node) === null ? [] : offerLinksOf(node))];
    // The fragment of an aside names a part of the page, which is another product.
    const whole = isAside ? links.filter((link) => !link.includes('#')) : links;
    return whole.reduce((most, link) => Math.max(most, this.#address.score(link)), 0);
  }
}

function isBefore(ranks: readonly number[], others: readonly number[]): boolean {
  for (const [i, rank] of ranks.entries()) {
    const other = others[i] ?? NaN;
    if (rank !== other) return rank > other;
  }
  return false;
}

const stageOf = (nodes: readonly unknown[]): Stage => ({
  nodes,
  pools: nodes.map((node) => [node]),
  isVariants: false,
});
const variantStage = (nodes: readonly unknown[]): Stage => ({ nodes, pools: [nodes], isVariants: true });

const isFree = ({ isAside, isPart }: PlacedNode): boolean => !isAside && !isPart;

const hasOffers = (node: Node): boolean => listOf(own(node, 'offers')).length > 0;

function linksOf(node: Node): string[] {
  const page = own(node, 'mainEntityOfPage');
  const links = [textOf(node, 'url'), textOf(node, '@id'), textOf(node, 'mainEntityOfPage')];
  return [...links, textOf(page, '@id'), textOf(page, 'url')].filter((link) => link !== null);
}

const offerLinksOf = (node: Node): string[] =>
  listOf(own(node, 'offers'))
    .map((offer) => textOf(offer, 'url'))
    .filter((link) => link !== null);

/** Whether two nodes are sizes of one product: they have its name, and their offers lead to the same page. */
function areSizes(one: Node, other: Node): boolean {
  const [name, links] = [textOf(one, 'name'), offerLinksOf(one)];
  return name !== null && name === textOf(other, 'name') && links.join(' ') === offerLinksOf(other).join(' ');
}
