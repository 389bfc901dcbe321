/** A dry run whose processes are measured while it works. */
import { globSync, readFileSync } from 'node:fs';
import type { RunReport } from '../orchestrator/control/model/report.ts';
import { endOf, type Fleet } from '../test/system/fleet.ts';

/** Longer than any run of a bench. */
export const RUN_LIMIT_MS = 30 * 60_000;

export interface WatchedRun {
  report: RunReport;
  wallMs: number;
  /** For the main server. */
  cpuMs: number;
  mainServerRssBytes: number;
  /** Largest resident set of any instance. */
  instanceRssBytes: number;
}

/** `run --dry-run --json`, with memory sampled while it runs; throws when it fails. */
export async function watchRun(fleet: Fleet): Promise<WatchedRun> {
  const startMs = performance.now();
  const run = fleet.start('run', '--dry-run', '--json');
  let own = { cpuMs: 0, peakRssBytes: 0 };
  let instanceRssBytes = 0;
  const watch = setInterval(() => {
    const now = readProcess(run.pid);
    if (now.cpuMs > 0) own = now;
    const instances = instancesOf(fleet.dir).map((pid) => readProcess(pid).peakRssBytes);
    instanceRssBytes = Math.max(instanceRssBytes, ...instances);
  }, 200);
  const { exitCode, report, stderr } = await endOf(run).finally(() => clearInterval(watch));
  if (exitCode !== 0) throw new Error(`the run ended with ${exitCode}: ${stderr.slice(-2_000)}`);
  const wallMs = performance.now() - startMs;
  return { report, wallMs, cpuMs: own.cpuMs, mainServerRssBytes: own.peakRssBytes, instanceRssBytes };
}

/** Clock ticks per second: 100 on every Linux that Node supports. */
const TICK_MS = 10;

/** CPU time and largest resident set of a process so far; zeros when it has ended. */
export function readProcess(pid: number): { cpuMs: number; peakRssBytes: number } {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    const peak = /VmHWM:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'));
    return { cpuMs: (Number(fields[11]) + Number(fields[12])) * TICK_MS, peakRssBytes: Number(peak?.[1] ?? 0) * 1_024 };
  } catch {
    return { cpuMs: 0, peakRssBytes: 0 };
  }
}

/** Crawl API processes of this folder's sandbox, which contains their bundle. */
const instancesOf = (folder: string): number[] =>
  globSync('/proc/[0-9]*/cmdline').flatMap((file) => {
    try {
      const command = readFileSync(file, 'utf8');
      return command.includes(folder) && command.includes('crawl-api.mjs') ? [Number(file.split('/')[2])] : [];
    } catch {
      return [];
    }
  });
