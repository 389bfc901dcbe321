/** The nodes of a parsed XPath 1.0 expression. Names are in lower case, as in parsed pages. */
export const AXES = [
  'ancestor',
  'ancestor-or-self',
  'attribute',
  'child',
  'descendant',
  'descendant-or-self',
  'following',
  'following-sibling',
  'parent',
  'preceding',
  'preceding-sibling',
  'self',
] as const;
export type Axis = (typeof AXES)[number];

/** `name`: an element or attribute of this name, null for any (`prefix:*` keeps its prefix). */
export type NodeTest =
  { kind: 'name'; name: string | null; prefix: string | null } | { kind: 'node' | 'text' | 'comment' };

export interface PathStep {
  axis: Axis;
  test: NodeTest;
  predicates: XPath[];
}

export type BinaryOperator =
  'or' | 'and' | '=' | '!=' | '<' | '<=' | '>' | '>=' | '+' | '-' | '*' | 'div' | 'mod' | '|';

export type XPath =
  | { kind: 'literal'; value: string | number }
  | { kind: 'binary'; operator: BinaryOperator; left: XPath; right: XPath }
  | { kind: 'negate'; operand: XPath }
  | { kind: 'call'; name: FunctionName; args: XPath[] }
  /** `from`: null for a relative path, 'root' for one that begins with /, else where the first step starts. */
  | { kind: 'path'; from: XPath | 'root' | null; steps: PathStep[] }
  | { kind: 'filter'; operand: XPath; predicates: XPath[] };

/** Minimum and maximum number of arguments per function. */
export const FUNCTIONS = {
  last: [0, 0],
  position: [0, 0],
  count: [1, 1],
  id: [1, 1],
  'local-name': [0, 1],
  'namespace-uri': [0, 1],
  name: [0, 1],
  string: [0, 1],
  concat: [2, 100],
  'starts-with': [2, 2],
  contains: [2, 2],
  'substring-before': [2, 2],
  'substring-after': [2, 2],
  substring: [2, 3],
  'string-length': [0, 1],
  'normalize-space': [0, 1],
  translate: [3, 3],
  boolean: [1, 1],
  not: [1, 1],
  true: [0, 0],
  false: [0, 0],
  lang: [1, 1],
  number: [0, 1],
  sum: [1, 1],
  floor: [1, 1],
  ceiling: [1, 1],
  round: [1, 1],
} as const satisfies Record<string, readonly [number, number]>;

export type FunctionName = keyof typeof FUNCTIONS;

export function isFunctionName(name: string): name is FunctionName {
  return Object.hasOwn(FUNCTIONS, name);
}

const TAKES_SET: readonly FunctionName[] = ['count', 'sum', 'local-name', 'namespace-uri', 'name'];

/**
 * True when the expression yields nodes rather than a string, number or boolean; in XPath 1.0 the text alone decides.
 */
export function givesNodes(expression: XPath): boolean {
  const { kind } = expression;
  if (kind === 'binary') return expression.operator === '|';
  return kind === 'path' || kind === 'filter' || (kind === 'call' && expression.name === 'id');
}

/** True when the function's argument must be a node set. */
export function takesNodes(name: FunctionName): boolean {
  return TAKES_SET.includes(name);
}
