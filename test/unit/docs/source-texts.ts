/**
 * The texts in the source, read from its syntax tree; interpolated values become `…`. With them a test can check
 * whether a document quotes real messages.
 */
import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { parseAst } from 'vitest/node';

/** The fields of an ESTree node that are used here. */
interface Node {
  type: string;
  [key: string]: unknown;
}

const HOLE = '…';
/** Shorter texts are identifiers or pieces of a message. */
const MIN_WORDS = 3;

const isNode = (value: unknown): value is Node =>
  typeof value === 'object' && value !== null && typeof (value as { type?: unknown }).type === 'string';

function* childrenOf(node: Node): Generator<Node> {
  for (const value of Object.values(node))
    for (const one of Array.isArray(value) ? (value as unknown[]) : [value]) if (isNode(one)) yield one;
}

function* walk(node: Node): Generator<Node> {
  yield node;
  for (const child of childrenOf(node)) yield* walk(child);
}

/** The text of a string, a template or a concatenation; null for anything else. */
function textOf(node: Node): string | null {
  if (node.type === 'Literal') return typeof node.value === 'string' ? node.value : null;
  if (node.type === 'TemplateLiteral') {
    const quasis = node.quasis as { value: { cooked: string } }[];
    return quasis.map((q) => q.value.cooked).join(HOLE);
  }
  if (node.type !== 'BinaryExpression' || node.operator !== '+') return null;
  const [left, right] = [textOf(node.left as Node), textOf(node.right as Node)];
  return left === null && right === null ? null : `${left ?? HOLE}${right ?? HOLE}`;
}

const tidy = (text: string): string => text.replaceAll(/\s+/g, ' ').replaceAll(/…(?:…| …)*…/g, HOLE);

/** The expressions inside a text, which may contain further texts, such as both sides of a conditional. */
function holesOf(node: Node): Node[] {
  if (node.type === 'TemplateLiteral') return node.expressions as Node[];
  if (node.type !== 'BinaryExpression') return [];
  return [node.left as Node, node.right as Node].flatMap((side) => (textOf(side) === null ? [side] : holesOf(side)));
}

/** Every text under the node, concatenated as far as possible. */
function* textsUnder(node: Node): Generator<string> {
  if (node.type === 'ImportDeclaration') return;
  const text = textOf(node);
  if (text !== null) yield tidy(text);
  for (const child of text === null ? childrenOf(node) : holesOf(node)) yield* textsUnder(child);
}

const wordsOf = (text: string): number => text.match(/[A-Za-z0-9]{2,}/g)?.length ?? 0;

const isMessage = (text: string): boolean => wordsOf(text) >= MIN_WORDS;

export class Sources {
  readonly #root: string;
  readonly #trees = new Map<string, Node>();

  /** @param root the folder that holds the source folders */
  constructor(root: string) {
    this.#root = root;
  }

