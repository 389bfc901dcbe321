/** Rendering with a real browser, pacing off, against Crawlee with the same Chromium. */
import { fileURLToPath } from 'node:url';
import { chromium } from 'playwright';
import { findChromium } from '../../shared/adapters/find-chromium.ts';
import { startPageServer } from '../fetch/start-page-server.ts';
import { type Bench, measureInTurn, measureProgram, median } from '../frame.ts';
import { peerProgram } from '../peers/install.ts';

const PAGES = 50;
const DIFFERENT = 50;
const ROUNDS = 2;
const CASE = fileURLToPath(new URL('browser-case.ts', import.meta.url));

interface Figures {
  pagesPerSecond: number;
  pagesPerCpuSecond: number;
}

export const bench: Bench = {
  title: 'Rendering: six fields from product pages of 40 KB with Chromium',
  async run() {
    const crawlee = peerProgram('playwright-crawler.mjs');
    const executable = findChromium({ playwrightPath: () => chromium.executablePath() });
    const server = await startPageServer(DIFFERENT);
    const measure = async (file: string, ...more: string[]): Promise<Figures> => {
      const { stdout } = await measureProgram(file, [
        executable,
        server.origin,
        String(PAGES),
        String(DIFFERENT),
        ...more,
      ]);
      return JSON.parse(stdout) as Figures;
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
      const rows = Object.entries(results).map(([name, rounds]) => ({
        name,
        figures: {
          pagesPerCpuSecond: median(rounds.map((r) => r.pagesPerCpuSecond)),
          pagesPerSecond: median(rounds.map((r) => r.pagesPerSecond)),
        },
      }));
      const [own, ...peers] = rows.map((row) => row.figures.pagesPerCpuSecond);
      return {
        about:
          `Each renders ${PAGES} pages with ${executable} after a warm-up, medians of ${ROUNDS} rounds in turn. Processor time is that of ` +
          `Node and of all processes of the browser. \`crawlfleet\` as on an instance: one page, everything through its filter ` +
          `proxy; but without a pace, so that the next page takes the last one's place and none is cleared away in between. ` +
          `\`PlaywrightCrawler\` blocks requests by URL, has no fingerprints and one context, and reads all fields in ` +
          `one evaluation at DOMContentLoaded.`,
        rows,
        ratios: [
          { name: 'crawlfleet / best PlaywrightCrawler', value: own! / Math.max(...peers), target: 'at least 2.5' },
        ],
      };
    } finally {
      await server.stop();
    }
  },
};
