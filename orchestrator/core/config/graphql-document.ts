/** Recognises a GraphQL document in a text, and says which operations it has: what the parser refuses is none. */
import type { OperationTypeNode } from 'graphql/language/ast.js';
import { Kind } from 'graphql/language/kinds.js';
import { Lexer } from 'graphql/language/lexer.js';
import { parse } from 'graphql/language/parser.js';
import { Source } from 'graphql/language/source.js';
import { TokenKind } from 'graphql/language/tokenKind.js';

interface GraphqlOperation {
  type: `${OperationTypeNode}`;
  /** Null for an anonymous one. */
  name: string | null;
}

export interface GraphqlDocument {
  operations: GraphqlOperation[];
  /** `{id}` stands where a value goes: in a string, or as an argument. A selection `{id}` is one of the document. */
  hasIdAsValue: boolean;
}

/** The document, which may have fragments without an operation; null for a text that is none. */
export function readDocument(text: string): GraphqlDocument | null {
  try {
    const { filled, hasIdAsValue } = fillValues(text);
    const operations: GraphqlOperation[] = [];
    for (const definition of parse(filled, { noLocation: true }).definitions) {
      if (definition.kind === Kind.OPERATION_DEFINITION)
        operations.push({ type: definition.operation, name: definition.name?.value ?? null });
      else if (definition.kind !== Kind.FRAGMENT_DEFINITION) return null;
    }
    return { operations, hasIdAsValue };
  } catch {
    // A syntax error, or a nesting that is deeper than the stack.
    return null;
  }
}

const ID = ['{', 'id', '}'];

/** The text with a string for each argument `{id}`, which would be a syntax error. Throws for what has no tokens. */
function fillValues(text: string): { filled: string; hasIdAsValue: boolean } {
  const lexer = new Lexer(new Source(text));
  let [filled, from, depth, hasIdAsValue] = ['', 0, 0, false];
  for (let token = lexer.advance(); token.kind !== TokenKind.EOF; token = lexer.advance()) {
    if (token.kind === TokenKind.PAREN_L) depth++;
    if (token.kind === TokenKind.PAREN_R) depth--;
    if (token.value?.includes('{id}')) hasIdAsValue = true;
    const [open, name] = [token.prev?.prev, token.prev];
    const isId = [open, name, token].every((each, i) => (each?.value ?? each?.kind) === ID[i]);
    if (depth <= 0 || !isId || !open) continue;
    filled += `${text.slice(from, open.start)}"{id}"`;
    [from, hasIdAsValue] = [token.end, true];
  }
  return { filled: filled + text.slice(from), hasIdAsValue };
}
