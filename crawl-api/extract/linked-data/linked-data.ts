/**
 * Values at a dotted path in the JSON-LD or the microdata of a page. page-nodes.ts says in which nodes a path is
 * searched, offers.ts which offer `offers.…` means.
 *
 * Arrays along the path are walked in order; a number in the path selects one element; references by `@id` are
 * followed.
 * `price` and `priceCurrency` of an offer that keeps them there are read from its `priceSpecification`. Values at the
 * end of the path: a text, a number, true or false as text, each element of an array; of an object its `@value`. null
 * and other objects yield nothing.
 */
import type { Scalar } from '../../../shared/domain/mapping.ts';
import { digitsAt } from './json-text.ts';
import { bareKey, isNode, keyIn, listOf, type Node, own, ShownText, textOf } from './nodes.ts';
import { chooseOffer, type ChosenOffer, isBeside, priceIn, specificationIn } from './offers.ts';
import { PageAddress } from './page-address.ts';
import { PageNodes, type Stage } from './page-nodes.ts';

/** A compiled `json_ld` or `microdata` step. */
export interface DataPath {
  keys: readonly string[];
  /** The name of a type to search instead of the page's product. */
  node: string | null;
  /** Texts of elements have their breaks. */
  breaks: boolean;
}

/** Splits `offers.0.price` once, when the mapping is compiled. */
export function parsePath({ path, node }: { path: string; node?: string }, breaks = false): DataPath {
  return { keys: path.split('.').map(bareKey), node: node ?? null, breaks };
}

/** Paths from the top of a block, whatever its type. */
const FROM_TOP = new Set(['@graph', 'mainEntity']);
/** What an aggregate says of its offers, which no offer says. */
const OF_AGGREGATE = new Set(['lowPrice', 'highPrice', 'offerCount']);

/** What tells a variant from the others: of a group without them they are those of the variant that has the offer. */
const IDENTIFIER = /^(sku|gtin\d*|mpn|productID|url|@id)$/;

/** Maximum depth of nested arrays, to prevent a stack overflow. */
const MAX_WALK = 100;

const MAX_PATHS = 60;
const MAX_PATH_KEYS = 4;

interface Search {
  keys: readonly string[];
  found: (string | number)[];
  limit: number;
  breaks: boolean;
  /** Whether the first value is the text of an element. */
  isShown: boolean;
  visits: Visits;
}

/** The nodes visited at each position of a path: references may lead to a node many times. */
class Visits {
  readonly #seen: Set<object>[] = [];

  /** Whether this is the first visit. */
  add(node: object, at: number): boolean {
    const seen = (this.#seen[at] ??= new Set());
    const { size } = seen;
    return seen.add(node).size > size;
  }
}

export class LinkedData {
  readonly #roots: unknown[] = [];
  #address = new PageAddress('', '');
  #nodes: PageNodes | null = null;
  readonly #offers = new Map<string | null, ChosenOffer | null>();

  add(root: unknown): void {
    this.#roots.push(root);
  }

  /** Call before the first read: the page's URL, and what its links are relative to. */
  placeAt(url: string, base: string): void {
    this.#address = new PageAddress(url, base);
  }

