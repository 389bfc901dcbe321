/** What one part costs the main server, whatever an instance has put into it. */
import { createWriteStream, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { fileURLToPath } from 'node:url';
import { createGzip } from 'node:zlib';
import { PART_PRODUCTS } from '../../shared/wire/part.ts';
import { type Bench, measureProgram } from '../frame.ts';
import { resultOf } from './bench-run.ts';

const CASE = fileURLToPath(new URL('reading-case.ts', import.meta.url));
/** What the main server may take for one. */
export const PART_MEMORY_MB = 64;

const begin = (n: number): string =>
  `{"n":${n},"id":"p${n}","url":"https://shop.example/","at":"2026-11-21T02:15:30.123Z","attempts":1,"outcome":"stored","rows":[`;
const numbers = Array.from({ length: PART_PRODUCTS }, (_, i) => i + 1);

function* again(text: string, bytes: number): Generator<string> {
  const many = text.repeat(Math.ceil(100_000 / text.length));
  for (let n = 0; n < bytes; n += many.length) yield many;
}

/** Honest ones first. */
export const PARTS = {
  'usual rows': () => numbers.map((n) => `${JSON.stringify(resultOf(n, {}))}\n`),
  'rows that compress 300:1': () =>
    numbers.map((n) => `${begin(n)}{"key":null,"row":{"title":"${'hand-made ceramic cup '.repeat(700)}"}}]}\n`),
  'one product of 8 MB': () => [
    `${begin(1)}{"key":"0","row":{"title":"日本"}}`,
    ...numbers.slice(0, 120).map((n) => `,{"key":"${n}","row":{"title":"${'x'.repeat(65_000)}"}}`),
    ']}\n',
  ],
  'lists of empty texts': () =>
    numbers.map((n) => `${begin(n)}{"key":null,"row":{"a":[${'"",'.repeat(66_000)}""]}}]}\n`),
  'millions of empty rows': function* () {
    for (let n = 1; n <= 12; n++) {
      yield `${begin(n)}{"key":null,"row":{}}`;
      yield* again(',{"key":null,"row":{}}', 8e6);
      yield ']}\n';
    }
  },
  'rows of different columns': () => [
    begin(1),
    numbers
      .map((n) => {
        const columns = numbers.slice(0, 280).map((i) => `"c${(n * 37 + i * 101) % 2_400}":1`);
        return `{"key":"${n}","row":{${columns.join(',')}}}`;
      })
      .join(','),
    ']}\n',
  ],
  'millions of small containers': function* () {
    yield `${begin(1)}{}`;
    yield* again(',{}', 11e6);
    yield ']}\n';
  },
  'millions of wrong rows': function* () {
    yield `${begin(1)}0`;
    yield* again(',0', 11e6);
    yield ']}\n';
  },
  'deep nesting': () => again('[', 11e6),
  'one endless line': () => again('x', 150e6),
} satisfies Record<string, () => Iterable<string>>;

/** Reads the part in a process of its own. `results`: of the products read before its fault, if any. */
export async function measurePart(lines: Iterable<string>): Promise<{
  figures: { packedKb: number; peakMb: number; ms: number };
  results: number;
  fault: string | null;
}> {
  const folder = mkdtempSync(join(tmpdir(), 'crawlfleet-part-'));
  try {
    const file = join(folder, 'part.ndjson.gz');
    await pipeline(Readable.from(lines), createGzip(), createWriteStream(file));
    const { stdout } = await measureProgram(CASE, [file]);
    return JSON.parse(stdout) as Awaited<ReturnType<typeof measurePart>>;
  } finally {
    rmSync(folder, { recursive: true });
  }
}

export const bench: Bench = {
  title: 'Reading one part, honest or not',
  async run() {
    const rows = [];
    for (const [name, lines] of Object.entries(PARTS)) {
      const { figures, results } = await measurePart(lines());
      rows.push({ name, figures: { ...figures, results } });
    }
    const peakMb = Math.max(...rows.map(({ figures }) => figures.peakMb));
    return {
      about:
        'A process with the memory settings of the main server reads one part from memory: hash, lines, values. `peakMb` is the growth of its largest resident set. ' +
        'The first three are what instances upload; the others are what a compromised instance could upload.',
      rows,
      ratios: [{ name: `largest growth / ${PART_MEMORY_MB} MB`, value: peakMb / PART_MEMORY_MB, target: 'below 1' }],
    };
  },
};
