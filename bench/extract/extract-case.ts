/**
 * One case of the benches of extraction, as a process: `extract-case.ts CASE PAGES shop|typical|large|dense`. Prints
 * its figures.
 */
import { readMapping } from '../../orchestrator/core/config/read-mapping.ts';
import { compileMapping } from '../../crawl-api/extract/compile-mapping.ts';
import { PageExtractor } from '../../crawl-api/extract/page-extractor.ts';
import { renderPage } from '../../test/support/shop/page.ts';
import type { ShopProduct } from '../../test/support/shop/languages.ts';
import { SHOP_MAPPING, expectedProduct, productIds } from '../../test/support/shop/product.ts';
import { renderTypicalPage } from '../fetch/typical-page.ts';
import { checkRow, printFigures } from '../pages.ts';
import { buildParse5Tree, buildTree, countEvents, HandwrittenReader } from './peers.ts';

export type CaseName = 'parser' | 'handwritten' | 'extractor' | 'extractor with XPath' | 'htmlparser2 tree' | 'parse5';
export type PageName = 'shop' | 'typical' | 'large' | 'dense';
const PIECE = 16_384;
const WARM_UP = 4_000;
const DIFFERENT_PAGES = 100;
/** `site.max_page_bytes` by default. */
const LARGE_PAGE_CHARS = 5_000_000;
/** An element per nine bytes: a table of figures. */
const DENSE = `<tr>${'<td>1</td><td><b>2</b></td>'.repeat(10)}</tr>\n`;

const mappingWith = (stock: object): object => ({ fields: { ...SHOP_MAPPING.fields, stock } });

type ReadPage = (pieces: readonly string[]) => unknown;

const CASES: Record<CaseName, () => Promise<ReadPage>> = {
  parser: async () => countEvents,
  handwritten: async () => (pieces) => new HandwrittenReader().read(pieces),
  'htmlparser2 tree': async () => buildTree,
  parse5: async () => buildParse5Tree,
  extractor: () => extract(mappingWith({ css: '.product .stock' })),
  'extractor with XPath': () => extract(mappingWith({ xpath: '//article/p[@class="stock"]' })),
};

async function extract(from: object): Promise<ReadPage> {
  const mapping = await compileMapping(readMapping(from).mapping);
  return (pieces) => {
    const extractor = new PageExtractor(mapping, 'html', 'https://shop.example/product/1');
    for (const piece of pieces) extractor.write(piece);
    return extractor.end().rows?.[0]?.row;
  };
}

const RENDER: Record<PageName, (product: ShopProduct) => string> = {
  shop: renderPage,
  typical: renderTypicalPage,
  large: (product) => renderLargePage(product, null),
  dense: (product) => renderLargePage(product, DENSE),
};
const READS_FIELDS: readonly CaseName[] = ['handwritten', 'extractor', 'extractor with XPath'];

const [name, pages, pageName] = process.argv.slice(2) as [CaseName, string, PageName];
const isLarge = pageName === 'large' || pageName === 'dense';
// Memory as on an instance.
if (isLarge) await import('../../crawl-api/heap-limits.ts');
const read = await CASES[name]();
const ids = productIds(isLarge ? 1 : DIFFERENT_PAGES);
const inputs = ids.map((id) => cut(RENDER[pageName](expectedProduct(1, id))));

// One large page shows its own memory only where none was read before.
if (!isLarge) {
  for (const [i, id] of ids.entries()) if (READS_FIELDS.includes(name)) checkRow(name, id, read(inputs[i]!));
  for (let i = 0; i < WARM_UP; i++) read(inputs[i % ids.length]!);
}
let last: unknown;
await printFigures(Number(pages), () => {
  for (let i = 0; i < Number(pages); i++) last = read(inputs[i % ids.length]!);
});
if (READS_FIELDS.includes(name)) checkRow(name, ids[(Number(pages) - 1) % ids.length]!, last);

/** The page of the shop with `filling` many times below the product; null: with what is there already. */
function renderLargePage(product: ShopProduct, filling: string | null): string {
  const page = renderPage(product);
  const end = page.indexOf('</main>');
  const below = filling ?? page.slice(page.indexOf('</article>') + '</article>'.length, end);
  return (
    page.slice(0, end) + below.repeat(Math.floor((LARGE_PAGE_CHARS - page.length) / below.length)) + page.slice(end)
  );
}

function cut(page: string): string[] {
  return Array.from({ length: Math.ceil(page.length / PIECE) }, (_, i) => page.slice(i * PIECE, (i + 1) * PIECE));
}
