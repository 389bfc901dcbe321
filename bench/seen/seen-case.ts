/** One case of the seen bench, in a process of its own: fills a set of seen URLs, asks it, and prints its figures. */
import { BloomSeen } from '../../orchestrator/features/discovery/seen-urls.ts';
import { median } from '../frame.ts';
import { hashOf } from '../../orchestrator/core/db/key-hash.ts';

const [kind, urlsText] = process.argv.slice(2);
const URLS = Number(urlsText);
/** Answers are timed over this many URLs, half of them seen, in several rounds. */
const ASKED = 1_000_000;
const ROUNDS = 7;

interface Seen {
  add(hash: Buffer): unknown;
  has(hash: Buffer): boolean;
}

const keyOf = (i: number): string => `/catalogue/shoes/item-${i}?colour=${i % 17}&size=${i % 41}`;
const unseenKeyOf = (i: number): string => `/catalogue/hats/item-${i}?colour=${i % 17}&size=${i % 41}`;

/** The exact peer: what a `Set` can hold are strings. */
class ExactSeen implements Seen {
  readonly #hashes = new Set<string>();

  add(hash: Buffer): void {
    this.#hashes.add(hash.toString('latin1'));
  }

  has(hash: Buffer): boolean {
    return this.#hashes.has(hash.toString('latin1'));
  }
}

/** Of this thread, so that other work on the machine does not count. */
function cpuNs(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) * 1_000;
}

/** Nanoseconds per answer, the median of several rounds. */
function timeAnswers(answer: (i: number) => boolean): number {
  const rounds = Array.from({ length: ROUNDS }, () => {
    let hits = 0;
    const startNs = cpuNs();
    for (let i = 0; i < ASKED; i++) if (answer(i)) hits++;
    const ns = (cpuNs() - startNs) / ASKED;
    if (hits < ASKED / 2) throw new Error(`only ${hits} of ${ASKED / 2} seen URLs were known`);
    return ns;
  });
  return median(rounds);
}

function measure(seen: Seen): Record<string, number> {
  const startNs = cpuNs();
  for (let i = 0; i < URLS; i++) seen.add(hashOf(keyOf(i)));
  const fillNs = (cpuNs() - startNs) / URLS;
  let falsePositives = 0;
  for (let i = 0; i < URLS; i++) if (seen.has(hashOf(unseenKeyOf(i)))) falsePositives++;
  // Spread over the whole set.
  const asked = Array.from({ length: ASKED }, (_, i) => (i % 2 === 0 ? keyOf((i * 9) % URLS) : unseenKeyOf(i)));
  const hashes = asked.map(hashOf);
  return {
    falsePositives: falsePositives / URLS,
    hasNs: timeAnswers((i) => seen.has(hashes[i]!)),
    hashAndHasNs: timeAnswers((i) => seen.has(hashOf(asked[i]!))),
    hashAndAddNs: fillNs,
  };
}

let figures: Record<string, number>;
if (kind === 'bloom') {
  const seen = new BloomSeen(URLS);
  figures = measure(seen);
  figures.ownRate = seen.falsePositiveRate();
  figures.storedMb = [...seen.pages()].reduce((sum, page) => sum + page.length, 0) / 1e6;
} else {
  figures = measure(new ExactSeen());
}
process.stdout.write(JSON.stringify(figures));
