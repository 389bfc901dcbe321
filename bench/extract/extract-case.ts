/** One case of the extract bench, as a process: `extract-case.ts parser|handwritten|extractor PAGES`. Prints its figures. */
import { readMapping } from '../../orchestrator/app/config/read-mapping.ts';
import { compileMapping } from '../../crawl-api/extract/compile-mapping.ts';
import { PageExtractor } from '../../crawl-api/extract/page-extractor.ts';
import { renderPage } from '../../test/support/shop/page.ts';
import { SHOP_MAPPING, expectedProduct, productIds } from '../../test/support/shop/product.ts';
import { checkRow, printFigures } from '../pages.ts';
import { HandwrittenReader, countEvents } from './peers.ts';

export type CaseName = 'parser' | 'handwritten' | 'extractor';
const PIECE = 16_384;
const WARM_UP = 4_000;
const DIFFERENT_PAGES = 100;

const MAPPING = { fields: { ...SHOP_MAPPING.fields, stock: { css: '.product .stock' } } };

type ReadPage = (pieces: readonly string[]) => unknown;

const CASES: Record<CaseName, () => Promise<ReadPage>> = {
  parser: async () => countEvents,
  handwritten: async () => (pieces) => new HandwrittenReader().read(pieces),
  extractor: async () => {
    const mapping = await compileMapping(readMapping(MAPPING).mapping);
    return (pieces) => {
      const extractor = new PageExtractor(mapping, 'html', 'https://shop.example/product/1');
      for (const piece of pieces) extractor.write(piece);
      return extractor.end().rows?.[0]?.row;
    };
  },
};

const [name, pages] = process.argv.slice(2) as [CaseName, string];
const read = await CASES[name]();
const ids = productIds(DIFFERENT_PAGES);
const inputs = ids.map((id) => cut(renderPage(expectedProduct(1, id))));

for (const [i, id] of ids.entries()) if (name !== 'parser') checkRow(name, id, read(inputs[i]!));
for (let i = 0; i < WARM_UP; i++) read(inputs[i % DIFFERENT_PAGES]!);
await printFigures(Number(pages), () => {
  for (let i = 0; i < Number(pages); i++) read(inputs[i % DIFFERENT_PAGES]!);
});

function cut(page: string): string[] {
  return Array.from({ length: Math.ceil(page.length / PIECE) }, (_, i) => page.slice(i * PIECE, (i + 1) * PIECE));
}
