/**
 * Builds the single file that every instance runs: the crawl API with its dependencies, so that boot installs nothing.
 */
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
  /**
   * Includes the browser driver, several times the size of the rest; the browser itself must be on the machine. Default
   * false.
   */
  browser?: boolean;
}

/** Builds the crawl API: an ES module for Node 22 or newer. The same sources and dependencies always give the same bytes. */
export async function buildProgram({ browser = false }: ProgramOptions = {}): Promise<Program> {
  // This file and the entry beside it are TypeScript in the checkout, and compiled in the installed package.
  const here = fileURLToPath(import.meta.url);
  const root = path.join(path.dirname(here), '..');
  const entry = path.join(root, 'crawl-api', `main${path.extname(here)}`);
  const result = await build({
    entryPoints: [entry],
    // Otherwise paths in the output would depend on the working directory.
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
    // CommonJS dependencies load Node's own modules with require.
    banner: { js: "import{createRequire as __cr}from'node:module';const require=__cr(import.meta.url);" },
  });
  const bytes = result.outputFiles[0]!.contents;
  return { bytes, sha256: createHash('sha256').update(bytes).digest('hex') };
}
