/**
 * The text from which numbers and dates are read breaks where a browser breaks it; the text of other fields does not.
 */
import { describe, expect, it } from 'vitest';
import type { Processor, Step } from '../../../shared/domain/mapping.ts';
import { isAmbiguous } from '../../../shared/domain/ambiguous-number.ts';
import { compileMapping } from '../../../crawl-api/extract/compile-mapping.ts';
import { PageExtractor } from '../../../crawl-api/extract/page-extractor.ts';
import { cpuMs } from '../../support/cpu-ms.ts';
import { css, field, PAGE_URL, pageMapping, regex, split, step, valueBy, xpath } from '../crawl-api/extract-page.ts';

const price: Processor = { type: 'price' };

/** The value by each reader: as the page streams in pieces of any length, from the tree, and by XPath. */
async function readAll(html: string, ...then: Step[]): Promise<unknown> {
  const page = `<div class=p>${html}</div>`;
  const ways = [
    await valueBy([css('.p'), ...then], page),
    await valueBy([css('.p'), ...then], page, { piece: 3 }),
    await valueBy([css('.p'), ...then], page, { allByTree: true }),
    await valueBy([xpath("//*[@class='p']"), ...then], page),
    await valueBy([xpath("string(//*[@class='p'])"), ...then], page),
    await valueBy([xpath("normalize-space(//*[@class='p'])"), ...then], page),
  ];
  for (const way of ways) expect(way).toEqual(ways[0]);
  return isAmbiguous(ways[0]) ? 'undecided' : ways[0];
}

const UNDECIDED = 'undecided';

describe('A price', () => {
  it.each<[string, unknown]>([
    // Lines and cells
    ['<table><tr><td>3</td><td>449 Kč</td></tr></table>', 449],
    ['<table><tr><th>4</th>\n<td>1 299,00 €</td></tr></table>', 1299],
    ['<p>Rating 4.5</p><p>12 €</p>', 12],
    ['4 of 5<br>18,20 €', 18.2],
    ['7<hr>18,20 €', 18.2],
    ['<ul><li>3</li><li>119 kr</li></ul>', 119],
    ['<select><option>5<option>130 €</select>', 130],
    ['<dl><dt>Menge 2<dd>€ 130,00</dl>', 130],
    ['12 €<div>50 Stück</div>', 12],
    ['<div>12€</div><div>50 Stück</div>', 12],
    ['<h3>Teapot 7</h3>18,20 €', 18.2],
    ['<section><figure>100</figure><footer>€ 5,95</footer></section>', 5.95],
    ['<span>-</span><div>12 €</div>', 12],
    ['<div>1.</div><div>299 Kč</div>', 299],
    // A currency, a mark or a word on its own line belongs to the amount
    ['<div>€</div><div>12,50</div>', 12.5],
    ['<div>12,50</div><div>€</div>', 12.5],
    ['<div>Preis in EUR</div><div>12,50</div>', 12.5],
    ['<div>12</div><div>.</div><div>50 €</div>', 12.5],
    // Cents on a line of their own may be another number
    ['<div>19</div><div>99 €</div>', UNDECIDED],
    ['€ 19<br>99', UNDECIDED],
    ['<div>12</div><div>,50 €</div>', UNDECIDED],
    ['<div>€ 12,</div><div>50</div>', UNDECIDED],
    ['<div>5</div><div>€</div><div>12</div>', UNDECIDED],
    // Raised and small digits
    ['<b>249</b><sup>90</sup> lei', 249.9],
    ['$<b>5</b><small>25</small>', 5.25],
    ['1.249<sup>00</sup> €', 1249],
    ["CHF 1'249<sub>50</sub>", 1249.5],
    ['$19<sup><span>99</span></sup>', 19.99],
    ['$<span>19</span><span><sup>99</sup></span>', 19.99],
    ['19<sup>99€</sup>', 19.99],
    ['19<sup>,99</sup> €', 19.99],
    ['<small>€</small> 19<small>99</small>', 19.99],
    ['12<sup>1</sup> €', UNDECIDED],
    ['12,50<sup>12</sup> €', UNDECIDED],
    ['12<sup>345</sup> €', UNDECIDED],
    ['<small>12</small><small>50</small> €', UNDECIDED],
    ['<sup>12</sup>50 €', UNDECIDED],
    // Borders between two digits
    ['<b>1</b><i>299</i> €', UNDECIDED],
    ['4<b>299 €</b>', UNDECIDED],
    ['<i>1</i><i>2</i>.<i>5</i><i>0</i> €', UNDECIDED],
    ['4.5<b>12,50 €</b>', 12.5],
    ['12<img src=x>50 €', UNDECIDED],
    // No borders
    ['$<!-- -->12<!-- -->.<!-- -->50', 12.5],
    ['1<wbr>299 €', 1299],
    ['<span>$</span><span>12<span>.</span></span><span>50</span>', 12.5],
    ['<span>1</span><span>&nbsp;</span><span>299</span> €', 1299],
    ['<span>1</span><span>.</span><span>299</span>,<span>00</span> €', 1299],
    ['€ <span>12</span>,<span>50</span>', 12.5],
    ['<b>12</b>,50 <i>€</i>', 12.5],
    ['1&#50;,5&#48; €', 12.5],
    // Nothing but breaks
    [' <p> </p> <p>\n</p> ', null],
    ['<b>1</b> <p> </p><hr> ', 1],
  ])('%s is %s', async (html, expected) => {
    expect(await readAll(html, step.trim, price)).toEqual(expected);
    // Not even the white space is needed that `trim` removes.
    expect(await readAll(html, price)).toEqual(expected);
  });

  it('has no break around scripts and styles', async () => {
    const page = '<div>1<script>2</script>2<style>3</style>,50 €</div>';
    for (const from of [css('div'), xpath('//div')]) expect(await valueBy([from, price], page)).toBe(12.5);
  });

  it('has the currency of its line', async () => {
    expect(await readAll('<p>2</p><p>199 Kč</p>', { type: 'currency' })).toBe('CZK');
    expect(await readAll('\n<p>EUR</p>', { type: 'currency' })).toBe('EUR');
  });
});

