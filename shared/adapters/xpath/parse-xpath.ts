/**
 * Parses XPath 1.0 without variables, the namespace axis and processing instructions, which pages do not need. A name
 * with a prefix is compared as written (`g:price`); there are no namespace declarations.
 */
import {
  AXES,
  type Axis,
  type BinaryOperator,
  FUNCTIONS,
  givesNodes,
  isFunctionName,
  type NodeTest,
  type PathStep,
  takesNodes,
  type XPath,
} from './xpath-tree.ts';

const MAX_EXPRESSION_CHARS = 4_000;
const MAX_NESTING = 50;

const ANY_NODE: PathStep = { axis: 'descendant-or-self', test: { kind: 'node' }, predicates: [] };

/** Binary operators by precedence, lowest first. */
const LEVELS: readonly (readonly BinaryOperator[])[] = [
  ['or'],
  ['and'],
  ['=', '!='],
  ['<', '<=', '>', '>='],
  ['+', '-'],
  ['*', 'div', 'mod'],
];

/** The expression's tree; throws an Error with a one-line message about the fault. */
export function parseXPath(expression: string): XPath {
  if (expression.length > MAX_EXPRESSION_CHARS)
    throw new XPathFault(`it is longer than ${MAX_EXPRESSION_CHARS} characters`);
  return new XPathParser(lexXPath(expression)).parse();
}

/** The fault of an XPath expression, on one line; null when it is usable. */
export function findXPathFault(expression: string): string | null {
  try {
    parseXPath(expression);
    return null;
  } catch (error) {
    return `the XPath ${JSON.stringify(expression)} cannot be used: ${error instanceof Error ? error.message : String(error)}`;
  }
}

class XPathParser {
  readonly #tokens: XPathToken[];
  #at = 0;
  #nesting = 0;

  constructor(tokens: XPathToken[]) {
    this.#tokens = tokens;
  }

  parse(): XPath {
    const expression = this.#expression();
    if (this.#next.kind !== 'end') this.#fail('the end');
    return expression;
  }

  get #next(): XPathToken {
    return this.#tokens[this.#at]!;
  }

