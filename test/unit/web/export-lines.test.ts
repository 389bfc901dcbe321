import { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { expect, it } from 'vitest';
import { exportLines } from '../../../orchestrator/app/export/export-rows.ts';

const columns = [
  { name: 'name', type: 'text' },
  { name: 'price', type: 'number' },
] as const;
const csvOf = async (values: readonly unknown[], forSheets: boolean): Promise<string[]> => {
  const rows = Readable.from(values.map((name) => ({ name, price: -1 })));
  const lines = exportLines(rows, { columns, format: 'csv', forSheets });
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

it('leaves values as they are in a file for programs', async () => {
  expect(await csvOf(['=1+1', '@a'], false)).toEqual(['=1+1,-1', '@a,-1']);
});