  /**
   * All values at the path in order, at most `limit`. With a limit of 1 `offers.…` means one offer, the same for all
   * paths.
   * `isShown`: they are text of elements.
   */
  read({ keys, node, breaks }: DataPath, limit: number): { values: Scalar[]; isShown: boolean } {
    const search: Search = { keys, found: [], limit, breaks, isShown: false, visits: new Visits() };
    if (this.#roots.length === 0) return { values: [], isShown: false };
    this.#nodes ??= new PageNodes(this.#roots, this.#address);
    if (FROM_TOP.has(keys[0]!) && node === null) for (const top of this.#nodes.top()) this.#walk(top, 0, 0, search);
    else {
      const stages = this.#nodes.stages(node, limit > 1);
      if (limit === 1 && keys[0] === 'offers' && keys.length > 1 && !/^\d+$/.test(keys[1]!))
        this.#readOffer(stages, node, search);
      else if (limit === 1 && IDENTIFIER.test(keys[0]!))
        this.#readStages(
          stages.map((stage) => this.#ofOffer(stage, stages, node)),
          search,
        );
      else this.#readStages(stages, search);
    }
    return { values: search.found, isShown: search.isShown };
  }

  /** The paths that have a value, in page order, at most MAX_PATHS: what a person may have meant. */
  paths(node: string | null): string[] {
    if (this.#roots.length === 0) return [];
    const nodes = (this.#nodes ??= new PageNodes(this.#roots, this.#address));
    const found = new Set<string>();
    const visits = new Visits();
    const walk = (reference: unknown, path: string, level: number): void => {
      const value = nodes.resolve(reference);
      if (found.size >= MAX_PATHS || level > MAX_PATH_KEYS) return;
      if (Array.isArray(value)) for (const element of value as unknown[]) walk(element, path, level);
      else if (isNode(value)) {
        if (!visits.add(value, level)) return;
        for (const [key, inner] of Object.entries(value))
          if (key !== '@context') walk(inner, path === '' ? bareKey(key) : `${path}.${bareKey(key)}`, level + 1);
      } else if (value !== null && value !== undefined && path !== '') found.add(path);
    };
    for (const stage of nodes.stages(node, false)) for (const one of stage.nodes) walk(one, '', 0);
    return [...found];
  }

  #readStages(stages: readonly Stage[], search: Search): void {
    for (const { nodes, pools } of stages) {
      for (const node of search.keys[0] === 'offers' ? pools.flat() : nodes) this.#walk(node, 0, 0, search);
      // If the product has the value itself, its group and variants would only add those of other products.
      if (search.found.length > 0) return;
    }
  }

  /**
   * The stage; of several variants only the one that has the chosen offer: further ones would lend it their
   * identifiers.
   */
  #ofOffer(stage: Stage, stages: readonly Stage[], type: string | null): Stage {
    if (!stage.isVariants || stage.nodes.length < 2) return stage;
    const owner = this.#offerOf(stages, type)?.owner;
    return { ...stage, nodes: stage.nodes.filter((node) => node === owner) };
  }

  /** The offer that all paths of this type read. */
  #offerOf(stages: readonly Stage[], type: string | null): ChosenOffer | null {
    let offer = this.#offers.get(type);
    if (offer === undefined) this.#offers.set(type, (offer = chooseOffer(stages, this.#nodes!, this.#address)));
    return offer;
  }

  #readOffer(stages: readonly Stage[], type: string | null, search: Search): void {
    const nodes = this.#nodes!;
    const offer = this.#offerOf(stages, type);
    if (offer === null) return;
    const { keys } = search;
    if (OF_AGGREGATE.has(keys[1]!)) {
      const aggregates = stages.flatMap((stage) => stage.nodes.flatMap((node) => listOf(own(node, 'offers'))));
      for (const one of aggregates.map((value) => nodes.resolve(value)))
        if (isBeside(offer, one)) this.#walk(one, 1, 1, search);
      return;
    }
    // `offers.offers.price`: the offers of an aggregate are the offers.
    const from = keys[1] === 'offers' && keys.length > 2 ? 2 : 1;
    const { node, aggregate } = (keys[from] === 'availability' && offer.inStock) || offer;
    this.#walk(node, from, 1, search);
    if (search.found.length === 0) this.#walk(aggregate, from, 1, search);
  }

  #walk(reference: unknown, at: number, depth: number, search: Search): void {
    const { keys, found, limit } = search;
    if (found.length >= limit || depth > MAX_WALK) return;
    const holder = this.#nodes!.resolve(reference);
    const key = keys[at]!;
    if (Array.isArray(holder) && !/^\d+$/.test(key)) {
      for (const element of holder as unknown[]) this.#walk(element, at, depth + 1, search);
      return;
    }
    if (typeof holder !== 'object' || holder === null || holder instanceof ShownText) return;
    if (!search.visits.add(holder, at)) return;
    const isOffer = IN_SPECIFICATION.has(key) && isNode(holder);
    const place = isOffer ? placeOfPrice(holder, key, this.#nodes!) : holder;
    const name = keyIn(place, key);
    if (name === null) return;
    if (at + 1 === keys.length) collect(place, name, depth, search);
    else this.#walk((place as Node)[name], at + 1, depth + 1, search);
  }
}

function collect(holder: object, key: string | number, depth: number, search: Search): void {
  const { found, limit } = search;
  if (found.length >= limit || depth > MAX_WALK) return;
  const value = (holder as Node)[key];
  if (value instanceof ShownText) {
    search.isShown ||= found.length === 0;
    found.push(search.breaks ? value.broken : value.text);
  } else if (typeof value === 'string') found.push(value);
  else if (typeof value === 'number') {
    if (Number.isFinite(value)) found.push(digitsAt(holder, key) ?? value);
  } else if (typeof value === 'boolean') found.push(String(value));
  else if (Array.isArray(value)) for (const i of value.keys()) collect(value, i, depth + 1, search);
  else if (isNode(value) && Object.hasOwn(value, '@value')) collect(value, '@value', depth + 1, search);
}

const IN_SPECIFICATION = new Set(['price', 'priceCurrency']);

/** Where an offer has its price or the currency of this price. */
function placeOfPrice(offer: Node, key: string, nodes: PageNodes): Node {
  const place = priceIn(offer, nodes);
  if (place === null || key === 'price') return place ?? offer;
  const [first, second] = [place, place === offer ? specificationIn(offer, nodes) : offer];
  return textOf(first, key) === null && second !== null ? second : first;
}