  /** The TypeScript files in these folders. */
  files(...folders: string[]): string[] {
    return folders.flatMap((folder) =>
      readdirSync(join(this.#root, folder), { recursive: true, encoding: 'utf8' })
        .filter((file) => file.endsWith('.ts'))
        .map((file) => join(folder, file)),
    );
  }

  /** Every text in these files, whatever its purpose. */
  allTexts(files: readonly string[]): string[] {
    return files.flatMap((file) => [...textsUnder(this.#tree(file))]);
  }

  /** The texts of one file with at least `words` words. */
  messagesIn(file: string, words: number): string[] {
    return [...new Set([...textsUnder(this.#tree(file))].filter((text) => wordsOf(text) >= words))];
  }

  /**
   * The messages that reach a call of one of these functions as an argument, followed through names of the same file:
   * constants, and functions that put the text together.
   */
  messagesTo(functions: readonly string[], files: readonly string[]): { file: string; text: string }[] {
    const found = new Map<string, { file: string; text: string }>();
    for (const file of files) {
      const tree = this.#tree(file);
      for (const node of walk(tree)) {
        if (node.type !== 'CallExpression' || !functions.includes(calleeOf(node))) continue;
        // The second argument of alarmOnce is its deduplication key, which is not a message.
        const words = calleeOf(node) === 'alarmOnce' ? (node.arguments as Node[]).slice(2) : (node.arguments as Node[]);
        for (const text of this.#follow(words, file, new Set()))
          if (isMessage(text)) found.set(text, { file, text });
      }
    }
    return [...found.values()];
  }

  /** The messages in the values of this property in any object, followed in the same way. */
  messagesOf(property: string, file: string): string[] {
    const values: Node[] = [];
    for (const node of walk(this.#tree(file)))
      if (node.type === 'Property' && (node.key as Node).name === property) values.push(node.value as Node);
    return [...new Set(this.#follow(values, file, new Set()).filter(isMessage))];
  }

  /** The messages in objects of this `kind`: the messages of the control loop's actions. */
  messagesOfKind(kind: string, file: string): string[] {
    const objects: Node[] = [];
    for (const node of walk(this.#tree(file))) {
      if (node.type !== 'ObjectExpression') continue;
      const isOfKind = (p: Node): boolean =>
        p.type === 'Property' && (p.key as Node).name === 'kind' && (p.value as Node).value === kind;
      if ((node.properties as Node[]).some(isOfKind)) objects.push(node);
    }
    return [...new Set(this.#follow(objects, file, new Set()).filter(isMessage))];
  }

  /** The messages that are assigned to a property of this name. */
  messagesSetAs(property: string, files: readonly string[]): string[] {
    const found = new Set<string>();
    for (const file of files) {
      for (const node of walk(this.#tree(file))) {
        if (node.type !== 'AssignmentExpression') continue;
        const { type, property: name } = node.left as Node & { property?: Node };
        if (type !== 'MemberExpression' || name?.name !== property) continue;
        for (const text of this.#follow([node.right as Node], file, new Set())) if (isMessage(text)) found.add(text);
      }
    }
    return [...found];
  }

  #follow(nodes: readonly Node[], file: string, seen: Set<string>): string[] {
    const texts = nodes.flatMap((node) => [...textsUnder(node)]);
    for (const node of nodes.flatMap((n) => [...walk(n)])) {
      if (node.type !== 'Identifier') continue;
      const name = node.name as string;
      if (seen.has(`${file} ${name}`)) continue;
      seen.add(`${file} ${name}`);
      for (const [where, declared] of this.#declarationsOf(name, file)) texts.push(...this.#follow([declared], where, seen));
    }
    return texts;
  }

  /** A file may declare a name several times: all are included. */
  #declarationsOf(name: string, file: string): [string, Node][] {
    const found: [string, Node][] = [];
    for (const node of walk(this.#tree(file))) {
      const isNamed = (node.id as Node | undefined)?.name === name;
      if (node.type === 'VariableDeclarator' && isNamed && isNode(node.init)) found.push([file, node.init]);
      if (node.type === 'FunctionDeclaration' && isNamed) found.push([file, node.body as Node]);
      if (node.type === 'ImportDeclaration') {
        const path = join(dirname(file), (node.source as { value: string }).value);
        const isImported = (node.specifiers as Node[]).some((s) => (s.local as Node).name === name);
        if (isImported && node.importKind !== 'type' && isMessageSource(path) && existsSync(join(this.#root, path)))
          found.push(...this.#declarationsOf(name, path));
      }
    }
    return found;
  }

  #tree(file: string): Node {
    let tree = this.#trees.get(file);
    if (!tree) {
      const source = readFileSync(join(this.#root, file), 'utf8');
      tree = parseAst(source, { lang: 'ts' }) as unknown as Node;
      this.#trees.set(file, tree);
    }
    return tree;
  }
}

/** Texts of the control core itself; imports from elsewhere are helpers. */
const isMessageSource = (path: string): boolean => /^orchestrator\/core\/(?:model|decide|act|observe|callbacks|verify|gc|loop)\b/.test(path);

function calleeOf(call: Node): string {
  const callee = call.callee as Node;
  return ((callee.type === 'MemberExpression' ? (callee.property as Node).name : callee.name) ?? '') as string;
}
