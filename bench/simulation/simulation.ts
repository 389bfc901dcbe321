/** Whole runs on the virtual clock with the real rules, compared with a loop of as many events without decisions. */
import { fileURLToPath } from 'node:url';
import { type Bench, type BenchResult, measureProgram, median } from '../frame.ts';
import type { CaseFigures } from './simulation-case.ts';

export const bench: Bench = { title: 'Simulation: runs of four hours on a virtual clock', run };

const CASE = fileURLToPath(new URL('simulation-case.ts', import.meta.url));
/** The large one takes long, so it runs only once. */
const SIZES = [
  { products: 30_000, instances: 32, rounds: 5, withinMs: 1_500 },
  { products: 1_000_000, instances: 2_900, rounds: 1, withinMs: 90_000 },
] as const;

async function run(): Promise<BenchResult> {
  const result: BenchResult = {
    about:
      '`simulation` is a calm run from the first claim to the last terminated instance: decide, the orders and the shares are the real ones. `skeleton` puts as many events through the same queue and does nothing else. Processor time of the loop, without the start of the process; the small one is the median of 5 processes. The records at many hosts are a night of 24 hours, 15 % of the hosts without an answer.',
    rows: [],
    ratios: [],
  };
  for (const { products, instances, rounds, withinMs } of SIZES) {
    const size = `${products.toLocaleString('en-US')} products, ${instances.toLocaleString('en-US')} instances`;
    const runs = await repeat(rounds, ['run', `${products}`, `${instances}`]);
    const { events, decisions } = runs[0]!;
    const bare = await repeat(rounds, ['skeleton', `${products}`, `${instances}`, `${events}`]);
    const cpuMs = median(runs.map((r) => r.cpuMs));
    const skeletonMs = median(bare.map((r) => r.cpuMs));
    result.rows.push({ name: `simulation, ${size}`, figures: { cpuMs, events, decisions } });
    result.rows.push({ name: `skeleton, ${size}`, figures: { cpuMs: skeletonMs, events } });
    result.ratios.push({
      name: `CPU time / ${withinMs / 1_000} s, ${size}`,
      value: cpuMs / withinMs,
      target: 'below 1',
    });
    result.ratios.push({ name: `simulation / skeleton, ${size}`, value: cpuMs / skeletonMs });
    if (products === RECORDS) await addHosts(result, cpuMs);
  }
  return result;
}

/** As many records as the large run has products. */
const RECORDS = 1_000_000;
const HOSTS = 50_000;

async function addHosts(result: BenchResult, siteMs: number): Promise<void> {
  const [hosts] = await repeat(1, ['hosts', `${RECORDS}`, `${HOSTS}`]);
  if (hosts === undefined) return;
  const { cpuMs, events, decisions } = hosts;
  const size = `${RECORDS.toLocaleString('en-US')} records at ${HOSTS.toLocaleString('en-US')} hosts`;
  result.rows.push({ name: `simulation, ${size}`, figures: { cpuMs, events, decisions } });
  result.ratios.push({ name: `${size} / products of one site`, value: cpuMs / siteMs, target: 'at most 1.5' });
}

async function repeat(rounds: number, args: readonly string[]): Promise<CaseFigures[]> {
  const figures: CaseFigures[] = [];
  for (let round = 0; round < rounds; round++)
    figures.push(JSON.parse((await measureProgram(CASE, args)).stdout) as CaseFigures);
  return figures;
}