/** Layouts of ordinary shops: the element's content, the amount and the currency. */
const ORDINARY: readonly [html: string, amount: number, currency: string | null][] = [
  ['<bdi><span class=symbol>$</span>24.99</bdi>', 24.99, null],
  ['<bdi>24,99&nbsp;<span class=symbol>&euro;</span></bdi>', 24.99, 'EUR'],
  ['<span class=money>$1,249.00 CAD</span>', 1249, 'CAD'],
  ['<span class=hidden>Regular price</span>\n  <span>£24.99</span>', 24.99, 'GBP'],
  ['<dt>Price</dt><dd><span>£1,249.00</span></dd>', 1249, 'GBP'],
  [
    '<span class=offscreen>$24.99</span><span aria-hidden=true><span>$</span><span>24<span>.</span></span><span>99</span></span>',
    24.99,
    null,
  ],
  [
    '<span>24,99 €</span><span aria-hidden=true><span>24<span>,</span></span><span>99</span><span>€</span></span>',
    24.99,
    'EUR',
  ],
  ['<meta itemprop=price content=24.99><meta itemprop=priceCurrency content=EUR>24,99 €', 24.99, 'EUR'],
  ['<span itemprop=price>24,99</span> <span itemprop=priceCurrency>EUR</span>', 24.99, 'EUR'],
  ['<span content=EUR>€</span><span content=24.99>24,99</span>', 24.99, 'EUR'],
  ['€&nbsp;<strong>1.249</strong>,<small>00</small>', 1249, 'EUR'],
  ['<strong>24</strong><sup>,99</sup>&nbsp;€', 24.99, 'EUR'],
  ['<sup>$</sup><span>24</span><sup>.99</sup>', 24.99, null],
  ['<sup>$</sup>24<sup>99</sup>', 24.99, null],
  ['1.249<sup>99</sup> <span>Lei</span>', 1249.99, null],
  ['24<sup>€99</sup>', 24.99, 'EUR'],
  ['24€<sup>99</sup>', 24.99, 'EUR'],
  ['24<span>€</span><sup>99</sup>', 24.99, 'EUR'],
  ['<span class=whole>24</span><span class=mark>,</span><span class=cents>99</span> <span>zł</span>', 24.99, 'PLN'],
  ['<span>1</span><span>.</span><span>249</span><span>,</span><span>00</span> €', 1249, 'EUR'],
  ['<b>1&nbsp;249</b>&nbsp;Kč', 1249, 'CZK'],
  ['<b>1 249</b><span>,-&nbsp;Kč</span>', 1249, 'CZK'],
  ['<span>CHF</span> <span>24.–</span>', 24, 'CHF'],
  ["<span>CHF</span><span>1'249.00</span>", 1249, 'CHF'],
  ['kr <span>1 249</span>,<span>-</span>', 1249, null],
  ['<span>1 249</span><span>:-</span>', 1249, null],
  ['<span>R$</span> <span>1.249</span><span>,90</span>', 1249.9, 'BRL'],
  ['<span>R$</span><span>1.249<!-- -->,<!-- -->90</span>', 1249.9, 'BRL'],
  ['<em>12,800</em><span>円</span><small>(税込)</small>', 12800, 'JPY'],
  ['¥<em>128</em>.<i>00</i>', 128, null],
  ['₩<b>12,900</b>', 12900, 'KRW'],
  ['<b>12,900</b>원', 12900, 'KRW'],
  ['<i>₹</i><span>1,24,999</span>', 124999, 'INR'],
  ['Rp<span>124.900</span>', 124900, 'IDR'],
  ['<span>124.900</span><u>đ</u>', 124900, 'VND'],
  ['<span>1.249,90</span> <span>TL</span>', 1249.9, 'TRY'],
  ['<span>12 490</span> <span>₽</span>', 12490, 'RUB'],
  ['<span>12&#8239;490</span>&nbsp;<span class=ruble>руб.</span>', 12490, null],
  ['<div class=price><span>Ab</span> 24,99 €<sup>*</sup></div>', 24.99, 'EUR'],
  ['24,99 €<sup>*)</sup>', 24.99, 'EUR'],
  ['24,99 €<br><small>inkl. MwSt., zzgl. Versand</small>', 24.99, 'EUR'],
  ['<p>24,99 €</p><p>inkl. 19 % MwSt.</p>', 24.99, 'EUR'],
  ['<div>24,99 €</div><div>(24,99 € / 1 kg)</div>', 24.99, 'EUR'],
  ['<div>24,99 €</div><div>Grundpreis: 8,33 €/100 ml</div>', 24.99, 'EUR'],
  ['<div>$24.99</div><div class=unit>($0.25 / oz)</div>', 24.99, null],
  ['<div>-20 %</div><div>24,99 €</div>', 24.99, 'EUR'],
  ['<div>Save 20%</div><div>Now $24.99</div>', 24.99, null],
  ['<div>Our price</div>\n<div>\n  $24.99\n</div>', 24.99, null],
  ['<table><tr><th>Price:</th><td>$24.99</td></tr></table>', 24.99, null],
  ['<table><tr><td>Menge</td><td>Preis</td></tr><tr><td>1</td><td>24,99 €</td></tr></table>', 24.99, 'EUR'],
  ['<ul><li>24,99 €</li><li>sofort lieferbar</li></ul>', 24.99, 'EUR'],
  ['<label><input type=radio checked> 24,99 €</label>', 24.99, 'EUR'],
  ['<option selected>Rot – 24,99 €</option>', 24.99, 'EUR'],
  ['<a href="/cart">2 Artikel</a><p>249,90 €</p>', 249.9, 'EUR'],
  ['<ins><span>24,99 €</span></ins>', 24.99, 'EUR'],
  ['<svg><title>price</title></svg>£24.99', 24.99, 'GBP'],
  ['<style>.a{width:5px}</style><span>£24.99</span><script>var p=1</script>', 24.99, 'GBP'],
  ['<template><span>£{{price}}</span></template>£24.99', 24.99, 'GBP'],
  ['<data value=24.99>24 990</data> Ft', 24990, 'HUF'],
  ['<span dir=ltr>١٬٢٤٩٫٥٠</span> <span>ر.س</span>', 1249.5, 'SAR'],
  ['AED <bdo>1,249.00</bdo>', 1249, 'AED'],
];

