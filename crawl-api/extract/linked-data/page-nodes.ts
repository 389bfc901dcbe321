/**
 * Which nodes of a page a path is searched in.
 *
 * A page with products: one of them is the page's. It is the one whose url, `@id` or mainEntityOfPage is the page's; else
 * the first with offers that is neither an aside (related products, lists) nor part of another product; else the first
 * such one; else none, because a value of another product would be worse than none. What it lacks is taken from nodes
 * that name the same product, then from its group, then from its variants.
 *
 * A page without products: all nodes but those that describe the site or the page, then their `mainEntity`, then the
 * variants of those.
 */
import { NodeIndex, type PlacedNode } from './node-index.ts';
import { bareName, isSiteType, typesOf } from './node-types.ts';
import { isNode, listOf, type Node, own, textOf } from './nodes.ts';
import type { PageAddress } from './page-address.ts';

/** Nodes that are searched in turn. */
export interface Stage {
  nodes: readonly unknown[];
  /** Their offers are those of one product. */
  areVariants: boolean;
}

export class PageNodes {
  readonly #roots: readonly unknown[];
  readonly #address: PageAddress;
  readonly #index: NodeIndex;
  readonly #stages = new Map<string, Stage[]>();

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
   * `type`: the name of a type; null for the page's product, or on a page without products for any node. `all`: values of
   * all nodes of the type are wanted; of products it is always one.
   */
  stages(type: string | null, all: boolean): Stage[] {
    const query = JSON.stringify([type, all]);
    const known = this.#stages.get(query);
    if (known !== undefined) return known;
    const stages = this.#find(type, all);
    this.#stages.set(query, stages);
    return stages;
  }

  #find(type: string | null, all: boolean): Stage[] {
    const name = type === null ? null : bareName(type);
    const products = this.#index.nodes.filter(({ isProduct }) => isProduct);
    if (name === null && products.length === 0) return this.#stagesOfAny();
    if (name === null || name === 'product') return this.#stagesOf(products.filter((one) => this.#isEligible(one)));
    const asked = this.#index.nodes.filter(({ types }) => types.includes(name));
    return all ? [stageOf(asked.map(({ node }) => node))] : this.#stagesOf(asked);
  }

  #stagesOf(placed: readonly PlacedNode[]): Stage[] {
    const [first, ...rest] = placed;
    if (first === undefined) return [];
    const { node } = rest.reduce((best, next) => (this.#isBefore(next, best) ? next : best), first);
    const same = placed.filter((one) => one.node !== node && isFree(one) && areSame(one.node, node));
    const group = this.#index.groupOf(node);
    return [
      stageOf([node]),
      ...same.map((one) => stageOf([one.node])),
      stageOf(group === null ? [] : [group]),
      { nodes: this.#index.variantsOf(node), areVariants: true },
    ];
  }

  #stagesOfAny(): Stage[] {
    const top = this.top();
    const entities = this.#inside(top, 'mainEntity');
    return [
      stageOf(top.filter((node) => this.#isSubject(node))),
      stageOf(entities.filter((node) => this.#isSubject(node))),
      { nodes: this.#inside([...top, ...entities], 'hasVariant'), areVariants: true },
    ];
  }

  #inside(nodes: readonly unknown[], key: string): unknown[] {
    return nodes.flatMap((node) => listOf(own(node, key))).map((value) => this.resolve(value));
  }

  #isSubject(node: unknown): boolean {
    if (!isNode(node)) return true;
    return !isSiteType(typesOf(node), () => !this.#address.isFrontPage && this.#score(node, false) > 0);
  }

  /** Whether this may be the product of the page. */
  #isEligible(placed: PlacedNode): boolean {
    return isFree(placed) || this.#scoreOf(placed) > 0;
  }

  #isBefore(one: PlacedNode, other: PlacedNode): boolean {
    const [ranks, others] = [this.#ranksOf(one), this.#ranksOf(other)];
    const at = ranks.findIndex((rank, i) => rank !== others[i]);
    return at !== -1 && ranks[at]! > others[at]!;
  }

  #ranksOf(placed: PlacedNode): number[] {
    return [this.#scoreOf(placed), Number(isFree(placed)), this.#standing(placed.node)];
  }

  /** Offers count most, unless they are said to be of another page. */
  #standing(node: Node): number {
    const hasOffers = listOf(own(node, 'offers')).length > 0;
    const url = textOf(node, 'url');
    if (url !== null && this.#address.isElsewhere(url)) return hasOffers ? 1 : 0;
    if (hasOffers) return 3;
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

const stageOf = (nodes: readonly unknown[]): Stage => ({ nodes, areVariants: false });

const isFree = ({ isAside, isPart }: PlacedNode): boolean => !isAside && !isPart;

function linksOf(node: Node): string[] {
  const page = own(node, 'mainEntityOfPage');
  const links = [textOf(node, 'url'), textOf(node, '@id'), textOf(node, 'mainEntityOfPage')];
  return [...links, textOf(page, '@id'), textOf(page, 'url')].filter((link) => link !== null);
}

const offerLinksOf = (node: Node): string[] =>
  listOf(own(node, 'offers'))
    .map((offer) => textOf(offer, 'url'))
    .filter((link) => link !== null);

const IDENTIFIERS = ['sku', 'gtin', 'gtin13', 'gtin14', 'gtin12', 'gtin8', 'mpn', 'productID', 'url', 'name'];

/** Whether two nodes name the same product: by their `@id`, or by all identifiers that both have. */
function areSame(one: Node, other: Node): boolean {
  const id = textOf(one, '@id');
  if (id !== null && id === textOf(other, '@id')) return true;
  let shared = 0;
  for (const key of IDENTIFIERS) {
    const [value, another] = [textOf(one, key), textOf(other, key)];
    if (value === null || another === null) continue;
    if (value.toLowerCase() !== another.toLowerCase()) return false;
    shared++;
  }
  return shared > 0;
}
