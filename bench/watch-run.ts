/** A dry run whose processes are measured while it works. */
import { globSync, readFileSync } from 'node:fs';
import type { RunReport } from '../orchestrator/core/model/report.ts';
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
  /** Processor time of each instance process so far, whenever it was looked at. */
  instanceCpu: ReadonlyMap<string, readonly CpuSample[]>;
  /** Largest share of an instance in physical memory: pages that several processes share are divided among them. */
  instancePssBytes: number;
}

export interface CpuSample {
  /** Wall clock. */
  atMs: number;
  cpuMs: number;
}

/** `run --dry-run --json`, measured every `everyMs` while it runs; throws when it fails. */
export async function watchRun(fleet: Fleet, everyMs = 200): Promise<WatchedRun> {
  const startMs = performance.now();
  const run = fleet.start('run', '--dry-run', '--json');
  let own = { cpuMs: 0, peakRssBytes: 0 };
  let [instanceRssBytes, instancePssBytes, looks] = [0, 0, 0];
  const instanceCpu = new Map<string, CpuSample[]>();
  const watch = setInterval(() => {
    const now = readProcess(run.pid);
    if (now.cpuMs > 0) own = now;
    const instances = instancesOf(fleet.dir);
    for (const { pid, instanceId } of instances) {
      const { cpuMs, peakRssBytes } = readProcess(pid);
      instanceRssBytes = Math.max(instanceRssBytes, peakRssBytes);
      const samples = instanceCpu.get(instanceId) ?? [];
      instanceCpu.set(instanceId, samples);
      samples.push({ atMs: Date.now(), cpuMs });
    }
    // The kernel walks all pages of a process for it.
    const one = instances[looks++ % Math.max(1, instances.length)];
    if (one) instancePssBytes = Math.max(instancePssBytes, pssOf(one.pid));
  }, everyMs);
  const { exitCode, report, stderr } = await endOf(run).finally(() => clearInterval(watch));
  if (exitCode !== 0) throw new Error(`the run ended with ${exitCode}: ${stderr.slice(-2_000)}`);
  const wallMs = performance.now() - startMs;
  const mainServer = { cpuMs: own.cpuMs, mainServerRssBytes: own.peakRssBytes };
  return { report, wallMs, ...mainServer, instanceRssBytes, instancePssBytes, instanceCpu };
}

/** Crawl API processes of this folder's sandbox, each of which runs a file in the folder of its instance. */
export const instancesOf = (folder: string): { pid: number; instanceId: string }[] =>
  globSync('/proc/[0-9]*/cmdline').flatMap((file) => {
    const command = readIfThere(file);
    const instanceId = command.includes(folder) ? /[/](i-[0-9a-f]+)[/]crawl-api\.mjs/.exec(command)?.[1] : undefined;
    return instanceId === undefined ? [] : [{ pid: Number(file.split('/')[2]), instanceId }];
  });

const pssOf = (pid: number): number =>
  Number(/^Pss:\s+(\d+) kB/m.exec(readIfThere(`/proc/${pid}/smaps_rollup`))?.[1] ?? 0) * 1_024;

/** Empty for a process that has ended. */
function readIfThere(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return '';
  }
}
