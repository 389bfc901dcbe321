/** Finds all typed nodes of a page and where each stands: which one is what the page is about depends on it. */
import { isListType, isProductType, typesOf } from './node-types.ts';
import { bareKey, isNode, type Node, own } from './nodes.ts';

/** A node and where it stands. */
export interface PlacedNode {
  node: Node;
  types: readonly string[];
  isProduct: boolean;
  /** The node is in a list, or named beside another product as related to it. */
  isAside: boolean;
  /** Part of another product, such as one of its variants. */
  isPart: boolean;
}

/** Properties that lead away from the page's product. */
const ASIDES = new Set([
  'isRelatedTo',
  'isSimilarTo',
  'isAccessoryOrSparePartFor',
  'isConsumableFor',
  'itemListElement',
  'hasOfferCatalog',
  'dataFeedElement',
  'makesOffer',
  'owns',
  'addOn',
  'includesObject',
  'mentions',
]);

/** Maximum nesting of nodes. */
const MAX_NESTING = 100;

/** Where a node was found: by which property of which node. */
interface Place {
  parent: Node | null;
  key: string;
  /** The product around it. */
  product: Node | null;
  isAside: boolean;
  /** The place is in breadcrumbs, which name the page itself beside others. */
  isCrumb: boolean;
}

const TOP: Place = { parent: null, key: '', product: null, isAside: false, isCrumb: false };

export class NodeIndex {
  /** All nodes of the page, in page order. */
  readonly nodes: PlacedNode[] = [];
  readonly #seen = new Set<Node>();
  readonly #types = new Map<string, readonly string[]>();
  readonly #ids = new Map<string, Node>();
  readonly #references: [reference: Node, id: string, place: Place][] = [];
  readonly #targets = new Map<unknown, Node>();
  readonly #groups = new Map<Node, Node>();
  readonly #variants = new Map<Node, Node[]>();
  /** Nodes that references name as asides: those of products, and all others; and nodes that one makes a variant. */
  readonly #related = new Set<Node>();
  readonly #listed = new Set<Node>();
  readonly #parts = new Set<Node>();

  constructor(roots: readonly unknown[]) {
    for (const [block, root] of roots.entries()) this.#visit(root, TOP, block, 0);
    for (const [reference, id, place] of this.#references) {
      const target = this.#ids.get(id);
      if (target === undefined) continue;
      this.#targets.set(reference, target);
      const variant = this.#noteVariant(target, place);
      if (variant !== null) this.#parts.add(variant);
      if (place.isAside && !place.isCrumb) (place.product === null ? this.#listed : this.#related).add(target);
    }
    for (const placed of this.nodes) placed.isPart ||= this.#parts.has(placed.node);
    const spared = this.#spared();
    for (const placed of this.nodes)
      if (!spared.has(placed)) placed.isAside ||= this.#listed.has(placed.node) || this.#related.has(placed.node);
  }

  /** The node that a reference by `@id` stands for; any other value itself. */
  resolve(value: unknown): unknown {
    return this.#targets.get(value) ?? value;
  }

  /** The product group of which this product is a variant. */
  groupOf(product: Node): Node | null {
    return this.#groups.get(product) ?? null;
  }

  /** The variants of a product group, in page order. */
  variantsOf(group: Node): readonly Node[] {
    return this.#variants.get(group) ?? [];
  }

  /**
   * The products that may be the page's although references make asides of all products: related products often name it
   * in turn, and a list may name the only one. Several products of a list are a category.
   */
  #spared(): ReadonlySet<PlacedNode> {
    const free = this.nodes.filter(({ isProduct, isAside, isPart }) => isProduct && !isAside && !isPart);
    const unlisted = free.filter(({ node }) => !this.#listed.has(node));
    if (unlisted.some(({ node }) => !this.#related.has(node))) return new Set();
    return new Set(free.length === 1 ? free : unlisted);
  }

  #visit(value: unknown, place: Place, block: number, depth: number): void {
    if (depth > MAX_NESTING) return;
    if (Array.isArray(value)) {
      for (const element of value as unknown[]) this.#visit(element, place, block, depth + 1);
      return;
    }
    if (!isNode(value)) return;
    const id = own(value, '@id');
    if (typeof id === 'string') {
      // Names of blank nodes hold within their block.
      const name = id.startsWith('_:') ? `${block} ${id}` : id;
      if (isReference(value)) {
        this.#references.push([value, name, place]);
        return;
      }
      if (!this.#ids.has(name)) this.#ids.set(name, value);
    }
    if (this.#seen.has(value)) return;
    this.#seen.add(value);
    const types = this.#typesOf(value);
    const isProduct = isProductType(types) || Object.hasOwn(value, 'hasVariant');
    if (isProduct || types.length > 0)
      this.nodes.push({ node: value, types, isProduct, isAside: place.isAside, isPart: place.product !== null });
    this.#noteVariant(value, place);
    const product = isProduct ? value : place.product;
    const isCrumb = place.isCrumb || types.includes('breadcrumblist');
    const isAside = place.isAside || isListType(types);
    for (const [name, inner] of Object.entries(value)) {
      if (typeof inner !== 'object' || inner === null) continue;
      const key = bareKey(name);
      this.#visit(
        inner,
        { parent: value, key, product, isAside: isAside || ASIDES.has(key), isCrumb },
        block,
        depth + 1,
      );
    }
  }

  /** One list for all nodes of a type: a page may have 100,000. */
  #typesOf(node: Node): readonly string[] {
    const type = own(node, '@type');
    if (typeof type !== 'string') return typesOf(node);
    let types = this.#types.get(type);
    if (types === undefined) this.#types.set(type, (types = typesOf(node)));
    return types;
  }

  /** Notes that one of the two is a variant of the other, and returns which; null if neither is. */
  #noteVariant(target: Node, { parent, key, product }: Place): Node | null {
    if (parent === null || parent !== product || parent === target) return null;
    const [group, variant] = key === 'hasVariant' ? [parent, target] : [target, parent];
    if (key !== 'hasVariant' && key !== 'isVariantOf') return null;
    const known = this.#groups.get(variant);
    // What a group says of its variants outweighs what a variant says of its group.
    if (known !== undefined && (known === group || key === 'isVariantOf')) return variant;
    this.#groups.set(variant, group);
    const variants = this.#variants.get(group);
    if (variants === undefined) this.#variants.set(group, [variant]);
    else variants.push(variant);
    return variant;
  }
}

/** A node that only names another one, at most with its type. */
function isReference(node: Node): boolean {
  const keys = Object.keys(node);
  return keys.length === 1 || (keys.length === 2 && own(node, '@type') !== undefined);
}
