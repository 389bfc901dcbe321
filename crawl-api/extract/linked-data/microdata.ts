/**
 * Collects the microdata of a page as it streams by, and turns its items into nodes as of JSON-LD. Values are those of
 * the HTML standard: attributes with links are made absolute, and what has no attribute of its own gives its text.
 * Beyond the standard `content` counts on any element: shops write `<span itemprop="price" content="12.50">`, and
 * search engines read it.
 */
import type { Attributes } from '../markup/markup-events.ts';
import { KEPT_BY_PART, type PageBudget, PageLimitError } from '../page-limits.ts';
import { BareObject, type Node, ShownText } from './nodes.ts';

/** An element with an item, a property or an ID; the elements between them do not matter. */
interface Part {
  depth: number;
  id: string | null;
  properties: readonly string[];
  item: { types: readonly string[]; id: string | null; references: readonly string[] } | null;
  /** The value of an attribute. */
  value: string | null;
  isLink: boolean;
  /** Receives the text of the element where that is its value. */
  texts: string[] | null;
  children: Part[];
}

/** The attributes that have the value of an element. */
const ATTRIBUTES: Readonly<Record<string, string>> = {
  meta: 'content',
  data: 'value',
  meter: 'value',
  time: 'datetime',
  object: 'data',
  a: 'href',
  area: 'href',
  link: 'href',
  audio: 'src',
  embed: 'src',
  iframe: 'src',
  img: 'src',
  source: 'src',
  track: 'src',
  video: 'src',
};
const LINKS = new Set(['data', 'href', 'src']);

export class MicrodataReader {
  readonly #budget: PageBudget;
  readonly #top: Part = createPart(0, null);
  /** The open ones, from the outside in. */
  readonly #open: Part[] = [this.#top];

  constructor(budget: PageBudget) {
    this.#budget = budget;
  }

