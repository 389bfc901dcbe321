/** HTTP and extraction together, pacing off: compared with the underlying client and parser, and with Crawlee. */
import { fileURLToPath } from 'node:url';
import { Parser } from 'htmlparser2';
import { renderPage } from '../../test/support/shop/page.ts';
import type { ShopProduct } from '../../test/support/shop/languages.ts';
import { expectedProduct, productIds } from '../../test/support/shop/product.ts';
import { type Bench, fastestRows, measureInTurn, startProgram } from '../frame.ts';
import { measurePages } from '../pages.ts';
import { peerProgram } from '../peers/install.ts';
import type { FetchCase } from './fetch-case.ts';
import { renderTypicalPage } from './typical-page.ts';

/** About as long for each, so that all are measured over as many quiet and busy moments. */
const PAGES = 6_000;
const PEER_PAGES = 500;
const DIFFERENT = 100;
const ROUNDS = 6;
const CASE = fileURLToPath(new URL('fetch-case.ts', import.meta.url));
export const PAGE_SERVER = fileURLToPath(new URL('page-server.ts', import.meta.url));

/** By their folder on the page server. */
const SHAPES = { item: 'dense', typical: 'typical' } as const;
type Shape = keyof typeof SHAPES;

export const bench: Bench = {
  title: 'Fetching and extracting: six fields from product pages of 40 KB over HTTP',
  async run() {
    const crawlee = peerProgram('cheerio-crawler.mjs');
    const { line: origin, stop } = await startProgram(PAGE_SERVER, [String(DIFFERENT)]);
    try {
      const casesOf = (shape: Shape): Record<string, () => ReturnType<typeof measurePages>> => {
        const own = (name: FetchCase) => () =>
          measurePages(CASE, [name, origin, shape, String(PAGES), String(DIFFERENT)]);
        const of = SHAPES[shape];
        return {
          [`undici, ${of}`]: own('undici'),
          [`undici + SAX, ${of}`]: own('sax'),
          [`crawlfleet, ${of}`]: own('crawlfleet'),
          [`CheerioCrawler, ${of}`]: () =>
            measurePages(crawlee, [`${origin}/${shape}`, String(PEER_PAGES), String(DIFFERENT)]),
        };
      };
      const rows = fastestRows(await measureInTurn({ ...casesOf('item'), ...casesOf('typical') }, ROUNDS));
      const speed = (name: string): number => rows.find((row) => row.name === name)!.figures.pagesPerCpuSecond!;
      return {
        about:
          `\`undici\` drops the body; \`undici + SAX\` reads the same six values with handlers written for this one page; ` +
          `\`crawlfleet\` is the fetcher of an instance with its guard, decoders and a mapping, without the pace; ` +
          `\`CheerioCrawler\` is Crawlee 3.18 with sessions, storage and log off. \`dense\` is the demo shop's page ` +
          `(${describePage(renderPage)}), \`typical\` one as dense as the web's median (${describePage(renderTypicalPage)}). ` +
          `Each in its own process, the server in another, the fastest of ${ROUNDS} rounds in turn.`,
        rows,
        ratios: Object.values(SHAPES).flatMap((of) => [
          {
            name: `crawlfleet / CheerioCrawler, ${of}`,
            value: speed(`crawlfleet, ${of}`) / speed(`CheerioCrawler, ${of}`),
            target: 'at least 10',
          },
          {
            name: `crawlfleet / undici + SAX, ${of}`,
            value: speed(`crawlfleet, ${of}`) / speed(`undici + SAX, ${of}`),
            target: 'at least 0.6',
          },
          {
            name: `crawlfleet / undici without parsing, ${of}`,
            value: speed(`crawlfleet, ${of}`) / speed(`undici, ${of}`),
          },
        ]),
      };
    } finally {
      await stop();
    }
  },
};

function describePage(render: (product: ShopProduct) => string): string {
  const page = render(expectedProduct(1, productIds(1)[0]!));
  let elements = 0;
  new Parser({ onopentag: () => void elements++ }).end(page);
  return `${Math.round(Buffer.byteLength(page) / 1_000)} KB, ${elements} elements`;
}
