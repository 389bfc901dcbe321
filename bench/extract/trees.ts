/** The memory and the time of the extractor compared with parsers that build a tree of the page. */
import { fileURLToPath } from 'node:url';
import { type Bench, type BenchRatio, fastestRows, measureInTurn, median } from '../frame.ts';
import { measurePages } from '../pages.ts';
import type { CaseName, PageName } from './extract-case.ts';

const LARGE_PAGES = 5;
const TYPICAL_PAGES = 2_000;
const ROUNDS = 3;
const CASE = fileURLToPath(new URL('extract-case.ts', import.meta.url));

const STREAMING: CaseName = 'extractor';
const PEERS: readonly CaseName[] = ['htmlparser2 tree', 'parse5'];
const ALL: readonly CaseName[] = [STREAMING, 'extractor with XPath', ...PEERS];

const measure = (names: readonly CaseName[], page: PageName, pages: number) =>
  measureInTurn(
    Object.fromEntries(names.map((name) => [name, () => measurePages(CASE, [name, String(pages), page])])),
    ROUNDS,
  );

/** By case, the median of all rounds. */
async function peakRss(names: readonly CaseName[], page: PageName): Promise<Record<string, number>> {
  const rounds = Object.entries(await measure(names, page, LARGE_PAGES));
  return Object.fromEntries(rounds.map(([name, all]) => [name, median(all.map(({ maxRssMb }) => maxRssMb))]));
}

export const bench: Bench = {
  title: 'Extraction beside parsers that build a tree: memory of pages of 5 MB, time of a typical one',
  async run() {
    const large = await peakRss(ALL, 'large');
    const dense = await peakRss([STREAMING, ...PEERS], 'dense');
    const typical = fastestRows(await measure(ALL, 'typical', TYPICAL_PAGES));
    const cpuMs = Object.fromEntries(typical.map(({ name, figures }) => [name, 1_000 / figures.pagesPerCpuSecond!]));
    const ratios = (what: string, figures: Record<string, number>): BenchRatio[] =>
      PEERS.map((name) => ({ name: `${what}: ${name} / extractor`, value: figures[name]! / figures[STREAMING]! }));
    return {
      about:
        `\`extractor\` takes six fields by a mapping, \`extractor with XPath\` one of them from a tree of its own; the peers only build their tree ` +
        `(\`htmlparser2\` with \`domhandler\`, and \`parse5\`) and take nothing. Memory is the peak of a process with an instance's heap limits that reads ${LARGE_PAGES} pages of 5 MB, the ` +
        `median of ${ROUNDS} rounds in turn: like the demo shop's (\`large\`), and with an element per nine bytes (\`dense\`), which has more ` +
        `elements than the extractor's own tree may have. Time is that of a 40 KB page with as many elements as the web's median, ` +
        `${TYPICAL_PAGES} pages after a warm-up, the fastest round.`,
      rows: ALL.map((name) => ({
        name,
        figures: {
          maxRssMbLarge: large[name]!,
          ...(dense[name] === undefined ? {} : { maxRssMbDense: dense[name] }),
          cpuMsPerTypicalPage: cpuMs[name]!,
        },
      })),
      ratios: [
        ...ratios('memory, large pages', large),
        ...ratios('memory, dense pages', dense),
        ...ratios('CPU, a typical page', cpuMs),
      ],
    };
  },
};
