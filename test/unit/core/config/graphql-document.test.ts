import { describe, expect, it } from 'vitest';
import { readDocument } from '../../../../orchestrator/core/config/graphql-document.ts';

const operationsOf = (text: string): string[] | null =>
  readDocument(text)?.operations.map(({ type, name }) => (name === null ? type : `${type} ${name}`)) ?? null;

describe('a GraphQL document', () => {
  it.each<[string, string[]]>([
    ['{ product { title } }', ['query']],
    ['query { a }', ['query']],
    ['query P($id: ID!, $n: [Int!]! = [1, 2]) @live { p: product(id: $id, w: {a: "}"}) { id ...F } }', ['query P']],
    ['\uFEFF# mutation M { a }\nquery Q { a }', ['query Q']],
    ['query Q { a(text: "mutation M { b }") }', ['query Q']],
    ['query Q { a(text: """ \\""" } mutation M { b } """) }', ['query Q']],
    [
      'fragment F on Product @x { id } query Q { product { ...F ... on Sale @include(if: $s) { price } ... { a } } }',
      ['query Q'],
    ],
    ['query A { a } query B { b }', ['query A', 'query B']],
    ['mutation { buy }', ['mutation']],
    ['query A { a }\n#\nmutation\n#\nBuy($id: ID!) { buy(id: $id) }', ['query A', 'mutation Buy']],
    ['subscription S { prices }', ['subscription S']],
    ['"says what it does" mutation M { a }', ['mutation M']],
    ['fragment query on Product { mutation subscription }', []],
    ['{ mutation { id } subscription }', ['query']],
    ['query mutation { a }', ['query mutation']],
  ])('%s', (text, operations) => {
    expect(operationsOf(text)).toEqual(operations);
  });

  it.each([
    '',
    'teapot',
    'query teapot',
    'mutation testing, second edition',
    'mutation testing {id}, second edition',
    '{"id": "P1"}',
    '{!term f=id}P1',
    '{sku:{id}}',
    'query { a',
    'query Q { a } }',
    'query Q { a(b: [1) }',
    'query Q { a(text: "ends here) }',
    'type Product { id: ID }',
    'SELECT 1',
  ])('is not: %s', (text) => {
    expect(readDocument(text)).toBeNull();
  });

  it('knows {id} as a value from {id} as a selection and in a comment', () => {
    const isValue = (text: string): boolean | undefined => readDocument(text)?.hasIdAsValue;
    expect(isValue('query($id: ID!) { product(id: $id) {id} } # {id}')).toBe(false);
    expect(isValue('{ product(id: "{id}") { title } }')).toBe(true);
    expect(isValue('{ product(id: {id}) { title } }')).toBe(true);
    expect(isValue('{ product(where: {id: 1}) {id} }')).toBe(false);
  });

  it('reads a long document at once', () => {
    const started = performance.now();
    expect(operationsOf(`{ ${'a(b: "x") { c } '.repeat(20_000)} }`)).toEqual(['query']);
    expect(operationsOf('{'.repeat(2_000))).toBeNull();
    expect(performance.now() - started).toBeLessThan(5_000);
  });
});
