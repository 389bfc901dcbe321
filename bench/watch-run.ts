/** A dry run whose processes are measured while it works. */
import { globSync, readFileSync } from 'node:fs';
import type { RunReport } from '../orchestrator/control/model/report.ts';
import { readProcess } from '../test/support/processes.ts';
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
