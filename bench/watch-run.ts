/** A folder with a product database and a fleet.yaml, and a measured `orchestrator run --dry-run` in it. */
import { type ChildProcessByStdio, spawn } from 'node:child_process';
import { globSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import Sqlite from 'better-sqlite3';
import { stringify } from 'yaml';
import type { RunReport } from '../orchestrator/control/model/report.ts';

const LAUNCHER = fileURLToPath(new URL('../bin/orchestrator.js', import.meta.url));

export interface WatchedRun {
  report: RunReport;
  wallMs: number;
  /** For the main server. */
  cpuMs: number;
  mainServerRssBytes: number;
  /** Largest resident set of any instance. */
  instanceRssBytes: number;
}

export interface CrawlFolder {
  path: string;
  /** Starts a command. */
  start(...args: string[]): ChildProcessByStdio<null, Readable, Readable>;
  /** Runs a command to its end; throws when it fails. */
  command(...args: string[]): Promise<string>;
  /** `run --dry-run --json`, with memory sampled while it runs. */
  run(): Promise<WatchedRun>;
  remove(): void;
}

export function makeCrawlFolder(ids: readonly string[], config: Record<string, unknown>): CrawlFolder {
  const folder = mkdtempSync(join(tmpdir(), 'crawlfleet-bench-'));
  const database = new Sqlite(join(folder, 'fleet.db'));
  database.exec('create table products (id text primary key)');
  const insert = database.prepare('insert into products values (?)');
  database.transaction(() => ids.forEach((id) => insert.run(id)))();
  database.close();
  const configPath = join(folder, 'fleet.yaml');
  const base = {
    products: { query: 'select id from products' },
    database: { url: `sqlite:${join(folder, 'fleet.db')}` },
  };
  writeFileSync(configPath, stringify({ ...base, ...config }));

  const start = (...args: string[]) =>
    spawn(process.execPath, [LAUNCHER, ...args, '--config', configPath], {
      cwd: folder,
      stdio: ['ignore', 'pipe', 'pipe'],
    });
  return {
    path: folder,
    start,
    async command(...args) {
      const child = start(...args);
      const [stdout, stderr, code] = await Promise.all([text(child.stdout), text(child.stderr), exitOf(child)]);
      if (code !== 0) throw new Error(`orchestrator ${args.join(' ')} ended with ${code}: ${stderr.slice(-2_000)}`);
      return stdout;
    },
    async run() {
      const startMs = performance.now();
      const child = start('run', '--dry-run', '--json');
      let cpuMs = 0;
      let mainServerRssBytes = 0;
      let instanceRssBytes = 0;
      const watch = setInterval(() => {
        const own = readProcess(child.pid!);
        cpuMs = Math.max(cpuMs, own.cpuMs);
        mainServerRssBytes = Math.max(mainServerRssBytes, own.peakRssBytes);
        for (const pid of instancesOf(folder))
          instanceRssBytes = Math.max(instanceRssBytes, readProcess(pid).peakRssBytes);
      }, 200);
      const [stdout, stderr, code] = await Promise.all([text(child.stdout), text(child.stderr), exitOf(child)]);
      clearInterval(watch);
      if (code !== 0) throw new Error(`the run ended with ${code}: ${stderr.slice(-2_000)}`);
      const report = JSON.parse(stdout) as RunReport;
      return { report, wallMs: performance.now() - startMs, cpuMs, mainServerRssBytes, instanceRssBytes };
    },
    remove: () => rmSync(folder, { recursive: true, force: true }),
  };
}

function exitOf(child: ReturnType<typeof spawn>): Promise<number | null> {
  return new Promise((resolve, reject) => child.on('error', reject).on('close', resolve));
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
function instancesOf(folder: string): number[] {
  return globSync('/proc/[0-9]*/cmdline').flatMap((file) => {
    try {
      const command = readFileSync(file, 'utf8');
      return command.includes(folder) && command.includes('crawl-api.mjs') ? [Number(file.split('/')[2])] : [];
    } catch {
      return [];
    }
  });
}
