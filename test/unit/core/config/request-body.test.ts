import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { findBodyFault, withSelections } from '../../../../orchestrator/core/config/request-body-check.ts';
import { bodyNamesProduct, fillBody, kindOfBody } from '../../../../shared/adapters/requests/request-body.ts';

const JSON_TYPE = 'application/json';
const FORM = 'application/x-www-form-urlencoded';
/** As configured, and then as an instance fills it. */
const fill = (body: string, id: string, contentType = JSON_TYPE): string =>
  fillBody({ method: 'POST', body: withSelections(body, contentType), contentType }, id);

/** IDs that end a text, add a member, or name the mark. */
const HOSTILE = [
  'P1',
  '12',
  '007',
  '-0',
  '1e5',
  'true',
  'null',
  '"',
  '\\',
  '\\"',
  '","admin":"1',
  'a\nb\r\tc',
  '\u2028\u0007',
  'größe 茶 😀',
  'a&b=c;d',
  'a+b%20c',
  '$&$1$$',
  '{id}',
  '"}) { x } mutation { buy',
  '<a>&amp;',
];
const ids = fc.oneof(fc.constantFrom(...HOSTILE), fc.string({ unit: 'grapheme', minLength: 1 }));
/** Every ID, and each of the hostile ones for sure. */
function forEachId(check: (id: string) => void): void {
  HOSTILE.forEach(check);
  fc.assert(
    fc.property(ids, (id) => {
      check(id);
    }),
  );
}

describe('{id} in a body', () => {
  it('is the text of a JSON string, whatever it has', () => {
    forEachId((id) => {
      expect(JSON.parse(fill('{"a": [{"id": "{id}"}], "text": "sku {id}, {id}", "{id}": 1}', id))).toEqual({
        a: [{ id }],
        text: `sku ${id}, ${id}`,
        [id]: 1,
      });
    });
  });

  it('is a JSON value by itself: a number where it is one, else a string', () => {
    expect(fill('{"id": {id}}', '12')).toBe('{"id": 12}');
    expect(fill('{"ids": [{id}]}', '12345678901234567890')).toBe('{"ids": [12345678901234567890]}');
    for (const id of ['007', '1e5', 'true', 'null', '{"a":1}', '1,"b":2'])
      expect(JSON.parse(fill('{"id": {id}}', id))).toEqual({ id });
    forEachId((id) => {
      const { id: sent } = JSON.parse(fill('{"id": {id}}', id)) as { id: unknown };
      expect(sent).toBe(typeof sent === 'number' ? Number(id) : id);
    });
  });

  it('leaves the rest of the body as it is written', () => {
    expect(fill('{ "n": 12345678901234567890, "x": 1.0, "u": "\\u0041", "id": "{id}" }', 'P1')).toBe(
      '{ "n": 12345678901234567890, "x": 1.0, "u": "\\u0041", "id": "P1" }',
    );
  });

  it('is a GraphQL variable, and a selection {id} of the document stays', () => {
    const query = 'query($id: ID!) { product(id: $id) {id} }';
    forEachId((id) => {
      expect(JSON.parse(fill(JSON.stringify({ query, variables: { id: '{id}' } }), id))).toEqual({
        // The same document, without the mark.
        query: query.replace('{id}', '{ id }'),
        variables: { id },
      });
    });
  });

  it('is escaped twice in JSON inside a JSON string, and in JSON inside a form', () => {
    forEachId((id) => {
      const outer = JSON.parse(fill(JSON.stringify({ variables: '{"id": "{id}"}' }), id)) as { variables: string };
      expect(JSON.parse(outer.variables)).toEqual({ id });
      const form = new URLSearchParams(fill('query=query($id:ID!){p(id:$id){id}}&variables={"id":"{id}"}', id, FORM));
      expect(JSON.parse(form.get('variables')!)).toEqual({ id });
      expect(form.get('query')).toBe('query($id:ID!){p(id:$id){ id }}');
    });
  });

  it('is one value of a form', () => {
    forEachId((id) => {
      const form = new URLSearchParams(fill('a=1+2&id={id}&note=sku%20%7Bid%7D', id, FORM));
      expect([...form]).toEqual([
        ['a', '1 2'],
        ['id', id],
        ['note', `sku ${id}`],
      ]);
    });
  });

  it('is itself in plain text', () => {
    forEachId((id) => expect(fill('sku {id}', id, 'text/plain; charset=utf-8')).toBe(`sku ${id}`));
  });

  it('is the search text of an API that calls it query', () => {
    forEachId((id) => expect(JSON.parse(fill('{"query": "{id}"}', id))).toEqual({ query: id }));
    expect(JSON.parse(fill('{"query": "{!term f=sku}{id}"}', 'P1'))).toEqual({ query: '{!term f=sku}P1' });
  });

  it('makes different bodies of different IDs', () => {
    for (const [body, type] of [
      ['{"id": {id}}', JSON_TYPE],
      ['{"id": "{id}"}', JSON_TYPE],
      ['id={id}', FORM],
      ['{id}', 'text/plain'],
    ] as const)
      fc.assert(fc.property(ids, ids, (a, b) => a === b || fill(body, a, type) !== fill(body, b, type)));
  });
});

