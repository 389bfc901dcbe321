/**
 * Builds the single file that every instance runs: the crawl API with its dependencies, so that boot installs nothing.
 */
import { createHash } from 'node:crypto';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { build, type Plugin } from 'esbuild';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { type Built, cachedBuild, inputsOf } from '../shared/adapters/build-cache.ts';

export interface Program {
  bytes: Uint8Array;
  /** The SHA-256 of the bytes, in hex. */
  sha256: string;
}

export interface ProgramOptions {
  /** Includes the browser driver, several times the size of the rest; not the browser. Default false. */
  browser?: boolean;
}

/** The crawl API: an ES module for Node 22 or newer. The same sources and dependencies always give the same bytes. */
export async function buildProgram(options: ProgramOptions = {}): Promise<Program> {
  const name = options.browser === true ? 'crawl-api-with-browser' : 'crawl-api';
  const bytes = Buffer.from(await cachedBuild(name, () => compileProgram(options)));
  return { bytes, sha256: createHash('sha256').update(bytes).digest('hex') };
}

/** The same, compiled now, with the files that it depends on. */
export async function compileProgram({ browser = false }: ProgramOptions): Promise<Built> {
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
    metafile: true,
    format: 'esm',
    platform: 'node',
    target: 'node22',
    minify: true,
    keepNames: false,
    // As in Node's own build of undici: without its experimental second HTTP parser.
    define: { esbuildDetection: 'true' },
    legalComments: 'none',
    logLevel: 'silent',
    plugins: [slimDependencies(root), browser ? withBrowser(root) : withoutBrowser()],
    // CommonJS dependencies load Node's own modules with require.
    banner: { js: "import{createRequire as __cr}from'node:module';const require=__cr(import.meta.url);" },
  });
  return { output: result.outputFiles[0]!.text, inputs: inputsOf(result.metafile, root, here) };
}

/** The path where Playwright expects parts that the crawl API never uses, such as its trace viewer. */
const NOWHERE = '/playwright-core';

/** The bundle without a browser: its entry points throw an error. */
function withoutBrowser(): Plugin {
  return {
    name: 'without-browser',
    setup(build) {
      build.onLoad({ filter: /[/\\]crawl-api[/\\]fetch[/\\]browser[/\\][\w-]+\.[jt]s$/ }, () => ({
        // CommonJS, so that any name may be imported.
        contents: `throw new Error('this bundle was built without a browser');`,
        loader: 'js',
      }));
      build.onResolve({ filter: /^playwright(-core)?$/ }, ({ path }) => ({ path, external: true }));
    },
  };
}

/** @param root folder that has the dependencies */
export function withBrowser(root: string): Plugin {
  const require = createRequire(path.join(root, 'package.json'));
  // Resolved from playwright, wherever the package manager has installed playwright-core.
  const manifest = createRequire(require.resolve('playwright/package.json')).resolve('playwright-core/package.json');
  const folder = path.dirname(manifest);
  const { version } = JSON.parse(readFileSync(manifest, 'utf8')) as { version: string };
  const browsers = readFileSync(path.join(folder, 'browsers.json'), 'utf8');
  const replacements: [what: RegExp, by: string][] = [
    [/\bpackageRoot = import_path\d*\.default\.join\(__dirname, "\.\."\)/, `packageRoot = ${JSON.stringify(NOWHERE)}`],
    [/\brequire\(import_path\d*\.default\.join\(packageRoot, "package\.json"\)\)/, JSON.stringify({ version })],
    [/\brequire\(import_path\d*\.default\.join\(packageRoot, "browsers\.json"\)\)/, `(${browsers})`],
  ];
  return {
    name: 'with-browser',
    setup(build) {
      build.onResolve({ filter: /^playwright$/ }, () => ({ path: path.join(folder, 'index.js') }));
      build.onLoad({ filter: /[/\\]playwright-core[/\\]lib[/\\]coreBundle\.js$/ }, ({ path: file }) => {
        let contents = readFileSync(file, 'utf8');
        for (const [what, by] of replacements) {
          if (!what.test(contents))
            throw new Error(`playwright-core ${version} has changed: ${what} is not in coreBundle.js`);
          contents = contents.replace(what, () => by);
        }
        return { contents: contents.replaceAll('__dirname', JSON.stringify(NOWHERE)), loader: 'js' };
      });
    },
  };
}

/**
 * What many crawls never use, loaded when the first of its exports is read. The list of public suffixes that comes with
 * cookies and the tables of multi-byte encodings take 17 MB.
 */
const ON_FIRST_USE = ['@exodus/bytes/multi-byte.js', 'chardet', 'luxon', 're2js', 'tldts', 'tough-cookie'];

/** Replacement modules for the bundle, by the pattern of the import path. */
const REPLACED: { filter: RegExp; contents: string }[] = [
  {
    // An import of node:http as an ES module reads all its exports, and one of them loads Node's own undici.
    filter: /^(node:)?http$/,
    contents: `module.exports = process.getBuiltinModule('node:http');`,
  },
  {
    // undici without fetch, WebSocket, cache, mocks and proxies: the crawl API uses Agent, requests and the connector.
    filter: /^undici$/,
    contents: `
      const Dispatcher = require('undici/lib/dispatcher/dispatcher.js');
      Dispatcher.prototype.request = require('undici/lib/api/api-request.js');
      exports.Agent = require('undici/lib/dispatcher/agent.js');
      exports.buildConnector = require('undici/lib/core/connect.js');`,
  },
  {
    // The tables of body-parser's text parsers: bodies are read raw.
    filter: /^iconv-lite$/,
    contents: `
      exports.encodingExists = () => false;
      exports.getDecoder = (name) => { throw new Error('no decoder for ' + name); };`,
  },
  {
    // Nine hundred media types; the listeners read and send four.
    filter: /^mime-db$/,
    contents: `module.exports = {
      'application/json': { charset: 'UTF-8', extensions: ['json'] },
      'application/octet-stream': { extensions: ['bin'] },
      'text/html': { extensions: ['html'] },
      'text/plain': { extensions: ['txt'] },
    };`,
  },
  {
    // Which browser the AWS SDK runs in.
    filter: /^bowser$/,
    contents: `throw new Error('an instance is no browser');`,
  },
  {
    // zod's messages in forty languages.
    filter: /[/]locales[/]index\.js$/,
    contents: `exports.en = require('zod/v4/locales/en.js').default;`,
  },
];

/** @param root folder that has the dependencies */
function slimDependencies(root: string): Plugin {
  return {
    name: 'slim-dependencies',
    setup(build) {
      const require = createRequire(path.join(root, 'package.json'));
      for (const module of ON_FIRST_USE) {
        const exports = Object.keys(require(module) as object).filter((name) => /^\w+$/.test(name));
        const getters = exports.map((name) => `get ${name}() { return require('${module}').${name}; }`);
        replace(new RegExp(`^${module}$`), `module.exports = { ${getters.join(', ')} };`);
      }
      for (const { filter, contents } of REPLACED) replace(filter, contents);

      function replace(filter: RegExp, contents: string): void {
        const namespace = `slim:${filter}`;
        build.onResolve({ filter }, ({ path, namespace: importer }) =>
          // The replacement itself imports what it replaces.
          importer === namespace ? undefined : { path, namespace },
        );
        build.onLoad({ filter: /^/, namespace }, () => ({ contents, resolveDir: root, loader: 'js' }));
      }
    },
  };
}
