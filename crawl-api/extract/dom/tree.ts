/**
 * The page as a tree, for queries that cannot be matched while it streams by. Built from the same parser events as the
 * streaming matcher sees, so both see the same page. `startIndex` of a node is its position in document order,
 * `endIndex` of an element that of the last node inside it.
 */
import { type ChildNode, Comment, Document, Element, type ParentNode, Text } from 'domhandler';
import { MAX_NODES, type PageBudget, PageLimitError } from '../page-limits.ts';

export type TreeNode = Document | ChildNode;

export class TreeBuilder {
  readonly root = new Document([]);
  #parent: ParentNode = this.root;
  #count = 0;

  constructor() {
    this.root.startIndex = this.#count;
  }

  open(name: string, attributes: Record<string, string>): Element {
    const element = new Element(name, attributes);
    this.#add(element);
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
    this.#parent = this.#parent.parent ?? this.root;
  }

  /** The finished tree. */
  end(): Document {
    this.root.endIndex = this.#count;
    return this.root;
  }

  #add(node: ChildNode): void {
    if (++this.#count > MAX_NODES) throw new PageLimitError(`the page has more than ${MAX_NODES} elements and texts`);
    node.startIndex = this.#count;
    node.endIndex = this.#count;
    const { children } = this.#parent;
    const before = children.at(-1);
    if (before) {
      node.prev = before;
      before.next = node;
    }
    node.parent = this.#parent;
    children.push(node);
  }
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
    let up: TreeNode = node;
    while (up !== root && up.next === null) up = up.parent!;
    node = up === root ? null : up.next;
  }
}

export function firstChild(node: TreeNode): ChildNode | null {
  return 'children' in node ? (node.children[0] ?? null) : null;
}

/** All text inside a node, including script and style: XPath's string-value. */
export function sourceOf(node: TreeNode, budget: PageBudget, limit: number): string {
  if (node instanceof Text || node instanceof Comment) return node.data.slice(0, limit);
  let text = '';
  for (const inner of descendants(node, budget)) {
    if (!(inner instanceof Text)) continue;
    text += inner.data;
    if (text.length >= limit) break;
  }
  budget.spend('chars', Math.min(text.length, limit));
  return text.slice(0, limit);
}

/** The text of an element as a reader sees it: without script and style, unless it is one of these. */
export function textOf(node: TreeNode, budget: PageBudget, limit: number): string {
  if (!(node instanceof Element) || isSilent(node))
    return isInsideSilent(node, budget) && node instanceof Element ? '' : sourceOf(node, budget, limit);
  if (isInsideSilent(node, budget)) return '';
  let text = '';
  let silentUntil = -1;
  for (const inner of descendants(node, budget)) {
    if (inner.startIndex! <= silentUntil) continue;
    if (inner instanceof Text) {
      text += inner.data;
      if (text.length >= limit) break;
    } else if (inner instanceof Element && isSilent(inner)) silentUntil = inner.endIndex!;
  }
  budget.spend('chars', Math.min(text.length, limit));
  return text.slice(0, limit);
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
