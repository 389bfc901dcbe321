/** Choosing the section of a mapping of 1,000 for a URL. */
import { fileURLToPath } from 'node:url';
import { type Bench, type BenchRow, measureProgram } from '../frame.ts';

const SECTIONS = 1_000;
const MAX_MS = 0.1;
const CASE = fileURLToPath(new URL('sections-case.ts', import.meta.url));
const CASES = { host: 'one host each', folder: 'one host, a folder each', none: 'a URL of no section' };

export const bench: Bench = {
  title: 'The section of a mapping of 1,000 for a URL',
  async run() {
    const rows: BenchRow[] = [];
    for (const [kind, name] of Object.entries(CASES)) {
      const { stdout, maxRssBytes } = await measureProgram(CASE, [kind, String(SECTIONS)]);
      const figures = JSON.parse(stdout) as Record<string, number>;
      rows.push({ name, figures: { ...figures, maxRssMb: maxRssBytes / 1e6 } });
    }
    return {
      about:
        `\`chooseUs\` is the processor time for one URL of a random section, \`patternsUs\` that of the patterns alone, one after the other until one matches; ` +
        `medians of 7 rounds in one process. \`compileMs\` is what an instance needs for the mapping at its start; \`maxRssMb\` is the whole process.`,
      rows,
      ratios: rows.flatMap(({ name, figures }) => [
        { name: `${name}: choosing / 0.1 ms`, value: figures.chooseUs! / (1_000 * MAX_MS), target: 'at most 1' },
        { name: `${name}: choosing / the patterns alone`, value: figures.chooseUs! / figures.patternsUs! },
      ]),
    };
  },
};
