/** What every bench stands on: run a program and measure it from inside its own process, medians, ratios, result files. */
import { spawn } from 'node:child_process';
import { text } from 'node:stream/consumers';
import type { Readable } from 'node:stream';
import { fileURLToPath } from 'node:url';

/** What one run of a program cost, measured by the kernel for that process alone. */
export interface Usage {
  /** From its start to its exit, seen from here. */
  wallMs: number;
  /** User and system time of all its threads. */
  cpuMs: number;
  /** Largest resident set. */
  maxRssBytes: number;
}

export interface Measured extends Usage {
  stdout: string;
}

export interface BenchRow {
  name: string;
  /** Figures with their unit in the name: `pagesPerSecond`, `maxRssMb`. */
  figures: Record<string, number>;
}

export interface BenchRatio {
  name: string;
  value: number;
  /** What is to be reached, in words: "at least 0.6". */
  target?: string;
}

export interface BenchResult {
  /** What was compared, on what, in a sentence or two. */
  about: string;
  rows: BenchRow[];
  /** The point of the bench: both sides measured in one run, so that the machine cancels out. */
  ratios: BenchRatio[];
}

/** One bench: a file in bench/ that exports `bench` and is named in run.ts. */
export interface Bench {
  title: string;
  run(): Promise<BenchResult>;
}

const REPORTER = fileURLToPath(new URL('report-usage.ts', import.meta.url));

/**
 * Runs a Node program to its end and measures it. Throws when it fails: a program that went wrong has no figures.
 * Its stderr is passed on.
 */
export async function measureProgram(file: string, args: readonly string[] = []): Promise<Measured> {
  const startMs = performance.now();
  const child = spawn(process.execPath, ['--import', REPORTER, file, ...args], {
    stdio: ['ignore', 'pipe', 'inherit', 'pipe'],
  });
  const [stdout, usage, exitCode] = await Promise.all([
    text(child.stdout!),
    text(child.stdio[3] as Readable),
    new Promise<number | null>((resolve, reject) => child.on('error', reject).on('close', resolve)),
  ]);
  const wallMs = performance.now() - startMs;
  if (exitCode !== 0 || usage === '') throw new Error(`${file} ${args.join(' ')} ended with exit code ${exitCode}`);
  return { ...(JSON.parse(usage) as Omit<Usage, 'wallMs'>), wallMs, stdout };
}

/**
 * Measures several cases `rounds` times in turn (a, b, a, b …), so that a slow minute of the machine hits them all alike.
 */
export async function measureInTurn<T>(
  cases: Record<string, () => Promise<T>>,
  rounds: number,
): Promise<Record<string, T[]>> {
  const results: Record<string, T[]> = Object.fromEntries(Object.keys(cases).map((name) => [name, []]));
  for (let round = 0; round < rounds; round++) {
    for (const [name, measure] of Object.entries(cases)) results[name]!.push(await measure());
  }
  return results;
}

/** The middle value; the mean of the two middle ones of an even number. */
export function median(values: readonly number[]): number {
  if (values.length === 0) throw new Error('no values to take the median of');
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length / 2;
  return sorted.length % 2 === 1 ? sorted[Math.floor(middle)]! : (sorted[middle - 1]! + sorted[middle]!) / 2;
}
