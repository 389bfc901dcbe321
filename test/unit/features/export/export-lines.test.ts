import { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { expect, it } from 'vitest';
import { countFormulas, exportLines } from '../../../../orchestrator/core/read/row-lines.ts';

const columns = [
  { name: 'name', type: 'text' },
  { name: 'price', type: 'number' },
] as const;
const csvOf = async (values: readonly unknown[], safe: boolean): Promise<string[]> => {
  const rows = Readable.from(values.map((name) => ({ name, price: -1 })));
  const lines = exportLines(rows, { columns, format: 'csv', safe });
  return (await text(Readable.from(lines))).split('\r\n').slice(1, -1);
};

it('makes no formula of what a site wrote, in a file for a spreadsheet', async () => {
  const given = ['=1+1', '+cmd', '-2+3', '@SUM(A1)', '\t=1', 'a=b', '-12.50', '+3', '', null, '="a,b"'];
  expect(await csvOf(given, true)).toEqual([
    "'=1+1,-1",
    "'+cmd,-1",
    "'-2+3,-1",
    "'@SUM(A1),-1",
    "'\t=1,-1",
    'a=b,-1',
    '-12.50,-1',
    '+3,-1',
    '"",-1',
    ',-1',
    `"'=""a,b""",-1`,
  ]);
});

it('makes none behind a semicolon, where some spreadsheets begin a cell, nor of full-width signs', async () => {
  const given = ['blue;=1+1;@a;-5', '＝１＋１', '＠ＳＵＭ', '\n=1', ['a;=1']];
  expect(await csvOf(given, true)).toEqual([
    "blue;'=1+1;'@a;-5,-1",
    "'＝１＋１,-1",
    "'＠ＳＵＭ,-1",
    `"'\n=1",-1`,
    `"[""a;'=1""]",-1`,
  ]);
});

it('leaves numbers and other text alone in it', async () => {
  const numbers = [
    '-1',
    '+1.5e-7',
    '-1 234,50',
    '-1\u00a0234',
    "-1'234.5",
    '-5 %',
    '-$5.00',
    '-5,00 €',
    '- 12',
    '-.5',
    '(12)',
  ];
  const phones = ['+4930123456', '+49 30 123456', '+49 (0)30 12 34 56'];
  const texts = [
    'a-b',
    '1+1',
    ' =1',
    "'=1",
    'Å; ä',
    'a; -5',
    '−5',
    '—',
    '日本語',
    '👨\u200d👩\u200d👧',
    'x@y.example',
    '#1',
    '-',
    '---',
    '@',
    '=',
    '/-',
  ];
  const given = [...numbers, ...phones, ...texts].map((text) => text.replaceAll(',', '.'));
  expect(await csvOf(given, true)).toEqual(given.map((text) => `${text},-1`));
  expect(await countFormulas(Readable.from([...given, null, -1, true].map((name) => ({ name }))), columns)).toBe(0);
});

it('counts them', async () => {
  const rows = ['=1', 'a;=1;=2', 'a', '-2+3'].map((name) => ({ name, price: '@x' }));
  expect(await countFormulas(Readable.from(rows), columns)).toBe(8);
});

it('leaves values as they are in a file for programs', async () => {
  expect(await csvOf(['=1+1', '@a'], false)).toEqual(['=1+1,-1', '@a,-1']);
});