it.each(ORDINARY)('The ordinary price %s is %d, %s', async (html, amount, currency) => {
  expect(await readAll(html, step.trim, price)).toBe(amount);
  expect(await readAll(html, step.trim, { type: 'currency' })).toBe(currency);
});

describe("A control character of the page's own is no break", () => {
  it.each(['\u001d', '\u001e', '\u001f', '&#29;', '&#30;', '&#31;', '&#x1f;'])('%j', async (own) => {
    expect(await readAll(`19${own}50 €`, price)).toBe(UNDECIDED);
    expect(await readAll(`<b>19</b>${own}<b>50 €</b>`, price)).toBe(UNDECIDED);
    expect(await readAll(`19,50${own} €`, price)).toBe(19.5);
    expect(await readAll(`a${own}b<p>19,50 €</p>`, regex('^a b(.*)', 1), price)).toBe(19.5);
    const page = `<p title="19${own}50 €">19${own}50 €</p>`;
    const undecided = { text: '19 50 €', point: null, comma: null };
    for (const from of [css('p', 'title'), xpath('//p/@title'), xpath('//p/text()'), xpath('concat(//p, "")')])
      for (const allByTree of [false, true])
        expect(await valueBy([from, price], page, { allByTree })).toEqual(undecided);
  });

  it('and stays in a field of text', async () => {
    expect(await valueBy([css('p')], '<p>19&#31;50</p>')).toBe('19\u001f50');
  });
});

