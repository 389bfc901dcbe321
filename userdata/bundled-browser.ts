/**
 * Includes Playwright in the bundle, or leaves out everything for the browser. Playwright reads files of its package
 * next to its own; the bundle has no such files, so what it reads at startup is inlined.
 */
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import type { Plugin } from 'esbuild';

/** The path where Playwright expects parts that the crawl API never uses, such as its trace viewer. */
const NOWHERE = '/playwright-core';

/** The bundle without a browser: its entry points throw an error. */
export function withoutBrowser(): Plugin {
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
