/** Shared by all benches: running a program and measuring it from inside its process, medians, ratios, result files. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { text } from 'node:stream/consumers';
import type { Readable } from 'node:stream';
import { fileURLToPath } from 'node:url';

/** The cost of one run of a program, measured by the kernel for that process only. */
export interface Usage {
  /** From its start to its exit, measured here. */
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
  /** The target as text: "at least 0.6". */
  target?: string;
}

export interface BenchResult {
  /** What was compared, and on what, in one or two sentences. */
  about: string;
  rows: BenchRow[];
  /** The result of the bench: both sides are measured in one run, so that the machine cancels out. */
  ratios: BenchRatio[];
}

/** One bench: a file in bench/ that exports `bench` and is named in run.ts. */
export interface Bench {
  title: string;
  run(): Promise<BenchResult>;
}

const REPORTER = fileURLToPath(new URL('report-usage.ts', import.meta.url));

/**
 * Runs a Node program to its end and measures it. Throws when it fails, because a failed program has no figures.
 * Forwards its stderr.
 * @param flags of Node
 */
export async function measureProgram(
  file: string,
  args: readonly string[] = [],
  flags: readonly string[] = [],
): Promise<Measured> {
  const startMs = performance.now();
  const child = spawn(process.execPath, [...flags, '--import', REPORTER, file, ...args], {
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

/** Starts a Node program that prints one line when it is ready, and ends when its stdin closes. */
export async function startProgram(
  file: string,
  args: readonly string[],
): Promise<{ line: string; stop: () => Promise<void> }> {
  const child = spawn(process.execPath, [file, ...args], { stdio: ['pipe', 'pipe', 'inherit'] });
  const exited = once(child, 'exit');
  const [line] = (await Promise.race([
    once(createInterface(child.stdout), 'line'),
    exited.then(() => Promise.reject(new Error(`${file} ended before it was ready`))),
  ])) as [string];
  return {
    line,
    async stop() {
      child.stdin.end();
      await exited;
    },
  };
}

/**
 * Measures several cases `rounds` times in turn (a, b, a, b …), so that a slow minute of the machine affects all of
 * them.
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

/**
 * A row for each case: the round that took the least processor time. Whatever else runs on the host only adds to it: on
 * a shared one the same code takes up to twice as long for minutes, and a median compares minutes, not programs.
 */
export function fastestRows<T extends { pagesPerCpuSecond: number }>(results: Record<string, T[]>): BenchRow[] {
  return Object.entries(results).map(([name, rounds]) => {
    const fastest = rounds.reduce((best, round) => (round.pagesPerCpuSecond > best.pagesPerCpuSecond ? round : best));
    return { name, figures: { ...fastest } };
  });
}

/** The middle value, or the mean of the two middle ones. */
export function median(values: readonly number[]): number {
  if (values.length === 0) throw new Error('no values to take the median of');
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length / 2;
  return sorted.length % 2 === 1 ? sorted[Math.floor(middle)]! : (sorted[middle - 1]! + sorted[middle]!) / 2;
}
