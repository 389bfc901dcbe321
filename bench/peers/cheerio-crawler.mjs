/**
 * Crawlee's CheerioCrawler on the same pages: `cheerio-crawler.mjs ADDRESS PAGES DIFFERENT [CONCURRENCY]`. Tuned by its
 * documentation: no sessions, no storage on disk, no log, fixed concurrency.
 */
import { CheerioCrawler, Configuration, LogLevel, log } from '@crawlee/cheerio';

const [address, pages, different, concurrency = '8'] = process.argv.slice(2);
log.setLevel(LogLevel.OFF);
const configuration = new Configuration({ persistStorage: false, purgeOnStart: false, availableMemoryRatio: 0.9 });
const url = (i) => `${address}/P${String((i % Number(different)) + 1).padStart(5, '0')}?n=${i}`;

let read = 0;
const crawler = new CheerioCrawler(
  {
    useSessionPool: false,
    persistCookiesPerSession: false,
    maxRequestRetries: 0,
    minConcurrency: Number(concurrency),
    maxConcurrency: Number(concurrency),
    autoscaledPoolOptions: {
      maybeRunIntervalSecs: 0.005,
      loggingIntervalSecs: null,
      systemStatusOptions: { maxCpuOverloadedRatio: 1, maxEventLoopOverloadedRatio: 1, maxMemoryOverloadedRatio: 1 },
    },
    statisticsOptions: { logIntervalSecs: 100_000, saveErrorSnapshots: false },
    requestHandler({ $ }) {
      const json = JSON.parse($('script[type="application/ld+json"]').text());
      const row = {
        title: $('h1').first().text().trim(),
        price: Number($('.product .price').first().attr('data-value')),
        brand: json.brand.name,
        rating: Number(json.aggregateRating.ratingValue),
        crumbs: $('nav.breadcrumbs li')
          .map((_, e) => $(e).text().trim())
          .get(),
        stock: $('.product .stock').first().text().trim(),
      };
      if (row.title !== '' && row.price > 0) read++;
    },
  },
  configuration,
);
const run = async (from, count) => {
  const before = read;
  await crawler.run(Array.from({ length: count }, (_, i) => url(from + i)));
  if (read - before !== count) throw new Error(`CheerioCrawler read ${read - before} of ${count} pages`);
};

await run(0, 100);
const cpuBefore = process.cpuUsage();
const startMs = performance.now();
await run(100, Number(pages));
const wallMs = performance.now() - startMs;
const { user, system } = process.cpuUsage(cpuBefore);
process.stdout.write(
  JSON.stringify({
    pagesPerSecond: (pages * 1_000) / wallMs,
    pagesPerCpuSecond: (pages * 1_000_000) / (user + system),
  }),
  () => process.exit(0),
);
