import { describe, expect, it } from 'vitest';
import { readNumber } from '../../../crawl-api/extract/numbers/read-number.ts';
import type { Processor, Scalar, Step } from '../../../shared/domain/mapping.ts';
import { join, jsonpath, regex, split, step, valueBy } from './extract-page.ts';

describe('number', () => {
  it.each([
    ['12', 12],
    ['1,234', { text: '1,234', point: 1234, comma: 1.234 }],
    ['1,234.50', 1234.5],
    ['1.234,50 €', 1234.5],
    ['1.234.567', 1234567],
    ['1,234,567', 1234567],
    ['12,34,567', 1234567],
    ['12,5', 12.5],
    ['1.234', { text: '1.234', point: 1.234, comma: 1234 }],
    ['0.99', 0.99],
    ['¥1,234', 1234],
    ['¥1,234 (税込 1,357円)', 1234],
    ['価格：１，２３４円', 1234],
    ['1 234,50', 1234.5],
    ['1\u00a0234\u00a0567', 1234567],
    ["1'234.50", 1234.5],
    ['3 pieces of 500', 3],
    ['2 10', 2],
    ['-5', -5],
    ['−5.5', -5.5],
    ['-¥100', -100],
    ['¥-100', -100],
    ['A-100', 100],
    ['10-20', 10],
    ['0', 0],
    ['-0', 0],
    ['007', 7],
    ['1,2,3', null],
    ['1.2.3', null],
    ['1,23.4,5', null],
    ['sold out', null],
    ['', null],
    ['.', null],
  ])('%s gives %s', (text, expected) => {
    expect(readNumber(text, { decimal: null, isMachine: false, price: null }).value).toEqual(expected);
  });
});

/** The value of a text after the steps. */
async function process(text: string, steps: Processor[]): Promise<unknown> {
  const json = JSON.stringify({ v: text });
  return valueBy([jsonpath('$.v'), ...steps], json, { kind: 'json' });
}

/** The values of a list after the steps. */
async function processList(list: Scalar[], steps: Step[]): Promise<unknown> {
  return valueBy([jsonpath('$[*]'), ...steps], JSON.stringify(list), { kind: 'json' });
}

const date = (format: string | null, locale: string | null = null): Processor[] => [{ type: 'date', format, locale }];

