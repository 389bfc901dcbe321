import { describe, expect, it } from 'vitest';
import { compileMapping, findMappingFaults } from '../../../crawl-api/extract/compile-mapping.ts';
import { findSelectorFault } from '../../../shared/adapters/selector-check.ts';
import { cssField, valueOf } from './extract-page.ts';

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
    ['class is a whole word', '.not', null],
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
  ])('%s: %s', (_name, selector, expected) => {
    expect(findSelectorFault(selector)).toBeNull();
    expect(valueOf(cssField(selector, { all: true }), PAGE)).toEqual(expected);
    expect(valueOf(cssField(selector, { all: true }), PAGE, 'html', 1)).toEqual(expected);
    expect(valueOf(cssField(selector), PAGE)).toEqual(expected?.[0] ?? null);
  });

  it('matches more than 32 positions at once', () => {
    const selector = Array.from({ length: 40 }, (_, i) => `div > .c${i}`).join(', ');
    const page = `<div>${Array.from({ length: 40 }, (_, i) => `<b class="c${i}">${i}</b>`).join('')}</div>`;
    expect(valueOf(cssField(selector, { all: true }), page)).toHaveLength(40);
  });
});

describe('selectors that cannot be matched in one pass', () => {
  it.each([
    ['li:last-child', 'later in the page'],
    ['li:nth-last-child(2)', 'later in the page'],
    ['li:only-child', 'later in the page'],
    ['p:empty', 'later in the page'],
    ['div:has(p)', 'later in the page'],
    ['p:contains("x")', ':contains is not supported'],
    ['p::before', "not part of the page's source"],
    ['a:hover', ':hover is not supported'],
    ['li:not(ul li)', 'only conditions on the element itself'],
    ['li:nth-child(2 of .x)', 'is not a position'],
    ['[a!=b]', 'not CSS'],
    ['svg|a', 'namespaces'],
    ['> p', 'both sides'],
    ['p >', ''],
    ['a || b', 'combinator'],
    ['', 'empty'],
    ['a,,b', ''],
    ['[unclosed', ''],
  ])('%s is refused with its reason', (selector, reason) => {
    expect(findSelectorFault(selector)).toContain(reason);
    expect(findSelectorFault(selector)).toContain(JSON.stringify(selector));
  });

  it('lists all faults of a mapping with their fields, and compiling it throws them', () => {
    const fields = [
      cssField('h1', { name: 'good' }),
      cssField('p:last-child', { name: 'late' }),
      cssField('p::after', { name: 'pseudo' }),
    ];
    const faults = findMappingFaults({ fields });
    expect(faults).toHaveLength(2);
    expect(faults[0]).toMatch(/^field late: /);
    expect(faults[1]).toMatch(/^field pseudo: /);
    expect(() => compileMapping({ fields })).toThrow(/field late.*field pseudo/);
  });
});
