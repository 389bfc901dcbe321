/**
 * Removes from the bundle code of dependencies that the crawl API never uses: on a machine with half a gigabyte, code
 * that is only parsed still costs memory. Each entry says what is left out. The crawl API's contract tests run the real
 * bundle, so they detect an entry that removes too much.
 */
import type { Plugin } from 'esbuild';

/** Replacement modules for the bundle, by the pattern of the import path. */
const REPLACED: { filter: RegExp; contents: string }[] = [
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
    // zod's messages in forty languages.
    filter: /[/]locales[/]index\.js$/,
    contents: `exports.en = require('zod/v4/locales/en.js').default;`,
  },
];

/** @param root folder that has the dependencies */
export function slimDependencies(root: string): Plugin {
  return {
    name: 'slim-dependencies',
    setup(build) {
      REPLACED.forEach(({ filter, contents }, index) => {
        build.onResolve({ filter }, () => ({ path: String(index), namespace: 'slim' }));
        build.onLoad({ filter: new RegExp(`^${index}$`), namespace: 'slim' }, () => ({
          contents,
          resolveDir: root,
          loader: 'js',
        }));
      });
    },
  };
}
