import { describe, expect, it } from 'vitest';
import { compileMapping } from '../../../crawl-api/extract/compile-mapping.ts';
import { findMappingFaults } from '../../../shared/adapters/step-check.ts';
import { findSelectorFault, readSelector } from '../../../shared/adapters/selector-check.ts';
import { ALL, cssField, pageMapping, valueOf } from './extract-page.ts';

const PAGE = `<!doctype html><html><head><title>T</title></head><body>
<div id="main" class="wrap big" data-kind="shop-item" lang="en-GB">
  <h1 class="title">One</h1>
  <p class="note">n1</p><p class="note last">n2</p><span>s1</span><p>n3</p>
  <ul><li>a</li><li class="x">b</li><li>c</li><li>d</li></ul>
  <table><tr><th>Price</th><td>10</td></tr><tr><th>Size</th><td>L</td></tr></table>
  <a HREF="/p.PDF" TYPE="Text/Html">link</a>
  <section><div class="deep"><em>deep</em></div></section>
</div>
<div class="other"><h1>Two</h1></div></body></html>`;

describe('CSS selectors on a streaming page', () => {
  it.each([
    ['tag', 'h1', ['One', 'Two']],
    ['tag in capitals', 'H1', ['One', 'Two']],
    ['class', '.note', ['n1', 'n2']],
    ['two classes', '.note.last', ['n2']],
    ['class matches whole words', '.not', null],
    ['id', '#main > h1', ['One']],
    ['universal', 'ul > *', ['a', 'b', 'c', 'd']],
    ['descendant', '#main em', ['deep']],
    ['descendant over several levels', 'body div section em', ['deep']],
    ['child only', '#main > em', null],
    ['child chain', 'body > div > section > div > em', ['deep']],
    ['adjacent', 'h1 + p', ['n1']],
    ['adjacent only directly after', 'h1 + span', null],
    ['general sibling', 'h1 ~ p', ['n1', 'n2', 'n3']],
    ['sibling then descendant', 'span ~ ul li.x', ['b']],
    ['adjacent sibling of a cell', 'th + td', ['10', 'L']],
    ['list', 'em, h1', ['One', 'deep', 'Two']],
    ['list that matches an element twice', 'h1, .title', ['One', 'Two']],
    ['attribute present', '[data-kind] > h1', ['One']],
    ['attribute equal', '[data-kind="shop-item"] > h1', ['One']],
    ['attribute not equal', '[data-kind="shop"] > h1', null],
    ['attribute starts', '[data-kind^=shop] > h1', ['One']],
    ['attribute ends', '[data-kind$=item] > h1', ['One']],
    ['attribute contains', '[data-kind*="p-i"] > h1', ['One']],
    ['attribute word', '[class~=big] > h1', ['One']],
    ['attribute hyphen', '[lang|=en] > h1', ['One']],
    ['attribute hyphen is not a prefix', '[data-kind|=sho] > h1', null],
    ['attribute i flag', '[data-kind="SHOP-ITEM" i] > h1', ['One']],
    ['attribute value with case', '[data-kind="SHOP-ITEM"] > h1', null],
    ['attributes whose values HTML compares without case', '[type="text/html"]', ['link']],
    ['empty prefix matches nothing', '[data-kind^=""] > h1', null],
    ['first child', 'li:first-child', ['a']],
    ['nth child', 'li:nth-child(2)', ['b']],
    ['odd children', 'li:nth-child(odd)', ['a', 'c']],
    ['even children', 'li:nth-child(2n)', ['b', 'd']],
    ['children from the third', 'li:nth-child(n+3)', ['c', 'd']],
    ['the first two children', 'li:nth-child(-n + 2)', ['a', 'b']],
    ['nth of its type', 'p:nth-of-type(3)', ['n3']],
    ['first of its type', '#main > p:first-of-type', ['n1']],
    ['not', 'li:not(.x)', ['a', 'c', 'd']],
    ['not with a list', 'li:not(.x, :first-child)', ['c', 'd']],
    ['is', ':is(em, th)', ['Price', 'Size', 'deep']],
    ['position in a row', 'tr:nth-child(2) td', ['L']],
    ['root', ':root > body > .other > h1', ['Two']],
    ['inherited names are no attributes', '[constructor]', null],
  ])('%s: %s', async (_name, selector, expected) => {
    expect(readSelector(selector).kind).toBe('stream');
    expect(await valueOf(cssField(selector, { process: ALL }), PAGE)).toEqual(expected);
    expect(await valueOf(cssField(selector, { process: ALL }), PAGE, { piece: 1 })).toEqual(expected);
    expect(await valueOf(cssField(selector), PAGE)).toEqual(expected?.[0] ?? null);
    expect(await valueOf(cssField(selector, { process: ALL }), PAGE, { allByTree: true })).toEqual(expected);
  });

  it('matches more than 32 positions at once', async () => {
    const selector = Array.from({ length: 40 }, (_, i) => `div > .c${i}`).join(', ');
    const page = `<div>${Array.from({ length: 40 }, (_, i) => `<b class="c${i}">${i}</b>`).join('')}</div>`;
    expect(await valueOf(cssField(selector, { process: ALL }), page)).toHaveLength(40);
  });
});

