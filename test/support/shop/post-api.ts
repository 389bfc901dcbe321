/**
 * The shop's APIs by POST: GraphQL at `/graphql`, a search by JSON at `/search`, and one by form at `/lookup`. Each
 * finds the product that the body names, and nothing else: an ID that is not escaped for its place finds none.
 */

/** What a body asks for. */
export interface ApiRequest {
  /** The product; null where the body names none. */
  id: string | null;
  /** The answer with the product's data; null: the shop does not sell it. */
  answer: (data: object | null) => { status: number; json: object };
}

const refused = (message: string): ApiRequest => ({
  id: null,
  answer: () => ({ status: 400, json: { errors: [{ message }] } }),
});

/** Null for a path that is no API. */
export function readApiRequest(path: string, contentType: string, body: string): ApiRequest | null {
  switch (path) {
    case '/graphql':
      return readGraphql(contentType, body);
    case '/search':
      return readSearch(contentType, body);
    case '/lookup':
      return readLookup(contentType, body);
    default:
      return null;
  }
}

function readGraphql(contentType: string, body: string): ApiRequest {
  const asked = contentType.startsWith('application/json') ? parsed(body) : null;
  const { query, variables } = asked ?? {};
  if (typeof query !== 'string' || !/^\s*query\b[^]*\bproduct\s*\(\s*id:\s*\$id\s*\)/.test(query))
    return refused('the only operation is query { product(id: $id) }');
  const members = typeof variables === 'object' && variables !== null ? Object.entries(variables) : [];
  const [[name, id] = []] = members;
  if (members.length !== 1 || name !== 'id' || typeof id !== 'string') return refused('$id is the only variable');
  return { id, answer: (product) => ({ status: 200, json: { data: { product } } }) };
}

function readSearch(contentType: string, body: string): ApiRequest {
  const { query, size, ...others } = (contentType.startsWith('application/json') ? parsed(body) : null) ?? {};
  if (typeof query !== 'string' || size !== 1 || Object.keys(others).length > 0) return refused('query and size: 1');
  return { id: query, answer: toHits };
}

function readLookup(contentType: string, body: string): ApiRequest {
  const form = [...new URLSearchParams(body)];
  const [first, second] = form;
  const isForm = contentType === 'application/x-www-form-urlencoded' && form.length === 2;
  if (!isForm || first?.[0] !== 'sku' || second?.[1] !== 'full') return refused('sku and detail=full');
  return { id: first[1], answer: toHits };
}

const toHits = (product: object | null) => ({
  status: product === null ? 404 : 200,
  json: product === null ? { error: 'no such product' } : { total: 1, hits: [product] },
});

function parsed(body: string): Record<string, unknown> | null {
  try {
    const value: unknown = JSON.parse(body);
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : null;
  } catch {
    return null;
  }
}
