/**
 * One case of the fetch bench, as a process: `fetch-case.ts undici|sax|crawlfleet ORIGIN item|typical PAGES DIFFERENT`.
 * Prints its figures.
 */
import { Agent } from 'undici';
import { systemClock } from '../../shared/adapters/system-clock.ts';
import { createAddressGuard } from '../../shared/adapters/http/address-guard.ts';
import { createTargetDispatcher } from '../../shared/adapters/http/target-dispatcher.ts';
import { compileMapping } from '../../crawl-api/extract/compile-mapping.ts';
import { PageExtractor } from '../../crawl-api/extract/page-extractor.ts';
import { PageFetcher } from '../../crawl-api/fetch/page-fetcher.ts';
import { readMapping } from '../../orchestrator/core/config/read-mapping.ts';
import { SHOP_MAPPING, productIds } from '../../test/support/shop/product.ts';
import { HandwrittenReader } from '../extract/peers.ts';
import { checkRow, printFigures } from '../pages.ts';

export type FetchCase = 'undici' | 'sax' | 'crawlfleet';

const [name, origin, page, pages, different] = process.argv.slice(2) as [FetchCase, string, string, string, string];
const ids = productIds(Number(different));
const WARM_UP = 300;
/** Concurrent requests, like the peers; a real crawl sends one request at a time, with long pauses. */
const CONCURRENCY = 4;

const CASES: Record<FetchCase, () => Promise<(id: string) => Promise<unknown>>> = {
  undici: () => {
    const agent = new Agent({ connections: CONCURRENCY });
    return Promise.resolve(async (id) => {
      const { body } = await agent.request({ origin, path: `/${page}/${id}`, method: 'GET' });
      let bytes = 0;
      for await (const chunk of body as AsyncIterable<Uint8Array>) bytes += chunk.length;
      return bytes;
    });
  },
  sax: () => {
    const agent = new Agent({ connections: CONCURRENCY });
    return Promise.resolve(async (id) => {
      const { body } = await agent.request({ origin, path: `/${page}/${id}`, method: 'GET' });
      const decoder = new TextDecoder();
      const pieces: string[] = [];
      for await (const chunk of body as AsyncIterable<Uint8Array>) pieces.push(decoder.decode(chunk, { stream: true }));
      return new HandwrittenReader().read(pieces);
    });
  },
  crawlfleet: async () => {
    const mapping = await compileMapping(
      readMapping({ fields: { ...SHOP_MAPPING.fields, stock: { css: '.product .stock' } } }).mapping,
    );
    const guard = createAddressGuard({ productUrl: `${origin}/${page}/{id}`, allowPrivate: false, forbidden: [] });
    // As on an instance: one connection per fetcher.
    const fetchers = Array.from({ length: CONCURRENCY }, () => {
      const dispatcher = createTargetDispatcher({ localAddress: '127.0.0.1', guard, connectTimeoutMs: 5_000 });
      const settings = { userAgent: 'crawlfleet-bench', timeoutMs: 30_000, maxPageBytes: 5_000_000 };
      return new PageFetcher(dispatcher, settings, systemClock, (kind, url) => new PageExtractor(mapping, kind, url));
    });
    const hooks = { onStart: () => undefined, onFirstByte: () => undefined };
    const { signal } = new AbortController();
    let next = 0;
    return async (id) => {
      const result = await fetchers[next++ % CONCURRENCY]!.fetch(`${origin}/${page}/${id}`, hooks, signal);
      if (result.kind !== 'page') throw new Error(`no page: ${JSON.stringify(result).slice(0, 300)}`);
      return result.extraction.rows?.[0]?.row;
    };
  },
};

const read = await CASES[name]();
for (const id of ids) if (name !== 'undici') checkRow(name, id, await read(id));
await readMany(WARM_UP);
await printFigures(Number(pages), () => readMany(Number(pages)));
process.exit(0);

async function readMany(count: number): Promise<void> {
  let next = 0;
  const work = async (): Promise<void> => {
    while (next < count) await read(ids[next++ % ids.length]!);
  };
  await Promise.all(Array.from({ length: CONCURRENCY }, work));
}