  /** A start tag; returns the list that receives the element's text, if it is needed. Throws PageLimitError. */
  open(name: string, attributes: Attributes, depth: number): string[] | null {
    const id = attributes.get('id') ?? null;
    const properties = attributes.get('itemprop');
    const isItem = attributes.get('itemscope') !== undefined;
    if (id === null && properties === undefined && !isItem) return null;
    this.#budget.spend('parts');
    const part = createPart(depth, id);
    addPart(this.#open.at(-1)!, part);
    this.#open.push(part);
    part.properties = wordsOf(properties);
    if (isItem) {
      const references = wordsOf(attributes.get('itemref'));
      part.item = { types: wordsOf(attributes.get('itemtype')), id: attributes.get('itemid') ?? null, references };
    } else if (part.properties.length > 0) readValue(part, name, attributes);
    return part.texts;
  }

  /** An end tag of an element at this depth. */
  close(depth: number): void {
    const part = this.#open.at(-1)!;
    if (part.depth !== depth) return;
    this.#open.pop();
    const isEmpty = part.properties.length === 0 && part.item === null && part.children.length === 0;
    if (isEmpty) this.#open.at(-1)!.children.pop();
    else this.#budget.spend('kept', KEPT_BY_PART);
  }

  /**
   * The items that are not properties of others, as nodes; `base`: what links are relative to. Throws PageLimitError.
   */
  items(base: string): Node[] {
    return new ItemBuilder(this.#top, base, this.#budget).items();
  }
}

/** Adds a part. Most elements have one part inside; a first push would make room for 17. */
function addPart(parent: Part, part: Part): void {
  if (parent.children.length > 0) parent.children.push(part);
  else parent.children = [part];
}

function createPart(depth: number, id: string | null): Part {
  return { depth, id, properties: NO_WORDS, item: null, value: null, isLink: false, texts: null, children: [] };
}

/** One list for all elements without words: a page may have 100,000. */
const NO_WORDS: readonly string[] = [];

function wordsOf(text: string | undefined): readonly string[] {
  const words = text?.trim() ?? '';
  return words === '' ? NO_WORDS : words.split(/\s+/);
}

function readValue(part: Part, name: string, attributes: Attributes): void {
  const attribute = ATTRIBUTES[name];
  const value = attribute === undefined ? undefined : attributes.get(attribute);
  part.value = value ?? attributes.get('content') ?? null;
  part.isLink = attribute !== undefined && value !== undefined && LINKS.has(attribute);
  if (part.value === null && (attribute === undefined || name === 'time')) part.texts = [''];
}

/** Maximum elements inside each other, including those of items that refer to each other. */
const MAX_NESTING = 1_000;

type Item = Part & { item: NonNullable<Part['item']> };

const isItem = (part: Part): part is Item => part.item !== null;

/** Builds each item once, so that items which refer to each other end. */
class ItemBuilder {
  readonly #top: Part;
  readonly #base: string;
  readonly #budget: PageBudget;
  readonly #ids = new Map<string, Part>();
  readonly #nodes = new Map<Part, Node>();
  #depth = 0;

  constructor(top: Part, base: string, budget: PageBudget) {
    this.#top = top;
    this.#base = base;
    this.#budget = budget;
  }

  items(): Node[] {
    const items: Item[] = [];
    const strays: Item[] = [];
    const collect = (part: Part, isInside: boolean): void => {
      if (part.id !== null && !this.#ids.has(part.id)) this.#ids.set(part.id, part);
      if (isItem(part) && part.properties.length === 0) items.push(part);
      else if (isItem(part) && !isInside) strays.push(part);
      for (const child of part.children) collect(child, isInside || part.item !== null);
    };
    collect(this.#top, false);
    const nodes = items.map((item) => this.#nodeOf(item));
    // An item that is a property of nothing: shops write `itemprop="mainEntity"` without an item for the page.
    const page = new BareObject();
    for (const stray of strays)
      if (!this.#nodes.has(stray))
        for (const property of stray.properties) addValue(page, property, this.#nodeOf(stray));
    return strays.length > 0 ? [...nodes, page] : nodes;
  }

  #nodeOf(part: Item): Node {
    const known = this.#nodes.get(part);
    if (known !== undefined) return known;
    const node = new BareObject();
    this.#nodes.set(part, node);
    const { types, id, references } = part.item;
    if (types.length > 0) node['@type'] = types;
    if (id !== null) node['@id'] = absolute(id, this.#base);
    this.#addProperties(part.children, node);
    for (const reference of references) {
      const target = this.#ids.get(reference);
      if (target !== undefined && target !== part) this.#addProperties([target], node);
    }
    return node;
  }

  #addProperties(parts: readonly Part[], node: Node): void {
    if (++this.#depth > MAX_NESTING)
      throw new PageLimitError(`the microdata of the page nests more than ${MAX_NESTING} elements deep`);
    for (const part of parts) {
      this.#budget.spend('parts');
      const value = part.properties.length > 0 ? this.#valueOf(part) : null;
      if (value !== null) for (const property of part.properties) addValue(node, property, value);
      if (part.item === null) this.#addProperties(part.children, node);
    }
    this.#depth--;
  }

  #valueOf(part: Part): Node | string | ShownText | null {
    if (isItem(part)) return this.#nodeOf(part);
    const text = part.texts?.[0];
    if (text !== undefined) return new ShownText(text);
    return part.isLink && part.value !== null ? absolute(part.value, this.#base) : part.value;
  }
}

/** The absolute form of a link; as the standard says, empty where it cannot be resolved. */
function absolute(link: string, base: string): string {
  return URL.parse(link.trim(), base)?.href ?? '';
}

function addValue(node: Node, property: string, value: Node | string | ShownText): void {
  const values = node[property];
  if (values === undefined) node[property] = value;
  else if (Array.isArray(values)) values.push(value);
  else node[property] = [values, value];
}
