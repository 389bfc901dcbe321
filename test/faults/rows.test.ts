/** The table in README.md: it lists every row of the fault matrix, and the tests it names exist and name their row. */
import { existsSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { FAULTS } from './catalogue.ts';

const ROOT = new URL('../../', import.meta.url);
const ROWS = 60;

interface Named {
  row: string;
  level: string;
  file: string;
  title: string;
}

const table = [
  ...readFileSync(new URL('README.md', import.meta.url), 'utf8').matchAll(/^\| (F\d+) \|([^|]*)\|[^|]*\|(.*)\|$/gm),
];
const named: Named[] = table.flatMap(([, row, , tests]) =>
  tests!.split('<br>').map((entry): Named => {
    const [, level = '?', file = '', title = entry] = /^([SNX]) `(test\/[^`]+)`: (.+)$/.exec(entry.trim()) ?? [];
    return { row: row!, level, file, title };
  }),
);

/** In the source, titles of `it.each` have a placeholder for the row. */
function hasTest({ row, file, title }: Named): boolean {
  const url = new URL(file, ROOT);
  if (file === '' || !existsSync(url)) return false;
  const source = readFileSync(url, 'utf8');
  return source.includes(title) || (row in FAULTS && source.includes(title.replace(row, '%s')));
}

describe('the table of faults', () => {
  it('has every row once, in order', () => {
    expect(table.map(([, row]) => row)).toEqual(Array.from({ length: ROWS }, (_, i) => `F${i + 1}`));
  });

  it('names a test for each level of a row', () => {
    const wanted = table.flatMap(([, row, levels]) =>
      levels!
        .trim()
        .split(' ')
        .map((level) => `${row} ${level}`),
    );
    expect(named.map(({ row, level }) => `${row} ${level}`)).toEqual(wanted);
  });

  it('names existing tests, by titles that contain the row', () => {
    const wrong = named.filter((n) => !new RegExp(`\\b${n.row}\\b`).test(n.title) || !hasTest(n));
    expect(wrong).toEqual([]);
  });
});
