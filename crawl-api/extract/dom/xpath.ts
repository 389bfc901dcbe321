/**
 * XPath 1.0 over a page's tree. Duplicates are removed after each step, so that each step of `//a//b//c` costs at most
 * the number of the page's nodes; everything counts against the page's budget.
 */
import type { PathStep, XPath } from '../../../shared/adapters/xpath/xpath-tree.ts';
import type { PageBudget } from '../page-limits.ts';
import { withoutOwnBreaks } from '../text-breaks.ts';
import { lastInside, orderOf, textOf, type TreeNode } from './tree.ts';
import { type CallContext, callFunction, nodesOf, normalizeSpace } from './xpath-functions.ts';
import {
  AttributeNode,
  inOrder,
  isReverse,
  passesTest,
  stringOf,
  walkAxis,
  type XPathNode,
  type XPathWorld,
} from './xpath-nodes.ts';
import { compare, type Comparison, toBoolean, toNumber, toText, type XPathValue } from './xpath-values.ts';

/** Values of an expression: the texts of its nodes, or its one string, number or boolean. */
export function evaluateXPath(
  expression: XPath,
  root: TreeNode,
  budget: PageBudget,
  limits: { values: number; chars: number; breaks?: boolean },
): (string | number | boolean)[] {
  const world = { root, budget };
  const value = evaluateResult(expression, { node: root, position: 1, size: 1, world }, limits.breaks === true);
  if (!Array.isArray(value)) return typeof value === 'number' && !Number.isFinite(value) ? [] : [value];
  return value.slice(0, limits.values).map((node) => {
    if (!(node instanceof AttributeNode)) return textOf(node, budget, limits);
    const text = node.value.slice(0, limits.chars);
    return limits.breaks === true ? withoutOwnBreaks(text) : text;
  });
}

/** `string(…)` and `normalize-space(…)` of nodes are texts of elements, too: as results they have their breaks. */
function evaluateResult(expression: XPath, context: CallContext, breaks: boolean): XPathValue {
  if (!breaks) return evaluate(expression, context);
  const name = expression.kind === 'call' && expression.args.length === 1 ? expression.name : '';
  if (expression.kind !== 'call' || (name !== 'string' && name !== 'normalize-space')) {
    const value = evaluate(expression, context);
    return typeof value === 'string' ? withoutOwnBreaks(value) : value;
  }
  const value = evaluate(expression.args[0]!, context);
  const text =
    Array.isArray(value) && value[0]
      ? stringOf(value[0], context.world, true)
      : withoutOwnBreaks(toText(value, context.world));
  return name === 'normalize-space' ? normalizeSpace(text) : text;
}

/** The nodes of an expression inside the root; none when it yields another type. */
export function selectByXPath(expression: XPath, root: TreeNode, budget: PageBudget): XPathNode[] {
  return nodesOf(evaluate(expression, { node: root, position: 1, size: 1, world: { root, budget } }));
}

function evaluate(expression: XPath, context: CallContext): XPathValue {
  switch (expression.kind) {
    case 'literal':
      return expression.value;
    case 'negate':
      return -toNumber(evaluate(expression.operand, context), context.world);
    case 'binary':
      return evaluateBinary(expression, context);
    case 'call':
      return callFunction(
        expression.name,
        expression.args.map((arg) => evaluate(arg, context)),
        context,
      );
    case 'filter':
      return applyPredicates(nodesOf(evaluate(expression.operand, context)), expression.predicates, context.world);
    case 'path': {
      let nodes = startOf(expression.from, context);
      for (const step of expression.steps) nodes = applyStep(nodes, step, context.world);
      return nodes;
    }
  }
}

function startOf(from: XPath | 'root' | null, context: CallContext): XPathNode[] {
  if (from === null) return [context.node];
  return from === 'root' ? [context.world.root] : nodesOf(evaluate(from, context));
}

type Binary = Extract<XPath, { kind: 'binary' }>;

function evaluateBinary({ operator, left, right }: Binary, context: CallContext): XPathValue {
  const first = evaluate(left, context);
  if (operator === 'or') return toBoolean(first) || toBoolean(evaluate(right, context));
  if (operator === 'and') return toBoolean(first) && toBoolean(evaluate(right, context));
  const second = evaluate(right, context);
  if (operator === '|') return inOrder([...nodesOf(first), ...nodesOf(second)]);
  const calculate = ARITHMETIC[operator];
  return calculate === undefined
    ? compare(operator as Comparison, first, second, context.world)
    : calculate(toNumber(first, context.world), toNumber(second, context.world));
}

const ARITHMETIC: Partial<Record<Binary['operator'], (left: number, right: number) => number>> = {
  '+': (left, right) => left + right,
  '-': (left, right) => left - right,
  '*': (left, right) => left * right,
  div: (left, right) => left / right,
  mod: (left, right) => left % right,
};

function applyStep(nodes: XPathNode[], step: PathStep, world: XPathWorld): XPathNode[] {
  const found: XPathNode[] = [];
  // Nodes inside a node that was already walked would only be found again.
  const isDeep = step.predicates.length === 0 && step.axis.startsWith('descendant');
  let walkedUntil = -1;
  for (const node of nodes) {
    if (isDeep && !(node instanceof AttributeNode)) {
      if (orderOf(node) <= walkedUntil) continue;
      walkedUntil = lastInside(node);
    }
    const passed: XPathNode[] = [];
    for (const candidate of walkAxis(step.axis, node, world))
      if (passesTest(step.test, candidate)) passed.push(candidate);
    const kept = applyPredicates(passed, step.predicates, world);
    if (nodes.length === 1) return isReverse(step.axis) ? kept.toReversed() : kept;
    for (const one of kept) found.push(one);
  }
  return isDeep ? found : inOrder(found);
}

/** The nodes that pass every condition; a number is a position in the order in which the nodes come. */
function applyPredicates(nodes: XPathNode[], predicates: XPath[], world: XPathWorld): XPathNode[] {
  let kept = nodes;
  for (const predicate of predicates) {
    const size = kept.length;
    kept = kept.filter((node, i) => {
      world.budget.spend('visits');
      const value = evaluate(predicate, { node, position: i + 1, size, world });
      return typeof value === 'number' ? value === i + 1 : toBoolean(value);
    });
  }
  return kept;
}
