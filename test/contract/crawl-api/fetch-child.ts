/** Fetches one URL in a separate process and reports how much its memory grew at most. */
import type { PageExtractor } from '../../../crawl-api/extract/page-extractor.ts';
import { PageFetcher } from '../../../crawl-api/fetch/page-fetcher.ts';
import { createAddressGuard } from '../../../shared/adapters/http/address-guard.ts';
import { createTargetDispatcher } from '../../../shared/adapters/http/target-dispatcher.ts';
import { systemClock } from '../../../shared/adapters/system-clock.ts';
import { readProcess } from '../../support/processes.ts';

const [url = '', maxPageBytes = ''] = process.argv.slice(2);
const dispatcher = createTargetDispatcher({
  localAddress: null,
  guard: createAddressGuard({ productUrl: url, allowPrivate: false, forbidden: [] }),
  connectTimeoutMs: 5_000,
});
const settings = { userAgent: 'testbot/1.0', timeoutMs: 20_000, maxPageBytes: Number(maxPageBytes) };
const extractor: Pick<PageExtractor, 'write' | 'end'> = {
  write: () => undefined,
  end: () => ({ rows: [], missing: null, links: [] }),
};
const fetcher = new PageFetcher(dispatcher, settings, systemClock, () => extractor as PageExtractor);
const hooks = { onStart: () => undefined, onFirstByte: () => undefined };

const before = process.memoryUsage.rss();
const result = await fetcher.fetch(url, hooks, new AbortController().signal);
// Any unpacking that continues after the result would show by now.
await systemClock.sleep(100);
// Not `resourceUsage().maxRSS`: on Linux it includes the peak of the process that forked this one, here that of the
// tests.
const grownMb = (readProcess(process.pid).peakRssBytes - before) / 1_048_576;
await fetcher.close();
process.send!({ result, grownMb }, () => process.disconnect());