it.each<[string, string, boolean]>([
  ['{"id": "{id}"}', JSON_TYPE, true],
  ['{"query": "{ shop {id} }"}', JSON_TYPE, false],
  ['{ shop {id} }', 'application/graphql', false],
  ['', 'text/plain', false],
  ['a=%7bid%7d', FORM, true],
])('knows whether a body names the product: %s', (body, contentType, names) => {
  expect(bodyNamesProduct({ method: 'POST', body: withSelections(body, contentType), contentType })).toBe(names);
});

it.each<[string, string | null]>([
  ['application/json', 'json'],
  ['application/json; charset=UTF-8', 'json'],
  ['application/vnd.shop+json', 'json'],
  ['APPLICATION/X-WWW-FORM-URLENCODED', 'form'],
  ['text/plain', 'text'],
  ['application/graphql', 'graphql'],
  ['application/xml', null],
  ['multipart/form-data; boundary=x', null],
  ['application/json; charset=utf-16', null],
])('knows the types of body: %s', (type, kind) => {
  expect(kindOfBody(type)).toBe(kind);
});

describe('a body that is refused', () => {
  const graphql = (query: string, more: object = {}): string =>
    JSON.stringify({ query, variables: { id: '{id}' }, ...more });
  it.each<[string, string, RegExp | null]>([
    [graphql('query($id: ID!) { product(id: $id) { title } }'), JSON_TYPE, null],
    [graphql('mutation Buy { buy }'), JSON_TYPE, /GraphQL mutation \(Buy\)/],
    [graphql('subscription { prices }'), JSON_TYPE, /GraphQL subscription/],
    [graphql('# read\n query A { a } mutation B { b }', { operationName: 'A' }), JSON_TYPE, /mutation \(B\)/],
    ['{"query": "\\u006dutation { buy }"}', JSON_TYPE, /mutation/],
    [`[${graphql('{ a }')}, ${graphql('mutation { b }')}]`, JSON_TYPE, /mutation/],
    [JSON.stringify({ payload: graphql('mutation { b }') }), JSON_TYPE, /mutation/],
    ['query=mutation%7Bbuy%7D', FORM, /mutation/],
    ['query=mutation{buy}', FORM, /mutation/],
    [`payload=${encodeURIComponent(graphql('mutation { b }'))}`, FORM, /mutation/],
    ['mutation { buy }', 'application/graphql', /mutation/],
    ['mutation { buy }', 'text/plain', /mutation/],
    [graphql('mutation { buy }'), 'text/plain', /mutation/],
    ['teapot', 'application/graphql', /no GraphQL document/],
    [graphql('{ product(id: "{id}") { title } }'), JSON_TYPE, /declare a variable/],
    [graphql('query A { a } query B { b }'), JSON_TYPE, /several GraphQL operations/],
    [graphql('query A { a } query B { b }', { operationName: 'B' }), JSON_TYPE, null],
    [graphql('query A { a } query B { b }', { operationName: 'C' }), JSON_TYPE, /no GraphQL operation C/],
    [graphql('query A { a }', { operationName: 'B' }), JSON_TYPE, /no GraphQL operation B/],
    [graphql('query A { a }', { operationName: null }), JSON_TYPE, null],
    [graphql('fragment F on P { a }'), JSON_TYPE, /without an operation/],
    ['{"query": "mutation testing, by {id}"}', JSON_TYPE, null],
    ['{"query": "{id}"}', JSON_TYPE, null],
    ['{"id": {id}}', JSON_TYPE, null],
    ['{"id": {id}', JSON_TYPE, /no JSON/],
    ["{'id': '{id}'}", JSON_TYPE, /no JSON/],
    ['<id>{id}</id>', 'application/xml', /must be application\/json/],
  ])('%s as %s', (body, type, fault) => {
    if (fault === null) expect(findBodyFault(body, type)).toBeNull();
    else expect(findBodyFault(body, type)).toMatch(fault);
  });
});
