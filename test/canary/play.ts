/** One canary from first check to last: runs the real commands as processes, checks the result, always cleans up. */
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import Sqlite from 'better-sqlite3';
import { stringify } from 'yaml';
import { systemClock } from '../../shared/adapters/system-clock.ts';
import { isRunEnd } from '../../shared/domain/states.ts';
import { readHistory } from '../support/invariants/read-history.ts';
import type { RunReport } from '../../orchestrator/core/model/report.ts';
import type { RunRecord } from '../../orchestrator/core/model/stores.ts';
import { openDatabase } from '../../orchestrator/core/db/connect.ts';
import { createStores } from '../../orchestrator/core/db/create-stores.ts';
import { isMigrated } from '../../orchestrator/core/db/migrate.ts';
import { readVerifyFacts } from '../../orchestrator/core/db/verify-queries.ts';
import { type CommandResult, type RunningCommand, startCommand, waitFor } from '../support/processes.ts';
import { findLeftovers } from './cloud.ts';
import { type PageServer, servePages } from './page-server.ts';
import { type Proof, proofsOf } from './proofs.ts';
import type { CanarySettings } from './settings.ts';
import { features } from '../support/features.ts';

const LAUNCHER = fileURLToPath(new URL('../../bin/orchestrator.js', import.meta.url));
/** Time beyond deadline and grace: loading, releasing, removing a load balancer. */
const END_MS = 10 * 60_000;
/** Environment variables that must not turn up in what the run prints. */
const OWN_SECRETS = ['AWS_SECRET_ACCESS_KEY', 'AWS_SESSION_TOKEN'];
const SWEEPS = 10;
const SWEEP_PAUSE_MS = 3_000;

export interface CanaryResult {
  run: string | null;
  proofs: Proof[];
  cost: RunReport['cost'] | null;
  worstUsd: number;
  /** Why there are no proofs; null otherwise. */
  failure: string | null;
}

/** Reports progress through `say`; the caller's signals arrive through `interrupted`. */
export class Canary {
  readonly #settings: CanarySettings;
  readonly #folder: string;
  readonly #say: (text: string) => void;
  #current: RunningCommand | null = null;
  #interrupted = false;

  constructor(settings: CanarySettings, folder: string, say: (text: string) => void) {
    this.#settings = settings;
    this.#folder = folder;
    this.#say = say;
  }

  /** The first signal ends the run and keeps its results; the second leaves the run, which is cancelled afterwards. */
  interrupt(): void {
    this.#interrupted = true;
    this.#current?.kill('SIGINT');
  }

