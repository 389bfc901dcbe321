/** XPath's nodes: those of the tree, and attributes; and the axes between them. */
import { type ChildNode, Comment, Element, Text } from 'domhandler';
import type { Axis, NodeTest } from '../../../shared/adapters/xpath/xpath-tree.ts';
import type { PageBudget } from '../page-limits.ts';
import { withoutOwnBreaks } from '../text-breaks.ts';
import { descendants, firstChild, orderOf, sourceOf, type TreeNode } from './tree.ts';

export class AttributeNode {
  readonly owner: Element;
  readonly name: string;
  readonly value: string;
  readonly index: number;

  constructor(owner: Element, name: string, value: string, index: number) {
    this.owner = owner;
    this.name = name;
    this.value = value;
    this.index = index;
  }
}

export type XPathNode = TreeNode | AttributeNode;

/** The scope of an expression: nothing outside `root` exists, so a record's expressions stay inside the record. */
export interface XPathWorld {
  root: TreeNode;
  budget: PageBudget;
}

/** Maximum characters of a string value: twice what a script with JSON may have. */
const MAX_STRING = 4_000_000;

/** `breaks`: with the breaks of the text, for a string that is a result and not searched. */
export function stringOf(node: XPathNode, world: XPathWorld, breaks = false): string {
  if (!(node instanceof AttributeNode)) return sourceOf(node, world.budget, { chars: MAX_STRING, breaks });
  return breaks ? withoutOwnBreaks(node.value) : node.value;
}

export function parentOf(node: XPathNode, world: XPathWorld): TreeNode | null {
  if (node === world.root) return null;
  return node instanceof AttributeNode ? node.owner : node.parent;
}

const REVERSE: readonly Axis[] = ['ancestor', 'ancestor-or-self', 'preceding', 'preceding-sibling'];

/** True for axes whose positions count backwards, against document order. */
export function isReverse(axis: Axis): boolean {
  return REVERSE.includes(axis);
}

/** The axis's nodes, nearest first. */
export function walkAxis(axis: Axis, node: XPathNode, world: XPathWorld): Iterable<XPathNode> {
  world.budget.spend('visits');
  return AXES[axis](node, world);
}

const AXES: Record<Axis, (node: XPathNode, world: XPathWorld) => Iterable<XPathNode>> = {
  self: (node) => [node],
  child: (node, { budget }) => (isAttribute(node) ? [] : siblings(firstChild(node), 'next', budget)),
  parent: (node, world) => [parentOf(node, world)].filter((parent) => parent !== null),
  descendant: (node, { budget }) => (isAttribute(node) ? [] : descendants(node, budget)),
  *'descendant-or-self'(node, world) {
    yield node;
    yield* AXES.descendant(node, world);
  },
  ancestor: ancestors,
  *'ancestor-or-self'(node, world) {
    yield node;
    yield* ancestors(node, world);
  },
  attribute: (node) => (node instanceof Element ? attributesOf(node) : []),
  'following-sibling': (node, { root, budget }) =>
    node === root || isAttribute(node) ? [] : siblings(node.next, 'next', budget),
  'preceding-sibling': (node, { root, budget }) =>
    node === root || isAttribute(node) ? [] : siblings(node.prev, 'prev', budget),
  following,
  preceding,
};

const isAttribute = (node: XPathNode): node is AttributeNode => node instanceof AttributeNode;

function* siblings(first: ChildNode | null, way: 'next' | 'prev', budget: PageBudget): Generator<ChildNode> {
  for (let node = first; node !== null; node = node[way]) {
    budget.spend('visits');
    yield node;
  }
}

function* ancestors(node: XPathNode, world: XPathWorld): Generator<TreeNode> {
  for (let up = parentOf(node, world); up !== null; up = parentOf(up, world)) {
    world.budget.spend('visits');
    yield up;
  }
}

function* attributesOf(element: Element): Generator<AttributeNode> {
  let index = 0;
  for (const [name, value] of Object.entries(element.attribs)) yield new AttributeNode(element, name, value, index++);
}

function* following(node: XPathNode, world: XPathWorld): Generator<XPathNode> {
  // An attribute precedes the content of its element.
  if (node instanceof AttributeNode) yield* descendants(node.owner, world.budget);
  let from: TreeNode | null = node instanceof AttributeNode ? node.owner : node;
  while (from !== null && from !== world.root) {
    for (const next of siblings(from.next, 'next', world.budget)) {
      yield next;
      yield* descendants(next, world.budget);
    }
    from = from.parent;
  }
}

/** Backwards through the document, without the ancestors. */
function* preceding(node: XPathNode, world: XPathWorld): Generator<XPathNode> {
  let at: TreeNode | null = node instanceof AttributeNode ? node.owner : node;
  // Nodes whose inside is still to be walked: only these are no ancestors.
  let inside = 0;
  while (at !== null && at !== world.root) {
    world.budget.spend('visits');
    if (at.prev) {
      at = at.prev;
      for (let last = lastChild(at); last !== null; last = lastChild(at)) {
        at = last;
        inside++;
      }
      yield at;
    } else {
      at = at.parent;
      if (at === null || inside === 0) continue;
      inside--;
      yield at;
    }
  }
}

function lastChild(node: TreeNode): ChildNode | null {
  return 'children' in node ? (node.children.at(-1) ?? null) : null;
}

/** Whether a node passes the test of a step on this axis. */
export function passesTest(test: NodeTest, node: XPathNode): boolean {
  switch (test.kind) {
    case 'node':
      return true;
    case 'text':
      return node instanceof Text;
    case 'comment':
      return node instanceof Comment;
    case 'name': {
      if (!(node instanceof Element || node instanceof AttributeNode)) return false;
      if (test.name !== null) return node.name === test.name;
      return test.prefix === null || node.name.startsWith(test.prefix);
    }
  }
}

/** The nodes in document order, each once. */
export function inOrder(nodes: Iterable<XPathNode>): XPathNode[] {
  const unique = new Map<XPathNode | string, XPathNode>();
  // Attribute nodes are created again at each visit.
  for (const node of nodes) unique.set(node instanceof AttributeNode ? `${placeOf(node)}/${node.index}` : node, node);
  return [...unique.values()].toSorted((a, b) => placeOf(a) - placeOf(b) || indexOf(a) - indexOf(b));
}

const placeOf = (node: XPathNode): number => orderOf(node instanceof AttributeNode ? node.owner : node);

function indexOf(node: XPathNode): number {
  return node instanceof AttributeNode ? node.index : -1;
}
