/** What a body of `site.request` may have: JSON, a form or a text, and of GraphQL only documents that read. */
import {
  decodeFormPart,
  ID_MARK,
  isJson,
  kindOfBody,
  parsedTemplate,
  rewriteBody,
} from '../../../shared/adapters/requests/request-body.ts';
import { readDocument } from './graphql-document.ts';

/** What is wrong with a body of this type; null when it may be sent. */
export function findBodyFault(body: string, contentType: string): string | null {
  switch (kindOfBody(contentType)) {
    case 'json': {
      const value = parsedTemplate(body);
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

/**
 * The body as instances have it: in a GraphQL document `{id}` selects a field, and `{ id }` says the same without being
 * the mark of the product ID.
 */
export const withSelections = (body: string, contentType: string): string =>
  rewriteBody(body, contentType, {
    textOf: (text) => (isDocument(text) ? text.replaceAll(ID_MARK, '{ id }') : text),
    value: ID_MARK,
  });

/** `{id}` alone is an ID, though it is a document, too. */
const isDocument = (text: string): boolean => text.trim() !== ID_MARK && readDocument(text) !== null;

function memberOf(pair: string): [string, string] {
  const [name = '', ...value] = pair.split('=');
  return [decodeFormPart(name), decodeFormPart(value.join('='))];
}

/** What is wrong with the GraphQL documents in a value, at any depth, also in texts that are JSON themselves. */
export function findDocumentFault(value: unknown, operationName?: unknown): string | null {
  if (typeof value === 'string') {
    const inner = isJson(value) ? parsedTemplate(value) : undefined;
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
  const document = isDocument(text) ? readDocument(text) : null;
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
