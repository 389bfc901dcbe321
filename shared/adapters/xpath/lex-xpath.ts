/** Splits an XPath 1.0 expression into tokens (https://www.w3.org/TR/xpath-10/#exprlex). */

export type TokenKind = 'number' | 'string' | 'name' | 'axis' | 'call' | 'type' | 'operator' | 'mark' | 'end';

export interface XPathToken {
  kind: TokenKind;
  text: string;
  /** Its offset in the expression, from 0. */
  at: number;
}

export class XPathFault extends Error {}

const TOKEN =
  /\s*(?:(\d+(?:\.\d*)?|\.\d+)|("[^"]*"|'[^']*')|([\p{L}_][\p{L}\p{N}_.-]*(?::(?!:)(?:\*|[\p{L}_][\p{L}\p{N}_.-]*))?)|(::|\/\/|\.\.|!=|<=|>=|[()[\].@,/|+\-=<>*$]))/uy;

const NODE_TYPES = ['comment', 'text', 'processing-instruction', 'node'];
const NAMED_OPERATORS = ['and', 'or', 'div', 'mod'];

/** All tokens, and a final one of kind `end`. Throws XPathFault at the first character that starts no token. */
export function lexXPath(expression: string): XPathToken[] {
  const tokens: XPathToken[] = [];
  const pattern = new RegExp(TOKEN);
  while (pattern.lastIndex < expression.length) {
    const start = pattern.lastIndex;
    const match = pattern.exec(expression);
    if (!match) {
      if (expression.slice(start).trim() === '') break;
      throw new XPathFault(
        `nothing in XPath begins with ${JSON.stringify(expression.slice(start).trim().slice(0, 10))}`,
      );
    }
    const [whole, number, string, name, mark] = match;
    const text = (number ?? string ?? name ?? mark)!;
    const at = start + whole.length - text.length;
    const rest = expression.slice(pattern.lastIndex);
    const kind =
      number !== undefined
        ? 'number'
        : string !== undefined
          ? 'string'
          : kindOf(text, tokens.at(-1), rest, name !== undefined);
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
