/**
 * Recognises a GraphQL document in a text, and says which operations it has. It reads the grammar of executable
 * documents (GraphQL, October 2021; descriptions of later drafts) and nothing of types or values: what a server would
 * refuse as a syntax error is no document here.
 */

interface GraphqlOperation {
  type: 'query' | 'mutation' | 'subscription';
  /** Null for an anonymous one. */
  name: string | null;
}

export interface GraphqlDocument {
  operations: GraphqlOperation[];
  /** `{id}` stands where a value goes: in a string, or as an argument. A selection `{id}` is one of the document. */
  hasIdAsValue: boolean;
}

/** Ignored characters and comments, block strings, strings, names, numbers, `...`, other punctuators. */
const TOKEN =
  /(?:[\s,\uFEFF]|#[^\n\r]*)+|("""(?:\\"""|(?!""")[^])*"""|"(?:\\.|[^"\\\n\r])*")|([_A-Za-z]\w*)|(-?\d[\d.eE+-]*)|(\.\.\.|[!$&():=@[\]{|}])/gy;

type TokenKind = 'string' | 'name' | 'number' | 'sign';
interface Token {
  kind: TokenKind;
  text: string;
}

/** The document; null for a text that is none. */
export function readDocument(text: string): GraphqlDocument | null {
  const tokens = readTokens(text);
  return tokens === null || tokens.length === 0 ? null : new DocumentReader(tokens).read();
}

function readTokens(text: string): Token[] | null {
  const tokens: Token[] = [];
  let at = 0;
  for (const match of text.matchAll(TOKEN)) {
    const [whole, string, name, number, sign] = match;
    at = match.index + whole.length;
    const found = string ?? name ?? number ?? sign;
    if (found === undefined) continue;
    const kind =
      string !== undefined ? 'string' : name !== undefined ? 'name' : number !== undefined ? 'number' : 'sign';
    tokens.push({ kind, text: found });
  }
  return at === text.length ? tokens : null;
}

const OPERATIONS: readonly string[] = ['query', 'mutation', 'subscription'];
const CLOSING: Readonly<Record<string, string>> = { '(': ')', '[': ']', '{': '}' };

class NoDocument extends Error {}

/** Each method reads one rule of the grammar, and throws NoDocument where the text does not follow it. */
class DocumentReader {
  readonly #tokens: readonly Token[];
  #at = 0;

  constructor(tokens: readonly Token[]) {
    this.#tokens = tokens;
  }

  read(): GraphqlDocument | null {
    const operations: GraphqlOperation[] = [];
    try {
      while (this.#at < this.#tokens.length) operations.push(...this.#definition());
    } catch (error) {
      if (error instanceof NoDocument) return null;
      throw error;
    }
    const hasIdAsValue =
      this.#idAsArgument || this.#tokens.some(({ kind, text }) => kind === 'string' && text.includes('{id}'));
    return { operations, hasIdAsValue };
  }

  #idAsArgument = false;

  /** An operation, or a fragment, which gives none. */
  #definition(): GraphqlOperation[] {
    if (this.#next?.kind === 'string') this.#at++;
    if (this.#isSign('{')) {
      this.#selections();
      return [{ type: 'query', name: null }];
    }
    const word = this.#name();
    if (word === 'fragment') {
      this.#name();
      this.#arguments();
      this.#word('on');
      this.#name();
      this.#directives();
      this.#selections();
      return [];
    }
    if (!OPERATIONS.includes(word)) throw new NoDocument();
    const name = this.#next?.kind === 'name' ? this.#name() : null;
    this.#arguments();
    this.#directives();
    this.#selections();
    return [{ type: word as GraphqlOperation['type'], name }];
  }

  #selections(): void {
    this.#sign('{');
    do this.#selection();
    while (!this.#isSign('}'));
    this.#at++;
  }

  #selection(): void {
    if (this.#isSign('...')) {
      this.#at++;
      const word = this.#next?.kind === 'name' ? this.#name() : null;
      if (word === 'on') this.#name();
      this.#arguments();
      this.#directives();
      if (word === null || word === 'on') this.#selections();
      return;
    }
    this.#name();
    if (this.#isSign(':')) {
      this.#at++;
      this.#name();
    }
    this.#arguments();
    this.#directives();
    if (this.#isSign('{')) this.#selections();
  }

  #directives(): void {
    while (this.#isSign('@')) {
      this.#at++;
      this.#name();
      this.#arguments();
    }
  }

  /** What stands in parentheses, if there are any: balanced, whatever it is. */
  #arguments(): void {
    if (!this.#isSign('(')) return;
    const open: string[] = [];
    do {
      const { kind, text } = this.#next ?? { kind: 'sign', text: '' };
      const [first, name, last] = this.#tokens.slice(this.#at, this.#at + 3);
      if (first?.text === '{' && name?.text === 'id' && last?.text === '}') this.#idAsArgument = true;
      if (kind === 'sign' && text in CLOSING) open.push(CLOSING[text]!);
      else if (kind === 'sign' && (text === '' || /[)\]}]/.test(text)) && open.pop() !== text) throw new NoDocument();
      this.#at++;
    } while (open.length > 0);
  }

  get #next(): Token | undefined {
    return this.#tokens[this.#at];
  }

  #isSign(text: string): boolean {
    return this.#next?.kind === 'sign' && this.#next.text === text;
  }

  #sign(text: string): void {
    if (!this.#isSign(text)) throw new NoDocument();
    this.#at++;
  }

  #name(): string {
    const next = this.#next;
    if (next?.kind !== 'name') throw new NoDocument();
    this.#at++;
    return next.text;
  }

  #word(text: string): void {
    if (this.#name() !== text) throw new NoDocument();
  }
}
