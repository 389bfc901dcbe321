/**
 * Crawlee's PlaywrightCrawler on the same pages: `playwright-crawler.mjs CHROMIUM ORIGIN PAGES DIFFERENT CONCURRENCY`.
 * Tuned by its documentation: no fingerprints, no sessions, one context for all pages, headless, no waiting beyond
 * DOMContentLoaded, no storage on disk, no log, fixed concurrency. Images are off in Chromium itself, without
 * blockRequests: the page has nothing else that it would block.
 */
import { Configuration, LogLevel, PlaywrightCrawler, log } from '@crawlee/playwright';
import { treeCpuMs } from '../browser/tree-cpu.mjs';

const [executablePath, origin, pages, different, concurrency] = process.argv.slice(2);
log.setLevel(LogLevel.OFF);
const configuration = new Configuration({ persistStorage: false, purgeOnStart: false, availableMemoryRatio: 0.9 });
const url = (i) => `${origin}/item/P${String((i % Number(different)) + 1).padStart(5, '0')}?n=${i}`;

const WARM_UP = 15;
const total = WARM_UP + Number(pages);
let read = 0;
let cpuBefore = 0;
let startMs = 0;
let figures = null;

/** One run for warm-up and measurement, because Crawlee starts another browser for a second run. */
function count() {
  read++;
  if (read === WARM_UP) {
    cpuBefore = treeCpuMs();
    startMs = performance.now();
  }
  if (read !== total) return;
  const wallMs = performance.now() - startMs;
  figures = {
    pagesPerSecond: (pages * 1_000) / wallMs,
    pagesPerCpuSecond: (pages * 1_000) / (treeCpuMs() - cpuBefore),
  };
}

const crawler = new PlaywrightCrawler(
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
    headless: true,
    launchContext: {
      useIncognitoPages: false,
      launchOptions: { executablePath, args: ['--disable-gpu', '--blink-settings=imagesEnabled=false'] },
    },
    browserPoolOptions: {
      useFingerprints: false,
      retireBrowserAfterPageCount: 10_000,
      maxOpenPagesPerBrowser: 20,
      closeInactiveBrowserAfterSecs: 600,
    },
    preNavigationHooks: [(_context, gotoOptions) => void (gotoOptions.waitUntil = 'domcontentloaded')],
    async requestHandler({ page }) {
      // One evaluation for all fields: the minimum with Playwright.
      const row = await page.evaluate(() => {
        const text = (selector) => document.querySelector(selector)?.textContent.trim() ?? '';
        const json = JSON.parse(text('script[type="application/ld+json"]'));
        return {
          title: text('h1'),
          price: Number(document.querySelector('.product .price')?.getAttribute('data-value')),
          brand: json.brand.name,
          rating: Number(json.aggregateRating.ratingValue),
          crumbs: [...document.querySelectorAll('nav.breadcrumbs li')].map((e) => e.textContent.trim()),
          stock: text('.product .stock'),
        };
      });
      if (row.title !== '' && row.price > 0) count();
    },
  },
  configuration,
);

await crawler.run(Array.from({ length: total }, (_, i) => url(i)));
if (read !== total || figures === null) throw new Error(`PlaywrightCrawler read ${read} of ${total} pages`);
process.stdout.write(JSON.stringify(figures), () => process.exit(0));
