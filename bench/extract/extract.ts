/** The cost of the extractor compared with htmlparser2, bare and with handlers written for the page. */
import { fileURLToPath } from 'node:url';
import { type Bench, fastestRows, measureInTurn } from '../frame.ts';
import { measurePages } from '../pages.ts';
import type { CaseName } from './extract-case.ts';

const PAGES = 20_000;
const ROUNDS = 5;
const CASE = fileURLToPath(new URL('extract-case.ts', import.meta.url));

export const bench: Bench = {
  title: 'Extraction: six fields from a product page of 40 KB',
  async run() {
    const measure = (name: CaseName) => () => measurePages(CASE, [name, String(PAGES), 'shop']);
    const results = await measureInTurn(
      { parser: measure('parser'), handwritten: measure('handwritten'), extractor: measure('extractor') },
      ROUNDS,
    );
    const rows = fastestRows(results);
    const speed = (name: string): number => rows.find((row) => row.name === name)!.figures.pagesPerCpuSecond!;
    return {
      about:
        `\`parser\` is htmlparser2 with handlers that only count; \`handwritten\` takes the same six values with handlers ` +
        `written for this one page; \`extractor\` takes them by a mapping. Each in its own process, ${PAGES} pages in ` +
        `pieces of 16 KB after a warm-up, the fastest of ${ROUNDS} rounds in turn.`,
      rows,
      ratios: [
        { name: 'extractor / bare parser', value: speed('extractor') / speed('parser') },
        { name: 'extractor / handwritten', value: speed('extractor') / speed('handwritten'), target: 'at least 0.75' },
      ],
    };
  },
};
