/** The page's files: built when the package is, else from the sources when the server starts. */
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

const PAGE = new URL('page/', import.meta.url);

/** What the page is made of. */
export interface Asset {
  type: string;
  body: Uint8Array;
}

/** By path: `/index.html`, `/main.js`, `/main.css`. */
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
  const { outputFiles } = await build({
    entryPoints: [fileURLToPath(new URL('main.tsx', PAGE))],
    bundle: true,
    minify: true,
    format: 'esm',
    target: 'es2024',
    jsx: 'automatic',
    jsxImportSource: 'preact',
    outdir: 'out',
    write: false,
    logLevel: 'silent',
    tsconfigRaw: {},
  });
  const find = (ending: string): Uint8Array => outputFiles.find(({ path }) => path.endsWith(ending))!.contents;
  return { js: find('.js'), css: find('.css') };
}
