/** Rendering with a real browser, pacing off, against Crawlee with the same Chromium. */
import { fileURLToPath } from 'node:url';
import { chromium } from 'playwright';
import { findChromium } from '../../shared/adapters/find-chromium.ts';
import { PAGE_SERVER } from '../fetch/fetch.ts';
import { type Bench, fastestRows, measureInTurn, startProgram } from '../frame.ts';
import { measurePages, type PageFigures } from '../pages.ts';
import { peerProgram } from '../peers/install.ts';

const PAGES = 100;
const DIFFERENT = 50;
const ROUNDS = 5;
const CASE = fileURLToPath(new URL('browser-case.ts', import.meta.url));

export const bench: Bench = {
  title: 'Rendering: six fields from product pages of 40 KB with Chromium',
  async run() {
    const crawlee = peerProgram('playwright-crawler.mjs');
    const executable = findChromium({ playwrightPath: () => chromium.executablePath() });
    const { line: origin, stop } = await startProgram(PAGE_SERVER, [String(DIFFERENT)]);
    const measure = async (file: string, ...more: string[]): Promise<PageFigures> => {
      const args = [executable, origin, String(PAGES), String(DIFFERENT), ...more];
      const { pagesPerCpuSecond, pagesPerSecond } = await measurePages(file, args);
      return { pagesPerCpuSecond, pagesPerSecond };
    };
    try {
      const results = await measureInTurn(
        {
          crawlfleet: () => measure(CASE),
          'PlaywrightCrawler, 1 page': () => measure(crawlee, '1'),
          'PlaywrightCrawler, 2 pages': () => measure(crawlee, '2'),
        },
        ROUNDS,
      );
      const rows = fastestRows(results);
      const [own, ...peers] = rows.map((row) => row.figures.pagesPerCpuSecond!);
      return {
        about:
          `Each renders ${PAGES} pages with ${executable} after a warm-up, the fastest of ${ROUNDS} rounds in turn. Processor time is that of ` +
          `Node and of all processes of the browser. \`crawlfleet\` as on an instance: one page, everything through its filter ` +
          `proxy; but without a pace, so that the next page replaces the last one without clearing it first. ` +
          `\`PlaywrightCrawler\` loads no images (Crawlee's \`blockRequests\` would cost it a tenth more on this page), has no fingerprints and one context, and reads all fields in ` +
          `one evaluation at DOMContentLoaded.`,
        rows,
        ratios: [
          { name: 'crawlfleet / best PlaywrightCrawler', value: own! / Math.max(...peers), target: 'at least 2.5' },
        ],
      };
    } finally {
      await stop();
    }
  },
};
