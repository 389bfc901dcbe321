/** Only crawlfleet's rendering, as a process: `browser-case.ts CHROMIUM ORIGIN PAGES DIFFERENT`. Prints its figures. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { createAddressGuard } from '../../shared/adapters/http/address-guard.ts';
import { systemClock } from '../../shared/adapters/system-clock.ts';
import { compileMapping } from '../../crawl-api/extract/compile-mapping.ts';
import { PageExtractor } from '../../crawl-api/extract/page-extractor.ts';
import { createBrowserSource } from '../../crawl-api/fetch/browser/browser-source.ts';
import { expectOf } from '../../crawl-api/fetch/browser/expected-elements.ts';
import { readMapping } from '../../orchestrator/core/config/read-mapping.ts';
import { SHOP_MAPPING, productIds } from '../../test/support/shop/product.ts';
import { printFigures } from '../pages.ts';
import { treeCpuMs } from './tree-cpu.mjs';

const WARM_UP = 15;

const [executablePath, origin, pages, different] = process.argv.slice(2) as [string, string, string, string];
const ids = productIds(Number(different));
const { mapping } = readMapping({ fields: { ...SHOP_MAPPING.fields, stock: { css: '.product .stock' } } });
const compiled = await compileMapping(mapping);
const expected = expectOf(mapping.pages[0]!);
const folder = mkdtempSync(path.join(tmpdir(), 'browser-bench-'));
const source = await createBrowserSource({
  executablePath,
  localAddress: '127.0.0.1',
  guard: createAddressGuard({ productUrl: `${origin}/item/{id}`, allowPrivate: false, forbidden: [] }),
  settings: { userAgent: 'crawlfleet-bench', timeoutMs: 30_000, maxPageBytes: 5_000_000 },
  openExtractor: (kind, url) => new PageExtractor(compiled, kind, url),
  expect: () => expected,
  clock: systemClock,
  profileDirectory: folder,
  onProblem: (text) => process.stderr.write(`${text}\n`),
  unpaced: true,
  // As on an instance, except for the second browser, whose start would fall into one round and not into another.
  recycle: { pages: 10_000 },
});

const hooks = { onStart() {}, onFirstByte() {} };
async function run(from: number, count: number): Promise<void> {
  for (let i = from; i < from + count; i++) {
    const url = `${origin}/item/${ids[i % ids.length]}?n=${i}`;
    const result = await source.fetch(url, hooks, new AbortController().signal);
    const row = result.kind === 'page' ? result.extraction.rows?.[0]?.row : undefined;
    if (!row?.title || !row.price) throw new Error(`${url} was not read: ${JSON.stringify(result).slice(0, 300)}`);
  }
}

await run(0, WARM_UP);
await printFigures(Number(pages), () => run(WARM_UP, Number(pages)), treeCpuMs);
await source.close();
rmSync(folder, { recursive: true, force: true });
