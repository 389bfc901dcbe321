/** Run by a test, which kills it: renders one page and keeps running. Arguments: the browser, a folder, a URL. */
import { systemClock } from '../../../shared/adapters/system-clock.ts';
import { createAddressGuard } from '../../../shared/adapters/http/address-guard.ts';
import { createBrowserSource } from '../../../crawl-api/fetch/browser/browser-source.ts';
import { expectTitle } from './expect-title.ts';

const [executablePath, profileDirectory, url] = process.argv.slice(2) as [string, string, string];
const source = await createBrowserSource({
  executablePath,
  localAddress: '127.0.0.1',
  guard: createAddressGuard({ productUrl: url, allowPrivate: false, forbidden: [] }),
  settings: { userAgent: 'examplebot/1.0', timeoutMs: 20_000, maxPageBytes: 1_000_000 },
  openExtractor: () => ({ write() {}, end: () => ({ rows: [], missing: null }) }) as never,
  expect: expectTitle(),
  clock: systemClock,
  profileDirectory,
  onProblem: (text) => process.stderr.write(`${text}\n`),
});
await source.fetch(url, { onStart() {}, onFirstByte() {} }, new AbortController().signal);
process.stdout.write('ready\n');
