import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { readCurrency, readNumber } from '../../../crawl-api/extract/numbers/read-number.ts';
import type { DecimalMark } from '../../../shared/domain/currencies.ts';
import { NONE, OPEN, SURE } from './price-texts.ts';

const price = (text: string, decimal: DecimalMark | null = null, currency: string | null = null) =>
  readNumber(text, { decimal, isMachine: false, price: { currency } }).value;

describe('A price text', () => {
  it.each(SURE)('%s is %d, %s', (text, amount, currency) => {
    expect(price(text)).toBe(amount);
    expect(readCurrency(text, null)).toBe(currency);
  });

  it.each(OPEN)('%s depends on the column: %s or %s', (text, point, comma) => {
    expect(price(text)).toEqual({ text, point, comma });
  });

  it.each(NONE)('%j has no price', (text) => {
    expect(price(text)).toBeNull();
    expect(readCurrency(text, null)).toBeNull();
  });

  it.each<[string, DecimalMark, unknown]>([
    ['1.234', ',', 1234],
    ['1.234', '.', 1.234],
    ['1,234 €', ',', 1.234],
    ['12.50', ',', { text: '12.50', point: null, comma: null }],
  ])('%s with the decimal mark %s is %j', (text, decimal, expected) => {
    expect(price(text, decimal)).toEqual(expected);
  });

  it('uses the currency of the mapping and its number format where the text shows none', () => {
    expect(price('1.727', null, 'HUF')).toBe(1727);
    expect(readCurrency('1.727', 'HUF')).toBe('HUF');
    expect(readCurrency('$ 5', 'CAD')).toBe('CAD');
    expect(readCurrency('5 €', 'CAD')).toBe('EUR');
  });

  it.each([
    ['GEL PEN $2.50', 'USD'],
    ['MUG CUP $5', 'USD'],
    ['NOW ALL $5.00', 'USD'],
    ['TRY $9.99', 'USD'],
    ['TOP $20', 'USD'],
    ['$9.99 TRY', 'USD'],
    ['FLOOR MOP $ 12.50', 'USD'],
    ['ALL ¥500', 'USD'],
    ['TRY 250 kr', 'USD'],
    ['TRY kr 250', 'USD'],
    ['PEN Rs 250', 'USD'],
    ['TOP 20 $', 'USD'],
    ['CAD 5 $', 'CAD'],
    ['MXN $1,299.00', 'MXN'],
    ['US $789.99', 'USD'],
    ['$1.05 CAD', 'CAD'],
    ['BRL $ 24,90', 'BRL'],
    ['CNY ¥500', 'CNY'],
    ['¥500 JPY', 'JPY'],
    ['250 kr SEK', 'SEK'],
    ['ISK kr 2.500', 'ISK'],
    ['LKR Rs 2,500', 'LKR'],
  ])('beside a shared symbol takes a code only of its currencies: %s is %s', (text, currency) => {
    expect(readCurrency(text, 'USD')).toBe(currency);
    expect(price(text, null, 'USD')).toEqual(expect.any(Number));
  });

  it('reads plain numbers of attributes and JSON with the point, and texts there like other texts', () => {
    const machine = (text: string) => readNumber(text, { decimal: null, isMachine: true, price: null }).value;
    expect(['1.234', '12.', '.5', '-3.125', '1e3'].map(machine)).toEqual([1.234, 12, 0.5, -3.125, 1000]);
    expect(machine('1.727 Ft')).toBe(1727);
  });

  it.each<[string, unknown]>([
    ['1,25 €/100 g', 1.25],
    ['19,95 €/m²', 19.95],
    ['m² 12,99', 12.99],
    ['CO₂ 120 g', 120],
    ['100 g (1,25 €)', 100],
    ['0.75 ct', 0.75],
    ["6'2", 6],
    ['16:9', 16],
    ['(128)', 128],
    ['-.25', -0.25],
    ['12.5-', 12.5],
    ['10³', { text: '10³', point: null, comma: null }],
  ])('as a plain number: %s is %j', (text, expected) => {
    expect(readNumber(text, { decimal: null, isMachine: false, price: null }).value).toEqual(expected);
  });

  it('is never NaN or infinite, and never slow, whatever the text', () => {
    const chars = fc.constantFrom(
      ...Array.from("0123456789.,' -–€$kr%()KM¢½⁹٫١:/\u001d\u001e\u001f"),
      ' kr ',
      'EUR',
      '1.234',
    );
    const text = fc.oneof(
      fc.string({ unit: 'binary' }),
      fc.array(chars, { maxLength: 400 }).map((all) => all.join('')),
    );
    fc.assert(
      fc.property(text, (any) => {
        const value = price(any);
        if (typeof value === 'number') expect(Number.isFinite(value)).toBe(true);
        readCurrency(any, null);
      }),
    );
  });
});
