import { describe, expect, it } from 'vitest';
import { findXPathFault, parseXPath } from '../../../shared/adapters/xpath/parse-xpath.ts';
import { compileCss, evaluateXPath, TreeBuilder } from '../../../crawl-api/extract/dom/queries.ts';
import { MAX_NODES, PageBudget, PageLimitError } from '../../../crawl-api/extract/page-limits.ts';
import { ALL, valueBy } from '../crawl-api/extract-page.ts';

const PAGE = `<!doctype html><html lang="en-GB"><body>
<DIV id="main" class="wrap big"><h1>One</h1><p>n1</p><p class="x">n2 <b>bold</b></p><!--note--><p>n3</p>
<ul><li>1</li><li>2</li><li>10</li></ul><a HREF="/x">link</a><script>var a = "s";</script></DIV>
<div><h1>Two</h1><p>n4</p></div></body></html>`;

const all = async (expression: string, page = PAGE): Promise<unknown> =>
  valueBy([{ type: 'xpath', expression }, ...ALL], page);

describe('XPath 1.0', () => {
  it.each<[string, unknown]>([
    ['//h1', ['One', 'Two']],
    ['//H1', ['One', 'Two']],
    ['/html/body/div/h1', ['One', 'Two']],
    ['//div[1]/p[2]', ['n2 bold']],
    ['//p[2]', ['n2 bold']],
    ['(//p)[4]', ['n4']],
    ['//p[last()]', ['n3', 'n4']],
    ['//p[position() < 3]', ['n1', 'n2 bold', 'n4']],
    ['//p[2]/preceding-sibling::*[1]', ['n1']],
    ['//p[2]/preceding-sibling::*', ['One', 'n1']],
    ['//ul/preceding::p[1]', ['n3']],
    ['//ul/following::h1', ['Two']],
    ['//div[2]/p/preceding::*[not(ancestor-or-self::ul)][position() < 4]', ['link', 'var a = "s";', 'Two']],
    ['//b/preceding::p', ['n1']],
    ['//b/ancestor::div/@id', ['main']],
    ['//b/ancestor::*[1]', ['n2 bold']],
    ['//b/..', ['n2 bold']],
    ['//@href', ['/x']],
    ['//a/@*', ['/x']],
    ['//p[@class="x"]/b | //h1', ['One', 'bold', 'Two']],
    ['//p[@class="x"]/text()', ['n2']],
    ['//comment()', ['note']],
    ['//li[. > 1]', ['2', '10']],
    ['//li[. = //p]', null],
    ['//h1[. != //h1]', ['One', 'Two']],
    ['//li[number(.) mod 2 = 0]', ['2', '10']],
    ['//*[contains(concat(" ", @class, " "), " big ")]/h1', ['One']],
    ['//div[not(@id)]/h1', ['Two']],
    ['//div[h1 = "Two" and p]/p', ['n4']],
    ['id("main")/h1', ['One']],
    ['//p[lang("en")][1]', ['n1', 'n4']],
    ['//script', ['var a = "s";']],
    ['//div[@id="main"]/self::div/child::h1', ['One']],
    ['//div//p//b', ['bold']],
    ['descendant::h1[1]', ['One']],
    ['//p[starts-with(., "n4")]', ['n4']],
    ['count(//li)', [3]],
    ['sum(//li) * 2 - 1', [25]],
    ['-(2 + 3) div 2', [-2.5]],
    ['string(//h1)', ['One']],
    ['normalize-space(//p[2])', ['n2 bold']],
    ['substring-before("a:b", ":")', ['a']],
    ['substring-after("a:b", ":")', ['b']],
    ['substring("12345", 2, 3)', ['234']],
    ['substring("12345", 1.5, 2.6)', ['234']],
    ['string-length("日本")', [2]],
    ['translate("bar", "abc", "AB")', ['BAr']],
    ['name(//*[@id])', ['div']],
    ['boolean(//nav)', [false]],
    ['true() and not(false())', [true]],
    ['round(2.5) + floor(-1.5) + ceiling(1.2)', [3]],
    ['1 = 1.0 or 1 div 0 > 5', [true]],
    ['number("x")', null],
    ['//div/div', null],
    ['//nav/@id', null],
  ])('%s', async (expression, expected) => {
    expect(findXPathFault(expression)).toBeNull();
    expect(await all(expression)).toEqual(expected);
  });

  it('matches XML names in any case and with prefixes', async () => {
    const xml = '<?xml version="1.0"?><Feed><g:Price cur="JPY">5</g:Price><![CDATA[<x>]]></Feed>';
    const price = await valueBy([{ type: 'xpath', expression: '//g:Price' }], xml, { kind: 'xml' });
    expect(price).toBe('5');
    expect(await valueBy([{ type: 'xpath', expression: '//g:*/@cur' }], xml, { kind: 'xml' })).toBe('JPY');
    expect(await valueBy([{ type: 'xpath', expression: '/feed/text()' }], xml, { kind: 'xml' })).toBe('<x>');
  });

  it.each([
    ['//p[', 'it ends where'],
    ['//p]', 'is expected at character'],
    ['p/', 'a step of a path'],
    ['foo(1)', 'no function foo()'],
    ['matches(., "a+")', 'no function matches()'],
    ['contains("a")', 'takes 2 arguments'],
    ['count(1)', 'takes nodes'],
    ['"a" | //p', 'must be nodes'],
    ['$x', 'variables'],
    ['namespace::*', 'axis'],
    ['//processing-instruction()', 'not kept'],
    ['"open', 'no XPath token begins'],
    ['', 'it ends where'],
    ['('.repeat(60), 'nests deeper'],
    ['1'.repeat(5_000), 'longer than'],
  ])('%s is refused', (expression, reason) => {
    expect(findXPathFault(expression)).toContain(reason);
  });

  it('walks the page once for each step, however deeply the node sets overlap', () => {
    const tree = new TreeBuilder();
    for (let i = 0; i < 500; i++) tree.open('div', {});
    for (let i = 0; i < 500; i++) tree.close();
    const limits = { values: 1, chars: 10 };
    const count = parseXPath('count(//div//div//div//div)');
    expect(evaluateXPath(count, tree.end(), new PageBudget(10_000), limits)).toEqual([497]);
  });

  it('abandons a page where an expression takes too many steps', () => {
    const tree = new TreeBuilder();
    for (let i = 0; i < 500; i++) {
      tree.open('i', {});
      tree.close();
    }
    const limits = { values: 1, chars: 10 };
    const quadratic = parseXPath('//i[count(preceding::i) > 600]');
    expect(() => evaluateXPath(quadratic, tree.end(), new PageBudget(50_000), limits)).toThrow(PageLimitError);
    const selector = compileCss('i:nth-last-child(600)');
    expect(() => [...selector(tree.end(), new PageBudget(50_000))]).toThrow(PageLimitError);
  });

  it('refuses a page with too many nodes', async () => {
    await expect(all('//i', '<i></i>'.repeat(MAX_NODES + 1))).rejects.toThrow(PageLimitError);
  });
});
