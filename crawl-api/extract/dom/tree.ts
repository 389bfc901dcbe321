/**
 * The page as a tree, for queries that cannot be matched while it streams by. Built from the same parser events as the
 * streaming matcher sees, so both see the same page. `startIndex` of a node is its position in document order,
 * `endIndex` of an element that of the last node inside it.
 */
import { type ChildNode, Comment, Document, Element, type ParentNode, Text } from 'domhandler';
import { MAX_NODES, type PageBudget, PageLimitError } from '../page-limits.ts';
import { TextBreaks, withoutOwnBreaks } from '../text-breaks.ts';

export type TreeNode = Document | ChildNode;

/** A node with this many children has spare room that is small beside them. */
const MANY_CHILDREN = 32;

export class TreeBuilder {
  readonly root = new Document([]);
  #parent: ParentNode = this.root;
  readonly #budget: Pick<PageBudget, 'spend'> | null;
  #count = 0;

  /** @param budget of the page; null where the tree is dropped before the page is read */
  constructor(budget: Pick<PageBudget, 'spend'> | null = null) {
    this.#budget = budget;
    this.root.startIndex = this.#count;
  }

  open(name: string, attributes: Record<string, string>): Element {
    const element = new Element(name, attributes);
    this.#add(element, Object.keys(attributes).length);
    this.#parent = element;
    return element;
  }

  text(text: string): void {
    const last = this.#parent.children.at(-1);
    if (last instanceof Text) last.data += text;
    else this.#add(new Text(text));
  }

  comment(text: string): void {
    this.#add(new Comment(text));
  }

  close(): void {
    this.#parent.endIndex = this.#count;
    const { children } = this.#parent;
    // Without the room that the last push made.
    if (children.length > 1 && children.length < MANY_CHILDREN) this.#parent.children = children.slice();
    this.#parent = this.#parent.parent ?? this.root;
  }

  /** The finished tree. */
  end(): Document {
    this.root.endIndex = this.#count;
    return this.root;
  }

  #add(node: ChildNode, attributes = 0): void {
    if (++this.#count > MAX_NODES) throw new PageLimitError(`the page has more than ${MAX_NODES} elements and texts`);
    this.#budget?.spend('kept', 1 + attributes);
    node.startIndex = this.#count;
    node.endIndex = this.#count;
    const { children } = this.#parent;
    const before = children.at(-1);
    if (before) {
      node.prev = before;
      before.next = node;
    }
    node.parent = this.#parent;
    // Most elements have one child. A first push would make room for 17.
    if (before) children.push(node);
    else this.#parent.children = [node];
  }
}

/** Position of a node in document order. */
export function orderOf({ startIndex }: TreeNode): number {
  if (startIndex === null) throw new Error('the node is not of a tree that TreeBuilder has made');
  return startIndex;
}

/** Position of the last node inside a closed one; its own where nothing is inside. */
export const lastInside = (node: TreeNode): number => node.endIndex ?? orderOf(node);

export function isWithin(inner: TreeNode, outer: TreeNode): boolean {
  const order = orderOf(inner);
  return order > orderOf(outer) && order <= lastInside(outer);
}

/** The nodes inside the root in document order, each counted against the budget. */
export function* descendants(root: TreeNode, budget: PageBudget): Generator<ChildNode> {
  let node = firstChild(root);
  while (node !== null) {
    budget.spend('visits');
    yield node;
    const inner = firstChild(node);
    if (inner !== null) {
      node = inner;
      continue;
    }
    let up: TreeNode | null = node;
    while (up !== null && up !== root && up.next === null) up = up.parent;
    node = up === root ? null : (up?.next ?? null);
  }
}

export function firstChild(node: TreeNode): ChildNode | null {
  return 'children' in node ? (node.children[0] ?? null) : null;
}

export interface TextOptions {
  /** Maximum characters. */
  chars: number;
  /** Includes its breaks (text-breaks.ts). */
  breaks?: boolean;
}

/** All text inside a node, including script and style: XPath's string-value. */
export function sourceOf(node: TreeNode, budget: PageBudget, options: TextOptions): string {
  if (node instanceof Text || node instanceof Comment) {
    const text = node.data.slice(0, options.chars);
    return options.breaks === true ? withoutOwnBreaks(text) : text;
  }
  return join(node, budget, options, () => false);
}

/** The text of an element as a reader sees it: without script and style, unless it is one of these. */
export function textOf(node: TreeNode, budget: PageBudget, options: TextOptions): string {
  if (!(node instanceof Element) || isSilent(node))
    return isInsideSilent(node, budget) && node instanceof Element ? '' : sourceOf(node, budget, options);
  return isInsideSilent(node, budget) ? '' : join(node, budget, options, isSilent);
}

function join(
  node: TreeNode,
  budget: PageBudget,
  { chars, breaks = false }: TextOptions,
  isLeftOut: (element: Element) => boolean,
): string {
  let text = '';
  let outUntil = -1;
  const follow = breaks ? new TextBreaks() : null;
  /** `endIndex` of the elements that `follow` has open. */
  const open: number[] = [];
  for (const inner of descendants(node, budget)) {
    const order = orderOf(inner);
    if (order <= outUntil) continue;
    for (let last = open.at(-1); last !== undefined && order > last; last = open.at(-1)) {
      open.pop();
      follow?.close();
    }
    if (inner instanceof Text) {
      const mark = follow?.text(inner.data) ?? '';
      const added = follow === null ? inner.data : withoutOwnBreaks(inner.data);
      text += text === '' ? added : mark + added;
      if (text.length >= chars) break;
    } else if (inner instanceof Element) {
      if (isLeftOut(inner)) outUntil = lastInside(inner);
      if (follow === null) continue;
      follow.open(inner.name);
      open.push(lastInside(inner));
    }
  }
  budget.spend('chars', Math.min(text.length, chars));
  return text.slice(0, chars);
}

function isSilent(element: Element): boolean {
  return element.name === 'script' || element.name === 'style';
}

function isInsideSilent(node: TreeNode, budget: PageBudget): boolean {
  for (let up = node.parent; up !== null; up = up.parent) {
    budget.spend('visits');
    if (up instanceof Element && isSilent(up)) return true;
  }
  return false;
}