describe('selectors that need the tree', () => {
  it.each([
    ['li:last-child', ['d']],
    ['li:nth-last-child(2)', ['c']],
    ['p:nth-last-of-type(1)', ['n3']],
    ['p:last-of-type', ['n3']],
    ['em:only-child', ['deep']],
    ['span:only-of-type', ['s1']],
    ['section > :empty', null],
    ['tr:has(td) > th', ['Price', 'Size']],
    ['div:has(> section) > h1', ['One']],
    ['th:contains("Size") + td', ['L']],
    ['li:not(ul > .x)', ['a', 'c', 'd']],
    [':is(#main > h1, .other h1)', ['One', 'Two']],
  ])('%s', async (selector, expected) => {
    expect(readSelector(selector).kind).toBe('tree');
    expect(findSelectorFault(selector)).toBeNull();
    expect(await valueOf(cssField(selector, { process: ALL }), PAGE)).toEqual(expected);
    expect(await valueOf(cssField(selector, { process: ALL }), PAGE, { piece: 1 })).toEqual(expected);
    expect(await valueOf(cssField(selector), PAGE)).toEqual(expected?.[0] ?? null);
  });
});

describe('unsupported selectors', () => {
  it.each([
    [':scope > p', ':scope is the record'],
    ['p:not(:scope)', ':scope inside another'],
    ['p:has()', ''],
    ['p::before', "not part of the page's source"],
    ['a:hover', ':hover is not supported'],
    ['li:nth-child(2 of .x)', 'is not a position'],
    ['[a!=b]', 'not CSS'],
    ['svg|a', 'namespaces'],
    ['> p', 'both sides'],
    ['p >', ''],
    ['a || b', 'combinator'],
    ['', 'empty'],
    ['a,,b', ''],
    ['[unclosed', ''],
  ])('%s is refused with a reason', (selector, reason) => {
    expect(findSelectorFault(selector)).toContain(reason);
    expect(findSelectorFault(selector)).toContain(JSON.stringify(selector));
  });

  it('are all listed for a mapping with their fields, and thrown when it is compiled', async () => {
    const fields = [
      cssField('h1', { name: 'good' }),
      cssField('p:hover', { name: 'state' }),
      cssField('p::after', { name: 'pseudo' }),
    ];
    const mapping = { pages: [pageMapping({ fields })] };
    const faults = findMappingFaults(mapping);
    expect(faults).toHaveLength(2);
    expect(faults[0]).toMatch(/^field state: /);
    expect(faults[1]).toMatch(/^field pseudo: /);
    await expect(compileMapping(mapping)).rejects.toThrow(/field state.*field pseudo/);
  });
});
