/** The page's files: built when the package is, else from the sources when the server starts. */
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import { type Built, cachedBuild, inputsOf } from '../../../shared/adapters/build-cache.ts';

const PAGE = new URL('page/', import.meta.url);
const GLOSSARY = fileURLToPath(new URL('../../../docs/glossary.md', import.meta.url));

/** What the page is made of. */
export interface Asset {
  type: string;
  body: Uint8Array;
}

/** The page's files by path: `/index.html`, `/main.js`, `/main.css`. */
export async function pageAssets(): Promise<Map<string, Asset>> {
  const html = await readFile(new URL('index.html', PAGE));
  const { js, css } = existsSync(new URL('main.js', PAGE)) ? await readBuilt() : await bundlePage();
  return new Map([
    ['/index.html', { type: 'text/html; charset=utf-8', body: html }],
    ['/main.js', { type: 'text/javascript; charset=utf-8', body: js }],
    ['/main.css', { type: 'text/css; charset=utf-8', body: css }],
  ]);
}

async function readBuilt(): Promise<{ js: Uint8Array; css: Uint8Array }> {
  return { js: await readFile(new URL('main.js', PAGE)), css: await readFile(new URL('main.css', PAGE)) };
}

/** One script and one style sheet, with the libraries inside. */
export async function bundlePage(): Promise<{ js: Uint8Array; css: Uint8Array }> {
  const { js, css } = JSON.parse(await cachedBuild('page', compilePage)) as { js: string; css: string };
  return { js: Buffer.from(js), css: Buffer.from(css) };
}

async function compilePage(): Promise<Built> {
  const folder = fileURLToPath(PAGE);
  const glossary = glossaryOf(await readFile(GLOSSARY, 'utf8'));
  const { outputFiles, metafile } = await build({
    entryPoints: [path.join(folder, 'main.tsx')],
    absWorkingDir: folder,
    bundle: true,
    minify: true,
    format: 'esm',
    target: 'es2024',
    jsx: 'automatic',
    jsxImportSource: 'preact',
    outdir: 'out',
    write: false,
    metafile: true,
    logLevel: 'silent',
    tsconfigRaw: {},
    define: { GLOSSARY: JSON.stringify(glossary) },
  });
  const find = (ending: string): string => outputFiles.find((file) => file.path.endsWith(ending))!.text;
  const output = JSON.stringify({ js: find('.js'), css: find('.css') });
  return { output, inputs: [...inputsOf(metafile, folder, fileURLToPath(import.meta.url)), GLOSSARY] };
}

/** The meaning of each word of the glossary as plain text; the words in lower case. */
export function glossaryOf(markdown: string): Record<string, string> {
  const plain = (text: string): string => text.replaceAll(/\[([^\]]+)\]\([^)]+\)/g, '$1').replaceAll(/[*`]/g, '');
  const rows = [...markdown.matchAll(/^\| \*\*(.+?)\*\* \| (.+) \|$/gm)];
  return Object.fromEntries(
    rows.flatMap(([, words = '', meaning = '']) =>
      words.split(', ').map((word) => [word.toLowerCase(), plain(meaning)]),
    ),
  );
}
