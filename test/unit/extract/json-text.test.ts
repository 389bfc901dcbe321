/** JSON as pages have it: numbers keep all digits, and blocks that have one reading only are repaired. */
import { describe, expect, it } from 'vitest';
import { jsonField, jsonpath, numberStep, step, valueBy, valueOf } from '../crawl-api/extract-page.ts';

const ID = '7301234567890123457';
const block = (text: string, type = 'application/ld+json'): string => `<script type="${type}">${text}</script>`;
const price = (text: string, type?: string): Promise<unknown> => valueOf(jsonField('offers.price'), block(text, type));
const OFFER = '{"@type":"Product","offers":{"price":5}}';

describe('numbers', () => {
  it.each([
    [ID, ID],
    ['-12345678901234567890', '-12345678901234567890'],
    ['0.1234567890123456789', '0.1234567890123456789'],
    ['9007199254740991', '9007199254740991'],
    ['0.30000000000000004', '0.30000000000000004'],
    ['12.500000000000000000', '12.5'],
    ['1e2', '100'],
  ])('%s is the text %s', async (number, expected) => {
    expect(await valueOf(jsonField('id'), block(`{"a":[1, 2],"id":${number}}`))).toBe(expected);
    expect(await valueOf(jsonField('ids.1'), block(`{"ids":[1,${number}]}`))).toBe(expected);
    expect(await valueBy([jsonpath('$.a[0].id')], `{"a":[{"id":${number}}]}`, { kind: 'json' })).toBe(expected);
  });

  it('keep them in arrays, beside strings with digits, and under any key', async () => {
    const page = `{"a":[[${ID},"${ID}"],-1],"z":${ID},"__proto__":${ID},"t":"\\"${ID}: ${ID}"}`;
    expect(await valueBy([jsonpath('$.a[0][*]'), step.all], page, { kind: 'json' })).toEqual([ID, ID]);
    expect(await valueBy([jsonpath("$['__proto__']")], page, { kind: 'json' })).toBe(ID);
    expect(await valueBy([jsonpath('$.t')], page, { kind: 'json' })).toBe(`"${ID}: ${ID}`);
  });

  it.each([`0${ID}`, `${ID}.`, `+${ID}`, `${ID}x`, `- ${ID}`])('%s is none', async (text) => {
    expect(await valueBy([jsonpath('$.a')], `{"a":${text}}`, { kind: 'json' })).toBeNull();
  });

  it('are numbers for number, for filters, and inside of objects', async () => {
    const long = '64.900000000000000001';
    expect(await valueOf(jsonField('p', { process: numberStep }), block(`{"p":${long}}`))).toBe(64.9);
    const page = `{"a":[{"id":1,"p":3},{"id":${ID},"p":${long}}]}`;
    expect(await valueBy([jsonpath('$.a[?@.p > 60].id')], page, { kind: 'json' })).toBe(ID);
    expect(await valueBy([jsonpath('$.a[1]')], page, { kind: 'json' })).toBe(`{"id":${ID},"p":${long}}`);
    expect(await valueBy([jsonpath('$.a[*].id'), step.all], page, { kind: 'json' })).toEqual([1, ID]);
  });
});

describe('repairs', () => {
  it.each([
    ['CDATA in comments', `/*<![CDATA[*/ ${OFFER} /*]]>*/`],
    ['CDATA in comments on one line', `//<![CDATA[ ${OFFER} //]]>`],
    ['CDATA in both forms of comments', `<!--//--><![CDATA[//><!--\n${OFFER}\n//--><!]]>`],
    ['bare CDATA', `<![CDATA[${OFFER}]]>`],
    ['words in a comment', `// it's "our" product {\n${OFFER} /* the end: */`],
    ['a comment around the block', `<!-- ${OFFER} -->`],
    ['an old block in a comment', `<!-- ${OFFER.replace('5', '4')} -->${OFFER}`],
    ['a comma at the end', '{"offers":{"price":5,},}'],
    ['a backslash before an apostrophe', String.raw`{"name":"it\'s \"x\"","offers":{"price":5}}`],
    ['a value that is missing', '{"sku":,"x":NaN,"offers":{"price":5,"y":}}'],
    ['quotes of JavaScript', `var data = {'name': 'a "b" it\\'s: {', offers: {price: 5}};`],
    ['quotes as entities', OFFER.replaceAll('"', '&quot;')],
    ['brackets too many or too few', `${OFFER}}]`],
    ['brackets that are missing', OFFER.slice(0, -1)],
  ])('%s', async (_, text) => {
    expect(await price(text)).toBe('5');
  });

  it.each([
    ['two values', `{"@type":"Organization"}${OFFER}`],
    ['a quote in a string', '{"name":"17" TV","offers":{"price":5}}'],
    ['a number cut off', '{"offers":{"price":5'],
    ['brackets in the wrong order', '{"offers":[{"price":5]}}'],
    ['no JSON', 'offers.price = 5'],
  ])('nothing is guessed from %s', async (_, text) => {
    expect(await price(text)).toBeNull();
  });

  it.each(['APPLICATION/LD+JSON', ' application/ld+json;charset=utf-8', 'application/json+ld', 'ld-json'])(
    'the type %j is JSON-LD',
    async (type) => {
      expect(await price(OFFER, type)).toBe('5');
    },
  );

  it.each(['application/json', 'text/javascript', 'x-ld+json-template'])('the type %j is not', async (type) => {
    expect(await price(OFFER, type)).toBeNull();
  });
});
