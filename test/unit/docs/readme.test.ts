/** README.md and the docs pages: commands and valid links. */
import { FEATURES } from '../../../orchestrator/features.ts';
import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { createProgram } from '../../../orchestrator/cli/program/program.ts';

const ROOT = new URL('../../../', import.meta.url);
const read = (path: string): string => readFileSync(new URL(path, ROOT), 'utf8');
const readme = read('README.md');
const pages = ['README.md', ...['docs', 'docs/decisions'].flatMap(markdownIn)];

function markdownIn(folder: string): string[] {
  return readdirSync(new URL(`${folder}/`, ROOT))
    .filter((file) => file.endsWith('.md'))
    .map((file) => `${folder}/${file}`);
}

/** From one heading of the second level to the next. */
const sectionOf = (title: string): string => readme.split(`## ${title}\n`)[1]!.split('\n## ')[0]!;

describe('README.md', () => {
  it('lists every command, and no other', () => {
    const there = createProgram(FEATURES).commands.map((command) => command.name());
    const rows = sectionOf('Commands')
      .split('\n')
      .filter((line) => line.startsWith('| `'));
    const listed = rows.flatMap((row) => [...row.split('|')[1]!.matchAll(/`([a-z]+)`/g)].map((m) => m[1]!));
    expect(listed.toSorted()).toEqual(there.toSorted());
  });
});

describe('links', () => {
  it.each(pages)('of %s are valid', (page) => {
    const targets = [...read(page).matchAll(/\]\(([^)#\s]+)(?:#[^)]*)?\)/g)].map((m) => m[1]!);
    const local = targets.filter((target) => !/^[a-z]+:/.test(target));
    expect(local.filter((target) => !existsSync(new URL(target, new URL(page, ROOT))))).toEqual([]);
  });
});

const FOLDERS = 'orchestrator|crawl-api|shared|sandbox|userdata|deploy|test|bench|docs|examples|bin';
const PATH = new RegExp(`(?<![\\w./:@{-])(?:${FOLDERS})/[\\w./-]*\\w/?(?![\\w-]|\\*\\.)`, 'g');

describe('paths', () => {
  it.each([...pages, 'CONTRIBUTING.md'])('that %s names exist', (page) => {
    const paths = [...read(page).matchAll(PATH)].map(([path]) => path);
    expect(paths.filter((path) => !existsSync(new URL(path, ROOT)))).toEqual([]);
  });
});

describe('the walks in docs/architecture.md', () => {
  const walks = read('docs/architecture.md').split('file by file\n').slice(1);
  const namesIn = (walk: string): string[] =>
    [...walk.matchAll(/^\|(?!-).*\|$/gm)].flatMap(([row]) => [...row.matchAll(/`([^`]+\.ts)`/g)].map((m) => m[1]!));

  it.each([
    ['a product', 0, 35],
    ['an instance', 1, 22],
  ])('lead %s through files that exist, and few of them', (_, index, most) => {
    const names = new Set(namesIn(walks[index]!));
    const missing = [...names].filter(
      (name) => ![name, `orchestrator/core/${name}`].some((path) => existsSync(new URL(path, ROOT))),
    );
    expect(missing).toEqual([]);
    expect(names.size).toBeGreaterThan(15);
    expect(names.size).toBeLessThanOrEqual(most);
  });
});

it('CHANGELOG.md begins with the version of the package', () => {
  const { version } = JSON.parse(read('package.json')) as { version: string };
  expect(/^## (.+)$/m.exec(read('CHANGELOG.md'))?.[1]).toBe(version);
});