describe('a processor', () => {
  it.each<[string, Processor[], unknown]>([
    ['  a \n\u3000 b ', [step.trim], 'a b'],
    [' a ', [], ' a '],
    ['ÀB', [step.lower], 'àb'],
    ['straße', [step.upper], 'STRASSE'],
    ['1,234', [step.integer], 1234],
    ['12.0', [step.integer], 12],
    ['12.5', [step.integer], null],
    ['99999999999999999999', [step.integer], null],
    ['¥1,234.5 (tax incl.)', [step.number], 1234.5],
    ['a.b.c', [{ type: 'replace', find: '.', with: '$&' }], 'a$&b$&c'],
    ['abc', [{ type: 'replace', find: 'b', with: '' }], 'ac'],
    ['b', [{ type: 'replace', find: 'b', with: '' }], null],
    ['Yes', [step.boolean], true],
    ['In  Stock', [step.boolean], true],
    ['http://schema.org/InStock', [step.boolean], true],
    ['https://schema.org/OutOfStock', [step.boolean], false],
    ['https://schema.org/PreOrder', [step.boolean], null],
    ...['in_stock', 'in-stock', 'IN STOCK', 'instock', 'Limited Availability', 'online_only'].map(
      (text): [string, Processor[], unknown] => [text, [step.boolean], true],
    ),
    ...['http://www.schema.org/InStock/', 'HTTPS://Schema.org/InStock', '//schema.org/InStock', 'schema:InStock'].map(
      (text): [string, Processor[], unknown] => [text, [step.boolean], true],
    ),
    ...['out-of-stock', 'out_of_stock', 'Out Of\nStock', 'sold_out', 'schema.org/SoldOut', 'not-available'].map(
      (text): [string, Processor[], unknown] => [text, [step.boolean], false],
    ),
    ...['schema:BackOrder', 'pre_order', '-1', 'https://other.example/InStock', 'in stock soon', 'schema:'].map(
      (text): [string, Processor[], unknown] => [text, [step.boolean], null],
    ),
    ['0', [step.boolean], false],
    ['constructor', [step.boolean], null],
    ['2026-11-21', date(null), '2026-11-21'],
    ['2026-11-21T23:30:00-08:00', date(null), '2026-11-21'],
    ['2026-11-21T09:30:00+01:00[Europe/Berlin]', date(null), '2026-11-21'],
    ['2026-11-21T09:30Z[Etc/GMT+1]', date(null), '2026-11-21'],
    ['20261121', date(null), '2026-11-21'],
    ['2026-02-30', date(null), null],
    ['21 November 2026', date('d MMMM yyyy'), '2026-11-21'],
    ['21. März 2026', date('d. MMMM yyyy', 'de'), '2026-03-21'],
    ['２０２６年１月２日', date('yyyy年M月d日'), '2026-01-02'],
    ['2026年11月21日 9:05', date('yyyy年M月d日 H:mm', 'ja'), '2026-11-21T09:05:00'],
    ['21/11/2026 23:30 +0900', date('dd/MM/yyyy HH:mm ZZZ'), '2026-11-21T23:30:00'],
    // An hour that daylight saving time skips in some zones.
    ['2026-03-29 02:30', date('yyyy-MM-dd HH:mm'), '2026-03-29T02:30:00'],
    ['yesterday', date('yyyy-MM-dd'), null],
    // With `true` only what names a day.
    ...['14:05', 'T14:05', '1405', '7', '2026', '202611', '2026-11', '2026-W47', '2026-13-01', '0026-11-21'].map(
      (text): [string, Processor[], unknown] => [text, date(null), null],
    ),
    ['2026-11-21Z', date(null), null],
    ['2026-11-21 14:05:30', date(null), '2026-11-21'],
    ['2026-11-21 23:30:00.5 -0800', date(null), '2026-11-21'],
    ['2026-11-21 14:05 UTC', date(null), '2026-11-21'],
    ['2026-W47-6', date(null), '2026-11-21'],
    ['9999-12-31', date(null), '9999-12-31'],
    // Months in every spelling of the language.
    ['21 Sep 2026', date('d MMM yyyy', 'en-GB'), '2026-09-21'],
    ['21 Sept. 2026', date('d MMM yyyy', 'en-US'), '2026-09-21'],
    ['SEPTEMBER 21, 2026', date('MMM d, yyyy'), '2026-09-21'],
    ['21. Jänner 2026', date('d. MMMM yyyy', 'de'), '2026-01-21'],
    ['21. Jän. 2026', date('d. MMM yyyy', 'de-CH'), '2026-01-21'],
    ['mar 3 mar 2026', date('EEE d MMM yyyy', 'es'), '2026-03-03'],
    ['21 set 2026', date('d MMM yyyy', 'es'), '2026-09-21'],
    ['21 شباط 2026', date('d MMMM yyyy', 'ar'), '2026-02-21'],
    ['21 de set. de 2026', date("d 'de' MMM 'de' yyyy", 'pt'), '2026-09-21'],
    ['21 Setember 2026', date('d MMMM yyyy'), null],
    // Digits and years of other scripts and calendars.
    ['২১ নভেম্বর ২০২৬', date('d MMMM yyyy', 'bn'), '2026-11-21'],
    ['21 พฤศจิกายน 2569', date('d MMMM yyyy', 'th'), '2026-11-21'],
    ['21/11/๒๕๖๙', date('dd/MM/yyyy', 'th'), '2026-11-21'],
    ['21 พ.ย. 2026', date('d MMM yyyy', 'th'), '2026-11-21'],
    ['21 พ.ย. 69', date('d MMM yy', 'th'), null],
    ['21/11/2569', date('dd/MM/yyyy'), null],
    ['30 آبان 1405', date('d MMMM yyyy', 'fa'), null],
    ['۲۱ نوامبر ۲۰۲۶', date('d MMMM yyyy', 'fa'), '2026-11-21'],
    ['1448-06-11', date(null), null],
    ['a|b', [split('|')], 'a'],
    ['a|b||c', [split('|'), step.all], ['a', 'b', 'c']],
    ['a|b', [split('|'), join(' > ')], 'a > b'],
    ['', [{ type: 'default', value: 'none' }], 'none'],
    ['x', [{ type: 'default', value: 'none' }], 'x'],
    ['sold out', [step.integer, { type: 'default', value: 0 }], 0],
    ['', [step.all, { type: 'default', value: 'none' }], ['none']],
    ['../b?c=1', [{ type: 'url' }], 'https://shop.example/b?c=1'],
    ['//cdn.example/i.png', [{ type: 'url' }], 'https://cdn.example/i.png'],
    [' \n/b\n\t/c\r\nd ', [step.trim, { type: 'url' }], 'https://shop.example/b/cd'],
    ['\u0001/b c\u001f ', [{ type: 'url' }], 'https://shop.example/b%20c'],
    ['/b  c', [step.trim, step.first, { type: 'url' }], 'https://shop.example/b%20%20c'],
    ['/b\n2x', [step.trim, split(' '), { type: 'url' }], 'https://shop.example/b'],
    ['javascript:alert(1)', [{ type: 'url' }], null],
    ['mailto:a@b.example', [{ type: 'url' }], null],
    ['http://', [{ type: 'url' }], null],
    ['  ¥ 1,200 ', [step.trim, step.integer], 1200],
    ['5', [step.number, step.upper], '5'],
  ])('%j through %j gives %j', async (text, steps, expected) => {
    expect(await process(text, steps)).toEqual(expected);
  });

  it.each<[string, string, number, unknown]>([
    ['SKU: A-17, SKU: B-2', 'SKU: (\\w)-(\\d+)', 2, '17'],
    ['SKU: A-17', 'SKU: (\\w)-(\\d+)', 0, 'SKU: A-17'],
    ['ab', '(x)?ab', 1, null],
    ['x', 'y', 0, null],
    // Exponential in a backtracking engine.
    [`${'a'.repeat(5_000)}!`, '^(a+)+$', 0, null],
  ])('regex %#', async (text, pattern, group, expected) => {
    const steps: Step[] = [jsonpath('$.v'), { type: 'regex', pattern, group }];
    expect(await valueBy(steps, JSON.stringify({ v: text }), { kind: 'json' })).toEqual(expected);
  });

  it('keeps texts within the maximum length of a value', async () => {
    const grown = (await process('a'.repeat(60_000), [
      { type: 'replace', find: 'a', with: 'b'.repeat(1_000) },
    ])) as string;
    expect(grown).toBe('b'.repeat(65_535));
    const joined = await processList(Array(1_000).fill('x'.repeat(1_000)), [join('')]);
    expect(joined).toBe('x'.repeat(65_535));
  });
});

describe('a list of values', () => {
  it.each<[string, Scalar[], Step[], unknown]>([
    ['continues with the first, whatever its result', ['x', '5'], [step.number], null],
    ['continues with the first even if it is empty', ['', '5'], [step.number], null],
    ['continues with the remaining values with first', ['x', '5'], [step.number, step.first], 5],
    ['keeps the remaining values with all', ['x', '5', '', '6'], [step.number, step.all], [5, 6]],
    ['has no value when nothing is left', ['x'], [step.number, step.all], null],
    ['joins', ['a', 'b'], [join('-')], 'a-b'],
    ['keeps the types of JSON', [1, 'a', true], [step.all], [1, 'a', true]],
    ['is text in a text column', [1.5], [step.trim], '1.5'],
    ['is split in all its values', ['a,b', 'c'], [split(','), step.all], ['a', 'b', 'c']],
    ['takes the first match of the first value', ['a1b2', 'c3'], [regex('[0-9]', 0)], '1'],
    ['takes every match with all', ['a1b2', 'c3'], [regex('[0-9]', 0), step.all], ['1', '2', '3']],
  ])('%s', async (_name, list, steps, expected) => {
    expect(await processList(list, steps)).toEqual(expected);
  });
});
