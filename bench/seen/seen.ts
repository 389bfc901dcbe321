/** Which URLs were seen before: the Bloom filter of discovery at 10,000,000 URLs against its limits. */
import { fileURLToPath } from 'node:url';
import { type Bench, type BenchRow, measureProgram } from '../frame.ts';

const URLS = 10_000_000;
const LIMITS = { falsePositives: 0.01, storedMb: 14, answerNs: 1_000 };
const CASE = fileURLToPath(new URL('seen-case.ts', import.meta.url));

export const bench: Bench = {
  title: 'Seen URLs: 10,000,000 in a Bloom filter',
  async run() {
    const bloom = await row('BloomSeen', 'bloom');
    const exact = await row('Set of hashes', 'exact');
    const { falsePositives, storedMb, hasNs, hashAndHasNs } = bloom.figures;
    const ratio = (name: string, value: number) => ({ name, value, target: 'at most 1' });
    return {
      about:
        `${URLS} URLs are added, then as many others are looked up, which gives \`falsePositives\`; \`ownRate\` is the filter's own estimate. ` +
        'Times are processor time; answers are medians of 7 rounds over 1000000 URLs, every second of them seen, on the full set. `storedMb` is what is kept in memory and in the database; `maxRssMb` is the whole process with the URLs that it looks up. ' +
        'The `Set` is the exact alternative in one process. `bloom-filters` from npm (MIT, 3.0.4) is not measured, because it is not a dependency: it hashes each key again, although ours already is a hash, stores itself as JSON, and brings eight libraries for a hundred lines.',
      rows: [bloom, exact],
      ratios: [
        ratio('false positives / 1 %', falsePositives! / LIMITS.falsePositives),
        ratio('stored size / 14 MB', storedMb! / LIMITS.storedMb),
        ratio('an answer to a hash / 1 microsecond', hasNs! / LIMITS.answerNs),
        ratio('an answer to a URL, its SHA-256 included / 1 microsecond', hashAndHasNs! / LIMITS.answerNs),
      ],
    };
  },
};

async function row(name: string, kind: string): Promise<BenchRow> {
  const { stdout, maxRssBytes } = await measureProgram(CASE, [kind, String(URLS)]);
  return { name, figures: { ...(JSON.parse(stdout) as Record<string, number>), maxRssMb: maxRssBytes / 1e6 } };
}
