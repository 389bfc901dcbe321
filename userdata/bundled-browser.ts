/**
 * Takes Playwright into the bundle, or all that has to do with the browser out of it. Playwright looks for files of its
 * package beside its own; in the bundle there is nothing beside it, so what it reads at its start is put in their place.
 */
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import type { Plugin } from 'esbuild';

/** Where Playwright looks for what the crawl API never uses, such as its trace viewer. */
const NOWHERE = '/playwright-core';

/** The bundle without a browser: the doors to it lead to an error. */
export function withoutBrowser(): Plugin {
  return {
    name: 'without-browser',
    setup(build) {
      build.onLoad({ filter: /[/\\]crawl-api[/\\]fetch[/\\]browser[/\\][\w-]+\.[jt]s$/ }, () => ({
        // CommonJS, so that every name may be asked for.
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
  // playwright-core belongs to playwright, wherever the package manager has put it.
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
