/** CSS selectors over the tree, by css-select. Each node visited counts against the page's budget. */
import { compile, type Options } from 'css-select';
import { Element } from 'domhandler';
import { RECORD_PSEUDO, partByScope } from '../../../shared/adapters/selector-check.ts';
import { PageBudget } from '../page-limits.ts';
import { descendants, sourceOf, type TreeNode } from './tree.ts';

/** Finds elements inside `root`, in document order; with `:scope` at the end of a selector the root itself. */
export type CssQuery = (root: TreeNode, budget: PageBudget) => Iterable<Element>;

/** Maximum characters of an element's text that `:contains()` searches. */
const MAX_CONTAINS_CHARS = 1_000_000;

interface MatchContext {
  root: TreeNode | null;
  budget: PageBudget;
}

/** Compiles a selector that `readSelector` has accepted. */
export function compileCss(selector: string): CssQuery {
  const { self, inside } = partByScope(selector);
  const context: MatchContext = { root: null, budget: new PageBudget() };
  const options = {
    adapter: adapterFor(context),
    relativeSelector: false,
    pseudos: { [RECORD_PSEUDO]: (element: Element) => element === context.root },
    // Its caches would keep results of another record as the scope.
    cacheResults: false,
  };
  const isRoot = compile<TreeNode, Element>(self, options);
  const isInside = compile<TreeNode, Element>(inside, options);
  return function* find(root, budget) {
    context.root = root;
    context.budget = budget;
    if (root instanceof Element && self.length > 0 && isRoot(root)) yield root;
    if (inside.length === 0) return;
    for (const node of descendants(root, budget)) if (node instanceof Element && isInside(node)) yield node;
  };
}

function adapterFor(context: MatchContext): NonNullable<Options<TreeNode, Element>['adapter']> {
  const isTag = (node: TreeNode): node is Element => {
    context.budget.spend('visits');
    return node instanceof Element;
  };
  const getChildren = (node: TreeNode): TreeNode[] => ('children' in node ? node.children : []);
  return {
    isTag,
    getChildren,
    getName: (element) => element.name,
    getParent: (element) => element.parent,
    getSiblings: (node) => {
      context.budget.spend('visits');
      return node.parent ? node.parent.children : [node];
    },
    prevElementSibling: (node) => {
      let before: TreeNode | null = node.prev;
      while (before !== null && !isTag(before)) before = before.prev;
      return before;
    },
    getAttributeValue: (element, name) => (hasAttribute(element, name) ? element.attribs[name] : undefined),
    hasAttrib: hasAttribute,
    getText: (node) => sourceOf(node, context.budget, { chars: MAX_CONTAINS_CHARS }),
    equals: (a, b) => {
      context.budget.spend('visits');
      return a === b;
    },
    // Used only by css-select's own searches, which are not used here.
    removeSubsets: (nodes) => nodes,
  };
}

function hasAttribute(element: Element, name: string): boolean {
  return Object.hasOwn(element.attribs, name);
}
