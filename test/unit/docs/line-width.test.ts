/**
 * Comments of the code are at most 120 columns wide, and decision records 160: wider lines are not read on a terminal.
 */
import { globSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));
const IS_COMMENT = /^\s*(?:\/\/|\/?\*)/;
const IS_TABLE = /^\s*\|/;

/** `file:line` of the lines that are wider than `columns`. */
function tooWide(pattern: string, columns: number, counts: (line: string) => boolean): string[] {
  return globSync(pattern, { cwd: ROOT, exclude: (path) => path === 'node_modules' }).flatMap((file) =>
    readFileSync(ROOT + file, 'utf8')
      .split('\n')
      .flatMap((line, i) => (line.length > columns && counts(line) ? [`${file}:${i + 1}`] : [])),
  );
}

it('comments fit into 120 columns', () => {
  const folders = '{orchestrator,crawl-api,shared,userdata,sandbox,test,bench,docs,examples}/**/*.{ts,tsx}';
  expect(tooWide(folders, 120, (line) => IS_COMMENT.test(line))).toEqual([]);
});

it('decision records fit into 160 columns, tables apart', () => {
  expect(tooWide('docs/decisions/*.md', 160, (line) => !IS_TABLE.test(line))).toEqual([]);
});
