/** Makes the one file that every instance runs: the crawl API with all it needs, so that nothing is installed at boot. */
import { createHash } from 'node:crypto';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import { withBrowser, withoutBrowser } from './bundled-browser.ts';
import { slimDependencies } from './slim-dependencies.ts';

export interface Program {
  bytes: Uint8Array;
  /** Of the bytes, in hex. */
  sha256: string;
}

export interface ProgramOptions {
  /** With what drives a browser, which is several times the rest; the browser itself must be on the machine. Default false. */
  browser?: boolean;
}

/** Builds the crawl API: an ES module for Node 22 or newer. The same sources and dependencies always give the same bytes. */
export async function buildProgram({ browser = false }: ProgramOptions = {}): Promise<Program> {
  // In the checkout this file is TypeScript, in the installed package it is compiled, and so is the entry beside it.
  const here = fileURLToPath(import.meta.url);
  const root = path.join(path.dirname(here), '..');
  const entry = path.join(root, 'crawl-api', `main${path.extname(here)}`);
  const result = await build({
    entryPoints: [entry],
    // Paths in the output would otherwise depend on where the command was started.
    absWorkingDir: root,
    bundle: true,
    write: false,
    format: 'esm',
    platform: 'node',
    target: 'node22',
    minify: true,
    keepNames: false,
    legalComments: 'none',
    logLevel: 'silent',
    plugins: [slimDependencies(root), browser ? withBrowser(root) : withoutBrowser()],
    // Dependencies written for CommonJS ask for Node's own modules with require.
    banner: { js: "import{createRequire as __cr}from'node:module';const require=__cr(import.meta.url);" },
  });
  const bytes = result.outputFiles[0]!.contents;
  return { bytes, sha256: createHash('sha256').update(bytes).digest('hex') };
}
