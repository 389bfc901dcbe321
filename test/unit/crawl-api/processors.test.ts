import { describe, expect, it } from 'vitest';
import { processValue, toNumber } from '../../../crawl-api/extract/processors.ts';

describe('number', () => {
  it.each([
    ['12', 12],
    ['1,234', 1234],
    ['1,234.50', 1234.5],
    ['1.234,50 €', 1234.5],
    ['1.234.567', 1234567],
    ['1,234,567', 1234567],
    ['12,34,567', 1234567],
    ['12,5', 12.5],
    ['1.234', 1.234],
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
    [5.5, 5.5],
    [Number.NaN, null],
  ])('%s gives %s', (text, expected) => {
    expect(toNumber(text)).toBe(expected);
  });
});

describe('integer', () => {
  it.each([
    ['1,234', 1234],
    ['12.0', 12],
    ['12.5', null],
    ['99999999999999999999', null],
    [7, 7],
  ])('%s gives %s', (text, expected) => {
    expect(processValue(text, [{ type: 'integer' }])).toBe(expected);
  });
});

describe('a chain', () => {
  it('runs its steps in order', () => {
    expect(processValue('  ¥ 1,200 ', [{ type: 'trim' }, { type: 'integer' }])).toBe(1200);
    expect(processValue(' a  b ', [{ type: 'trim' }])).toBe('a b');
    expect(processValue(' a ', [])).toBe(' a ');
  });
});