  async play(): Promise<CanaryResult> {
    const { ids, pages, worstUsd } = this.#settings;
    const server = pages === null ? null : await servePages(ids, pages.host, pages.port);
    const result: CanaryResult = { run: null, proofs: [], cost: null, worstUsd, failure: null };
    try {
      this.#prepare(server);
      await this.#crawl(result, server);
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error);
      result.failure = this.#interrupted ? 'interrupted' : why;
    } finally {
      await this.#cleanUp(result);
      await server?.close();
    }
    return result;
  }

  get #database(): string {
    return join(this.#folder, 'canary.db');
  }

  get #configPath(): string {
    return join(this.#folder, 'fleet.yaml');
  }

  #prepare(server: PageServer | null): void {
    const { ids, pages, config } = this.#settings;
    const products = new Sqlite(this.#database);
    products.exec('create table products (id text primary key)');
    const insert = products.prepare('insert into products (id) values (?)');
    for (const id of ids) insert.run(id);
    products.close();
    const ours =
      server === null || pages === null ? {} : { product_url: `http://${pages.urlHost}:${server.port}/p/{id}` };
    const site = { ...config.site, ...ours };
    const whole = { ...config, site, database: { url: `sqlite:${this.#database}` } };
    writeFileSync(this.#configPath, stringify(whole), { mode: 0o600 });
  }

  async #crawl(result: CanaryResult, server: PageServer | null): Promise<void> {
    const dry = this.#settings.dryRun ? ['--dry-run'] : [];
    await this.#must('doctor', ...dry);
    await this.#must('plan', ...dry);
    const ran = await this.#command('run', ...dry, '--yes', '--json');
    const report = readDocument(ran);
    result.run = report.run;
    result.cost = report.cost;
    const verify = await this.#command('verify', '--json');
    const run = (await this.#runs()).find((r) => r.id === report.run);
    if (!run) throw new Error(`the database has no run ${report.run}`);
    result.proofs = proofsOf({
      ids: this.#settings.ids,
      report,
      history: {
        ...(await this.#history(report.run)),
        texts: [ran.stdout, ran.stderr, JSON.stringify(report)],
        secrets: [run.privateKey, ...OWN_SECRETS.flatMap((name) => process.env[name] ?? [])],
      },
      arrivals: server?.arrivals() ?? null,
      rows: this.#rows(),
      leftovers: await this.#leftovers(run),
      verify: { exitCode: verify.exitCode, text: `${verify.stdout}${verify.stderr}`.trim() },
    });
  }

  /** EC2 may show a terminated instance as running for some more seconds. */
  async #leftovers(run: RunRecord): Promise<string[]> {
    for (let left = SWEEPS; ; left--) {
      const found = await findLeftovers(run, false);
      if (found.length === 0 || left === 0) return found;
      await systemClock.sleep(SWEEP_PAUSE_MS);
    }
  }

  async #history(runId: string): Promise<Awaited<ReturnType<typeof readHistory>>> {
    const db = await openDatabase(`sqlite:${this.#database}`);
    try {
      const rows = { ...createStores(db, features).of(runId), clock: systemClock };
      return await readHistory(rows, await readVerifyFacts(db, runId));
    } finally {
      await db.close();
    }
  }

  #rows(): Record<string, unknown>[] {
    const database = new Sqlite(this.#database, { readonly: true });
    try {
      return database.prepare('select * from product_snapshots').all() as Record<string, unknown>[];
    } finally {
      database.close();
    }
  }

  async #runs(): Promise<RunRecord[]> {
    const db = await openDatabase(`sqlite:${this.#database}`);
    try {
      return (await isMigrated(db)) ? await createStores(db, features).runs.list(10) : [];
    } finally {
      await db.close();
    }
  }

  /** In every case: cancels unfinished runs and ends what still carries their tag. */
  async #cleanUp(result: CanaryResult): Promise<void> {
    try {
      this.#interrupted = false;
      for (const run of await this.#runs()) {
        result.run ??= run.id;
        if (!isRunEnd(run.phase)) await this.#command('cancel', run.id, '--yes', '--json');
        const left = await findLeftovers(run, true).catch((error: unknown) => {
          // A sandbox that ended with its run has no resources left.
          if (run.dryRun) return [];
          throw error;
        });
        for (const thing of left) this.#say(`ended what was left: ${thing}`);
      }
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error);
      const advice = `CHECK YOUR ACCOUNT, cleaning up failed: ${why}. orchestrator gc --config ${this.#configPath} ends what is left.`;
      result.failure = result.failure === null ? advice : `${result.failure}; ${advice}`;
    }
  }

  async #must(...args: string[]): Promise<void> {
    const { exitCode } = await this.#command(...args);
    // Its output has been shown as it came.
    if (exitCode !== 0) throw new Error(`orchestrator ${args.join(' ')} ended with ${exitCode}; see its output above`);
  }

  async #command(...args: string[]): Promise<CommandResult> {
    if (this.#interrupted) throw new Error('interrupted');
    const { deadlineMs, graceMs } = this.#settings;
    this.#say(`$ orchestrator ${args.join(' ')}`);
    const command = startCommand(process.execPath, [LAUNCHER, ...args, '--config', this.#configPath], {
      cwd: this.#folder,
      timeoutMs: deadlineMs + graceMs + END_MS,
    });
    this.#current = command;
    let shown = 0;
    const show = setInterval(() => {
      const fresh = command.stderr().slice(shown);
      shown += fresh.length;
      if (fresh.trim() !== '') this.#say(fresh.trimEnd());
    }, 500);
    try {
      const result = await command.finished;
      if (!args.includes('--json')) this.#say(result.stdout.trimEnd());
      return result;
    } finally {
      clearInterval(show);
      this.#current = null;
    }
  }
}

function readDocument({ exitCode, stdout, stderr }: CommandResult): RunReport {
  let document: RunReport | { error: { message: string; hint: string | null } } | Record<string, never>;
  try {
    document = JSON.parse(stdout) as typeof document;
  } catch (error) {
    throw new Error(`run ended with ${exitCode} and without a document: ${stderr}`, { cause: error });
  }
  if ('error' in document)
    throw new Error(`the run was refused: ${document.error?.message} (${document.error?.hint ?? 'no hint'})`);
  // A main server that left its run reports only its name.
  if (!('shards' in document)) throw new Error(`run ended with ${exitCode} before the crawl was over`);
  return document as RunReport;
}

/** Starts an `orchestrator sandbox` for this canary. */
export async function startOwnSandbox(folder: string): Promise<{ endpoint: string; stop(): Promise<void> }> {
  const args = [LAUNCHER, 'sandbox', '--port', '0', '--data', join(folder, 'sandbox'), '--json'];
  const command = startCommand(process.execPath, args, { timeoutMs: 60 * 60_000 });
  const stop = async (): Promise<void> => {
    command.kill('SIGTERM');
    await command.finished;
  };
  try {
    const line = await waitFor(
      () =>
        command
          .stdout()
          .split('\n')
          .find((text) => text.startsWith('{') && text.endsWith('}')),
      {
        what: 'the sandbox to be ready',
        timeoutMs: 60_000,
      },
    );
    return { endpoint: (JSON.parse(line) as { endpoint: string }).endpoint, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** Removes the folder of a canary that passed every check. */
export const removeFolder = (folder: string): void => rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
