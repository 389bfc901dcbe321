/**
 * The body of a POST request: a template in which `{id}` stands for the product ID, escaped for its place. The ID comes
 * from a table and may have any character; in no place may it end a text, add a member, or change an operation.
 */
import type { RequestTemplate } from '../../domain/request-template.ts';
import { readDocument } from './graphql-document.ts';

type BodyKind = 'json' | 'form' | 'graphql' | 'text';

/** Media types in which an ID can be escaped; others are refused. */
const KINDS: [RegExp, BodyKind][] = [
  [/^application\/(?:[\w.-]+\+)?json$/, 'json'],
  [/^application\/x-www-form-urlencoded$/, 'form'],
  [/^application\/graphql$/, 'graphql'],
  [/^text\/plain$/, 'text'],
];
/** A body is sent as UTF-8. */
const CHARSET = /\s*;\s*charset="?utf-8"?\s*$/i;

const MARK = '{id}';

/** Null for a type that no body may have. */
export function kindOfBody(contentType: string): BodyKind | null {
  const type = contentType.replace(CHARSET, '').toLowerCase();
  return KINDS.find(([pattern]) => pattern.test(type))?.[1] ?? null;
}

/** The body for one product. @param contentType one that `kindOfBody` knows; omitted for an empty body */
export function fillBody(
  { body, contentType = 'text/plain' }: RequestTemplate & { method: 'POST' },
  id: string,
): string {
  if (!body.includes(MARK) && !/%7Bid%7D/i.test(body)) return body;
  switch (kindOfBody(contentType)) {
    case 'json':
      return fillJson(body, id);
    case 'form':
      return fillForm(body, id);
    case 'text':
      return fillText(body, id);
    case 'graphql':
    case null:
      return body;
  }
}

/** True when products with different IDs have different bodies. */
export const bodyNamesProduct = (template: RequestTemplate | undefined): boolean =>
  template?.method === 'POST' && fillBody(template, 'a') !== fillBody(template, 'b');

/** Strings, the mark outside of them, and what is between. */
const JSON_PIECE = /"(?:[^"\\]|\\[^])*"|\{id\}|[^"{]+|[^]/g;

/** In a string the ID is escaped; elsewhere it is a value: a number where it is one, else a string. */
function fillJson(template: string, id: string): string {
  return template.replace(JSON_PIECE, (piece) => {
    if (piece === MARK) return isNumber(id) ? id : JSON.stringify(id);
    if (!piece.startsWith('"') || piece.length === 1) return piece;
    const text = JSON.parse(piece) as string;
    return text.includes(MARK) ? JSON.stringify(fillText(text, id)) : piece;
  });
}

const isNumber = (id: string): boolean => /^-?(?:0|[1-9]\d*)$/.test(id);

/** A text by itself; what is JSON or a GraphQL document inside another format is read as that. */
function fillText(text: string, id: string): string {
  if (text.trim() !== MARK && readDocument(text) !== null) return text;
  return isJson(text) ? fillJson(text, id) : text.replaceAll(MARK, () => id);
}

/** `[{id}]` and `{"id": "{id}"}`, but not `{id}`. */
function isJson(text: string): boolean {
  return /^\s*[[{]/.test(text) && typeof parsed(text) === 'object';
}

function parsed(template: string): unknown {
  try {
    return JSON.parse(fillJson(template, 'x'));
  } catch {
    return undefined;
  }
}

function fillForm(template: string, id: string): string {
  const fill = (part: string): string => {
    const text = decode(part);
    const filled = fillText(text, id);
    return filled === text ? part : encodeURIComponent(filled).replace(/[!'()*]/g, percent);
  };
  return template
    .split('&')
    .map((pair) => {
      const at = pair.indexOf('=');
      return at === -1 ? fill(pair) : `${fill(pair.slice(0, at))}=${fill(pair.slice(at + 1))}`;
    })
    .join('&');
}

function decode(part: string): string {
  try {
    return decodeURIComponent(part.replaceAll('+', ' '));
  } catch {
    return part;
  }
}

const percent = (char: string): string => `%${char.charCodeAt(0).toString(16).toUpperCase()}`;

/** What is wrong with a body of this type; null when it may be sent. */
export function findBodyFault(body: string, contentType: string): string | null {
  switch (kindOfBody(contentType)) {
    case 'json': {
      const value = parsed(body);
      return value === undefined ? 'is no JSON, with an ID in place of {id}' : findDocumentFault(value);
    }
    case 'form':
      return findDocumentFault(Object.fromEntries(body.split('&').map(memberOf)));
    case 'graphql':
      return readDocument(body) === null ? 'is no GraphQL document' : findDocumentFault({ query: body });
    case 'text':
      return findDocumentFault(body);
    case null:
      return 'must be application/json or another type of JSON, application/x-www-form-urlencoded, application/graphql or text/plain; the charset, if it is named, utf-8';
  }
}

function memberOf(pair: string): [string, string] {
  const [name = '', ...value] = pair.split('=');
  return [decode(name), decode(value.join('='))];
}

/** What is wrong with the GraphQL documents in a value, at any depth, also in texts that are JSON themselves. */
export function findDocumentFault(value: unknown, operationName?: unknown): string | null {
  if (typeof value === 'string') {
    const inner = isJson(value) ? parsed(value) : undefined;
    return inner === undefined ? findFaultOf(value, operationName) : findDocumentFault(inner);
  }
  if (typeof value !== 'object' || value === null) return null;
  const name = Object.hasOwn(value, 'operationName') ? (value as Record<string, unknown>).operationName : undefined;
  for (const member of Object.values(value)) {
    const fault = findDocumentFault(member, name);
    if (fault !== null) return fault;
  }
  return null;
}

function findFaultOf(text: string, operationName: unknown): string | null {
  const document = text.trim() === MARK ? null : readDocument(text);
  if (document === null) return null;
  const { operations, hasIdAsValue } = document;
  const writes = operations.find(({ type }) => type !== 'query');
  if (writes)
    return `has a GraphQL ${writes.type}${writes.name === null ? '' : ` (${writes.name})`}: a crawl only reads, with queries`;
  if (hasIdAsValue) return 'has {id} inside a GraphQL document: declare a variable there, and give {id} in variables';
  if (operations.length === 0) return 'has a GraphQL document without an operation';
  const isNamed = typeof operationName === 'string' && operationName !== '';
  if (isNamed && operations.every(({ name }) => name !== operationName))
    return `has no GraphQL operation ${operationName}, which operationName asks for`;
  if (!isNamed && operations.length > 1) return 'has several GraphQL operations: operationName must say which one';
  return null;
}