it('A number is the first one of the lines', async () => {
  expect(await readAll('<table><tr><td>2<td>50</table>', step.number)).toBe(2);
  expect(await readAll('<p>12</p><p>7</p>', step.integer)).toBe(12);
  expect(await readAll('<b>1</b><b>2</b>', step.integer)).toBe(UNDECIDED);
});

it('A date may span lines', async () => {
  const date = (format: string | null): Step => ({ type: 'date', format, locale: 'en' });
  expect(await readAll('<div>5</div><div>March<br>2026</div>', step.trim, date('d MMMM yyyy'))).toBe('2026-03-05');
  expect(await readAll('<b>2026-03-05</b><i>12:30</i>', date(null))).toBe('2026-03-05');
  expect(await readAll('<b>21.</b><br><b>11.</b><br>2026', date('d.M.yyyy'))).toBe('2026-11-21');
  expect(await readAll('<p>21</p><p>/11/</p><p>2026</p>', step.trim, date('d/M/yyyy'))).toBe('2026-11-21');
  // Never by joining digits.
  expect(await readAll('<p>1</p><p>1.2.2026</p>', date('d.M.yyyy'))).toBe(null);
});

describe('Steps between the text and its number', () => {
  it.each<[string, string, Step[], unknown]>([
    ['a pattern across a line', '<p>Price:</p><p>12,50 €</p>', [regex('Price:([\\d,]+)', 1), step.number], 12.5],
    ['a pattern of cents', 'now <b>19</b><sup>99</sup>', [regex('now (.*)', 1), step.number], 19.99],
    ['a pattern over two lines', '<p>2</p><p>199 Kč</p>', [regex('\\d+ Kč', 0), price], 199],
    ['replaced text', 'ab <b>19</b><sup>99</sup>€', [{ type: 'replace', find: '€', with: ' EUR' }, price], 19.99],
    ['a replacement across a line', 'a<p>b</p>5', [{ type: 'replace', find: 'ab', with: '1.' }, step.number], 1.5],
    ['split text', '7<sup>50</sup>;<p>8<sup>50</sup></p>', [split(';'), step.number, step.all], [7.5, 8.5]],
    ['lower case', 'A 7<sup>50</sup>', [step.lower, step.number], 7.5],
    ['text of a text', '&lt;p>2&lt;/p>&lt;p>199 Kč', [css('body'), step.trim, price], 199],
  ])('match what the text is without breaks, and keep them: %s', async (_, html, steps, expected) => {
    expect(await valueBy([css('.p'), ...steps], `<div class=p>${html}</div>`)).toEqual(expected);
  });
});

it('A text of many lines is replaced in linear time', async () => {
  const steps: Step[] = [css('.p'), { type: 'replace', find: ',', with: '.' }, step.number];
  const mapping = await compileMapping({ pages: [pageMapping({ fields: [field(steps)] })] });
  const extractor = new PageExtractor(mapping, 'html', PAGE_URL);
  extractor.write(`<div class=p>${'1,<br>'.repeat(40_000)}</div>`);
  expect(cpuMs(() => extractor.end())).toBeLessThan(1_000);
});

describe('No break is ever stored', () => {
  const html = '<div class=p> <p>4</p><p>5 <b>6</b><sup>78</sup></p>x<b>1</b><b>2</b></div>';

  it.each<[string, Step[]]>([
    ['text', [css('.p')]],
    ['text in lower case', [css('.p'), step.lower]],
    ['text by XPath', [xpath('string(//div)')]],
    ['parts of a text', [css('.p'), regex('.*', 0)]],
  ])('in a field of %s', async (_, steps) => {
    expect(await valueBy(steps, html)).toBe(' 45 678x12');
    expect(await valueBy(steps, html, { allByTree: true })).toBe(' 45 678x12');
  });

  it('in an undecided number or in the steps that are shown', async () => {
    const value = await valueBy([css('.p'), price], '<div class=p>€ <b>1</b><b>2</b><p>5</p></div>');
    expect(value).toEqual({ text: '€ 1 2 5', point: null, comma: null });
    const mapping = { pages: [pageMapping({ fields: [field([css('.p'), step.trim, price])] })] };
    const extractor = new PageExtractor(await compileMapping(mapping), 'html', PAGE_URL, { trace: true });
    extractor.write(html);
    extractor.end();
    const [selected, trimmed] = extractor.trace().get('value')!.steps;
    expect([selected?.values, trimmed?.values]).toEqual([[' \n4\n5 6\n78\nx1\n2'], ['\n4\n5 6\n78\nx1\n2']]);
  });
});
