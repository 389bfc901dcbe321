/** What an instance's queue costs with many products, and the start of a process from its journal. */
import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { NODE_FLAGS } from '../../shared/domain/instance-process.ts';
import { tempDir } from '../../test/support/temp-dir.ts';
import { type Bench, type BenchRow, measureProgram } from '../frame.ts';

const SIZES = [
  { products: 25_000, hosts: 1_250 },
  { products: 250_000, hosts: 12_500 },
];
const KINDS = ['look', 'started', 'result', 'heartbeat', 'offer', 'grant', 'transfer', 'cut', 'acknowledge'];
const MAX_MS = 5;
const MAX_RSS_MB = 200;
const MAX_RESTART_MS = 10_000;
const CASE = fileURLToPath(new URL('queue-case.ts', import.meta.url));

export const bench: Bench = {
  title: 'The queue of an instance with 250,000 products of 12,500 hosts',
  async run() {
    const rows: BenchRow[] = [];
    for (const { products, hosts } of SIZES) {
      const folder = tempDir('crawlfleet-bench-queue-');
      try {
        const args = [String(products), String(hosts), folder.path];
        const crawl = await measureProgram(CASE, ['crawl', ...args], NODE_FLAGS);
        const journalMb = statSync(join(folder.path, 'journal')).size / 1e6;
        const restart = await measureProgram(CASE, ['restart', ...args], NODE_FLAGS);
        const { openMs } = JSON.parse(restart.stdout) as { openMs: number };
        const figures = JSON.parse(crawl.stdout) as Record<string, number>;
        rows.push({
          name: `${products / 1_000},000 products`,
          figures: {
            ...figures,
            maxRssMb: crawl.maxRssBytes / 1e6,
            journalMb,
            restartMs: openMs,
            readMs: timeToParse(folder),
          },
        });
      } finally {
        folder.remove();
      }
    }
    const [few, many] = rows.map(({ figures }) => figures) as [Record<string, number>, Record<string, number>];
    return {
      about:
        'The queue on a journal on disk, without pages: it is granted all products in chunks of 500, returns 20 chunks, and crawls the rest, a page of each host in turn. Milliseconds of ' +
        'processor time for each piece of work (for a look, a started request and a result: of time); `readMs` is what reading the lines of the journal as JSON takes by itself.',
      rows,
      ratios: [
        ...KINDS.map((kind) => ({
          name: `${kind}: 99th percentile / ${MAX_MS} ms`,
          value: many[`${kind}P99Ms`]! / MAX_MS,
          target: 'at most 1',
        })),
        ...['look', 'heartbeat', 'grant', 'transfer'].map((kind) => ({
          name: `${kind}: 250,000 products / 25,000`,
          value: many[`${kind}P99Ms`]! / few[`${kind}P99Ms`]!,
        })),
        { name: `memory of the process / ${MAX_RSS_MB} MB`, value: many.maxRssMb! / MAX_RSS_MB, target: 'at most 1' },
        { name: `restart / ${MAX_RESTART_MS / 1_000} s`, value: many.restartMs! / MAX_RESTART_MS, target: 'at most 1' },
        { name: 'restart / reading the journal as JSON', value: many.restartMs! / many.readMs! },
      ],
    };
  },
};

/** The records' JSON alone, each after a head of 8 bytes that begins with its length. */
function timeToParse(folder: { path: string }): number {
  const startMs = performance.now();
  const bytes = readFileSync(join(folder.path, 'journal'));
  for (let at = 0; at < bytes.length;) {
    const length = bytes.readUInt32LE(at);
    JSON.parse(bytes.toString('utf8', at + 8, at + 8 + length));
    at += 8 + length;
  }
  return performance.now() - startMs;
}