  #fail(wanted: string): never {
    const { kind, text, at } = this.#next;
    throw new XPathFault(
      kind === 'end'
        ? `it ends where ${wanted} is expected`
        : `${wanted} is expected at character ${at + 1}, not ${JSON.stringify(text)}`,
    );
  }

  #take(kind: TokenKind, text?: string): XPathToken | null {
    const token = this.#next;
    if (token.kind !== kind || (text !== undefined && token.text !== text)) return null;
    this.#at++;
    return token;
  }

  #expect(mark: string): void {
    if (!this.#take('mark', mark)) this.#fail(JSON.stringify(mark));
  }

  #expression(): XPath {
    if (++this.#nesting > MAX_NESTING) throw new XPathFault(`it nests deeper than ${MAX_NESTING}`);
    const expression = this.#binary(0);
    this.#nesting--;
    return expression;
  }

  #binary(level: number): XPath {
    const operators = LEVELS[level];
    if (!operators) return this.#unary();
    let left = this.#binary(level + 1);
    for (;;) {
      const operator = operators.find((text) => this.#take('operator', text));
      if (operator === undefined) return left;
      left = { kind: 'binary', operator, left, right: this.#binary(level + 1) };
    }
  }

  #unary(): XPath {
    let minus = 0;
    while (this.#take('operator', '-')) minus++;
    let operand = this.#union();
    for (let i = 0; i < minus; i++) operand = { kind: 'negate', operand };
    return operand;
  }

  #union(): XPath {
    let left = this.#path();
    while (this.#take('operator', '|')) {
      const right = this.#path();
      if (!givesNodes(left) || !givesNodes(right)) throw new XPathFault('both sides of | must be nodes');
      left = { kind: 'binary', operator: '|', left, right };
    }
    return left;
  }

  #path(): XPath {
    if (this.#take('mark', '//')) return { kind: 'path', from: 'root', steps: [ANY_NODE, ...this.#steps()] };
    if (this.#take('mark', '/')) return { kind: 'path', from: 'root', steps: this.#beginsStep() ? this.#steps() : [] };
    if (this.#beginsStep()) return { kind: 'path', from: null, steps: this.#steps() };
    const start = this.#filter();
    const deep = this.#take('mark', '//');
    if (!deep && !this.#take('mark', '/')) return start;
    if (!givesNodes(start)) throw new XPathFault('a path can continue only from nodes');
    return { kind: 'path', from: start, steps: deep ? [ANY_NODE, ...this.#steps()] : this.#steps() };
  }

  #filter(): XPath {
    const operand = this.#primary();
    const predicates = this.#predicates();
    if (predicates.length === 0) return operand;
    if (!givesNodes(operand)) throw new XPathFault('a condition in [ ] needs nodes before it');
    return { kind: 'filter', operand, predicates };
  }

  #primary(): XPath {
    const number = this.#take('number');
    if (number) return { kind: 'literal', value: Number(number.text) };
    const string = this.#take('string');
    if (string) return { kind: 'literal', value: string.text };
    if (this.#take('mark', '(')) {
      const inner = this.#expression();
      this.#expect(')');
      return inner;
    }
    const call = this.#take('call');
    if (call) return this.#call(call.text);
    if (this.#next.text === '$') throw new XPathFault('variables ($…) are not supported');
    return this.#fail('a value or a path');
  }

  #call(name: string): XPath {
    if (!isFunctionName(name)) throw new XPathFault(`there is no function ${name}() in XPath 1.0`);
    const args: XPath[] = [];
    this.#expect('(');
    while (!this.#take('mark', ')')) {
      if (args.length > 0) this.#expect(',');
      args.push(this.#expression());
    }
    const [min, max] = FUNCTIONS[name];
    if (args.length < min || args.length > max)
      throw new XPathFault(`${name}() takes ${min === max ? min : `${min} to ${max}`} arguments, not ${args.length}`);
    if (takesNodes(name) && args[0] && !givesNodes(args[0])) throw new XPathFault(`${name}() takes nodes`);
    return { kind: 'call', name, args };
  }

  #beginsStep(): boolean {
    const { kind, text } = this.#next;
    return (
      kind === 'name' || kind === 'axis' || kind === 'type' || (kind === 'mark' && ['.', '..', '@'].includes(text))
    );
  }

  #steps(): PathStep[] {
    const steps: PathStep[] = [];
    for (;;) {
      if (!this.#beginsStep()) this.#fail('a step of a path');
      steps.push(this.#step());
      if (this.#take('mark', '//')) steps.push(ANY_NODE);
      else if (!this.#take('mark', '/')) return steps;
    }
  }

  #step(): PathStep {
    if (this.#take('mark', '.')) return { axis: 'self', test: { kind: 'node' }, predicates: [] };
    if (this.#take('mark', '..')) return { axis: 'parent', test: { kind: 'node' }, predicates: [] };
    const axis = this.#axis();
    return { axis, test: this.#test(), predicates: this.#predicates() };
  }

  #axis(): Axis {
    if (this.#take('mark', '@')) return 'attribute';
    const token = this.#take('axis');
    if (!token) return 'child';
    const axis = AXES.find((known) => known === token.text);
    if (!axis) throw new XPathFault(`the axis ${token.text}:: is not supported`);
    this.#expect('::');
    return axis;
  }

  #test(): NodeTest {
    const type = this.#take('type');
    if (type) {
      if (type.text === 'processing-instruction') throw new XPathFault('processing instructions are not kept');
      this.#expect('(');
      this.#expect(')');
      return { kind: type.text as 'node' | 'text' | 'comment' };
    }
    const name = this.#take('name') ?? this.#fail('a name');
    const text = name.text.toLowerCase();
    if (text === '*') return { kind: 'name', name: null, prefix: null };
    if (text.endsWith(':*')) return { kind: 'name', name: null, prefix: text.slice(0, -1) };
    return { kind: 'name', name: text, prefix: null };
  }

  #predicates(): XPath[] {
    const predicates: XPath[] = [];
    while (this.#take('mark', '[')) {
      predicates.push(this.#expression());
      this.#expect(']');
    }
    return predicates;
  }
}

type TokenKind = 'number' | 'string' | 'name' | 'axis' | 'call' | 'type' | 'operator' | 'mark' | 'end';

interface XPathToken {
  kind: TokenKind;
  text: string;
  /** Its offset in the expression, from 0. */
  at: number;
}

class XPathFault extends Error {}

const TOKEN =
  /\s*(?:(\d+(?:\.\d*)?|\.\d+)|("[^"]*"|'[^']*')|([\p{L}_][\p{L}\p{N}_.-]*(?::(?!:)(?:\*|[\p{L}_][\p{L}\p{N}_.-]*))?)|(::|\/\/|\.\.|!=|<=|>=|[()[\].@,/|+\-=<>*$]))/uy;

const NODE_TYPES = ['comment', 'text', 'processing-instruction', 'node'];
const NAMED_OPERATORS = ['and', 'or', 'div', 'mod'];

/**
 * All tokens (https://www.w3.org/TR/xpath-10/#exprlex), and a final one of kind `end`. Throws XPathFault at the first
 * character that starts no token.
 */
function lexXPath(expression: string): XPathToken[] {
  const tokens: XPathToken[] = [];
  const pattern = new RegExp(TOKEN);
  while (pattern.lastIndex < expression.length) {
    const start = pattern.lastIndex;
    const match = pattern.exec(expression);
    if (!match) {
      if (expression.slice(start).trim() === '') break;
      throw new XPathFault(`no XPath token begins with ${JSON.stringify(expression.slice(start).trim().slice(0, 10))}`);
    }
    const [whole, number, string, name, mark = ''] = match;
    const text = number ?? string ?? name ?? mark;
    const at = start + whole.length - text.length;
    const rest = expression.slice(pattern.lastIndex);
    let kind: TokenKind = 'number';
    if (string !== undefined) kind = 'string';
    else if (number === undefined) kind = kindOf(text, tokens.at(-1), rest, name !== undefined);
    tokens.push({ kind, text: string === undefined ? text : text.slice(1, -1), at });
  }
  tokens.push({ kind: 'end', text: 'the end', at: expression.length });
  return tokens;
}

/** A name or `*` after something that ends an operand is an operator; otherwise what follows decides. */
function kindOf(text: string, before: XPathToken | undefined, rest: string, isName: boolean): TokenKind {
  const afterOperand =
    before !== undefined &&
    (['number', 'string', 'name'].includes(before.kind) ||
      (before.kind === 'mark' && [')', ']', '.', '..'].includes(before.text)));
  if (!isName) {
    if (text === '*') return afterOperand ? 'operator' : 'name';
    return ['|', '+', '-', '=', '!=', '<', '<=', '>', '>='].includes(text) ? 'operator' : 'mark';
  }
  if (afterOperand && NAMED_OPERATORS.includes(text)) return 'operator';
  const next = rest.trimStart();
  if (next.startsWith('::')) return 'axis';
  if (next.startsWith('(')) return NODE_TYPES.includes(text) ? 'type' : 'call';
  return 'name';
}
