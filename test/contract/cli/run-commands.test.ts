/** cancel, stop, cost, watch, logs and gc on databases that contain runs; whole runs are in test/system. */
import { features, readConfig } from '../../support/features.ts';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { systemClock } from '../../../shared/adapters/system-clock.ts';
import { otherRun } from '../../../orchestrator/core/checks/database.ts';
import { carryOut } from '../../../orchestrator/core/run/carry-out.ts';
import type { RunContext } from '../../../orchestrator/core/run/run-context.ts';
import { endEarly } from '../../../orchestrator/core/run/end-early.ts';
import { hasLeftovers, isUnfinished } from '../../../orchestrator/core/lookup/find-run.ts';
import { lockNamesOfRun } from '../../../orchestrator/core/lookup/run-lock.ts';
import type { Session } from '../../../orchestrator/core/run/run-session.ts';
import { ProcessState } from '../../../orchestrator/core/model/process-state.ts';
import { buildReport } from '../../../orchestrator/core/act/results/finish.ts';
import { cancelCommand, publishCommand, stopCommand } from '../../../orchestrator/cli/commands/end.ts';
import { paceCommand } from '../../../orchestrator/cli/commands/pace.ts';
import { costCommand, verifyCommand } from '../../../orchestrator/cli/commands/report.ts';
import { explainCommand } from '../../../orchestrator/features/explain/command.ts';
import { gcCommand, pruneCommand } from '../../../orchestrator/cli/commands/clean-up.ts';
import { logsCommand } from '../../../orchestrator/cli/commands/logs.ts';
import { inTerminal, planCommand, retryCommand } from '../../../orchestrator/cli/commands/run.ts';
import { failedProducts } from '../../../orchestrator/core/run/retry.ts';
import { startRun } from '../../../orchestrator/core/run/start-run.ts';
import { statusCommand } from '../../../orchestrator/cli/commands/status.ts';
import { watchCommand } from '../../../orchestrator/cli/commands/watch.ts';
import type { Output } from '../../../orchestrator/cli/output.ts';
import { openDatabase } from '../../../orchestrator/core/db/connect.ts';
import { isMigrated } from '../../../orchestrator/core/db/migrate.ts';
import type { RunPhase } from '../../../shared/domain/states.ts';
import { createTestDatabase, type TestDatabase } from '../../support/mariadb/database.ts';
import { startSandbox } from '../../support/sandbox/start-sandbox.ts';
import { tempDir } from '../../support/temp-dir.ts';
import {
  at,
  type Bench,
  bound,
  createInstance,
  createRun,
  failed,
  load,
  NOW,
  openBench,
  settings,
  stored,
} from '../core/db/harness.ts';
import { expectFault } from '../../support/expect-fault.ts';

let folder: ReturnType<typeof tempDir>;
let test: TestDatabase;
let bench: Bench;
let lines: string[];
let documents: unknown[];

const output: Output = {
  json: true,
  line: (text = '') => void lines.push(text),
  document: (value) => void documents.push(value),
};
const base = () => ({ configPath: folder.file('fleet.yaml'), environment: {}, features });

beforeEach(async () => {
  folder = tempDir('crawlfleet-commands-');
  test = await createTestDatabase('sqlite');
  bench = await openBench(test);
  lines = [];
  documents = [];
  configure();
});
afterEach(async () => {
  await bench.db.close();
  await test.drop();
  folder.remove();
});

function configure(aws = '', url = test.url, site = ''): void {
  writeFileSync(
    folder.file('fleet.yaml'),
    `site: { product_url: "http://127.0.0.1:1/{id}", mapping: { fields: { title: h1 } }${site} }
products: { query: "select id from products" }
database: { url: "${url}" }
${aws}`,
  );
}

const priced = { total: 1, instances: 0.5, ipv4: 0.3, ebs: 0.1, balancer: 0.1, s3: 0, currency: 'USD', pricesOf: 'x' };

/** A run with two loaded products, in this phase. */
async function aRun(phase: RunPhase): Promise<{ id: string; table: string }> {
  const own = settings('snapshots');
  const full = {
    ...own,
    aws: { region: 'ap-northeast-1' },
    site: { intervalMs: 1_000, productUrl: 'http://127.0.0.1:1/{id}' },
    run: { ...own.run, graceMs: 1_000, maxCost: 5 },
  };
  const { id, table } = await createRun(bench, 4, { settings: full as never });
  await load(bench, id, [stored(1, 'p1', { title: 'a' }), stored(2, 'p2', { title: 'b' })]);
  const plan = { chunkSize: 5, products: 4, cost: priced };
  await bench.db
    .knex('crawlfleet_runs')
    .where({ id })
    .update({ phase, plan: JSON.stringify(plan) });
  return { id, table };
}

const leave = () => bench.stores.runs.releaseLock(bench.fence);
/** A main server with the lock of this run works on it, or on another one. */
async function workOn(id: string, runId = id): Promise<void> {
  const { runs } = bench.stores;
  await leave();
  const nowMs = Date.now();
  const names = lockNamesOfRun((await runs.get(id))!);
  const { fence } = (await runs.acquireLock({ owner: 'tests', names, nowMs, leaseMs: 60_000 })) as { fence: number };
  await runs.renewLock(fence, nowMs, 60_000, runId);
}
const staging = (id: string) => bench.db.knex.schema.hasTable(`crawlfleet_staging_${id}`);

describe('cancel', () => {
  it('asks for confirmation first, and requires --yes without a terminal', async () => {
    const { id } = await aRun('held');
    await expect(cancelCommand({ ...base(), runId: id, yes: false }, output)).rejects.toMatchObject({ code: 'usage' });
    expect(lines[0]).toContain('2 stored products that are loaded are not published');
    expect(await bench.stores.runs.get(id)).toMatchObject({ phase: 'held', request: null });
  });

  it('discards the rows of a held run', async () => {
    const { id, table } = await aRun('held');
    await bound(bench, id).run.setReport({ run: id, state: 'held', notes: [] } as never);
    await bench.db
      .knex('crawlfleet_runs')
      .where({ id })
      .update({ finished_at: NOW + 5 });
    await leave();
    expect(await cancelCommand({ ...base(), runId: id, yes: true }, output)).toBe(0);
    expect(documents).toEqual([{ run: id, state: 'cancelled', reason: expect.any(String), exitCode: 11 }]);
    expect(await bench.stores.runs.get(id)).toMatchObject({
      phase: 'cancelled',
      request: 'cancel',
      // Work on its rows days later makes it neither longer nor more expensive.
      finishedAtMs: NOW + 5,
      report: { state: 'cancelled', exitCode: 11, finishedAt: new Date(NOW + 5).toISOString() },
    });
    expect(await staging(id)).toBe(false);
    expect(await bench.db.knex(table)).toEqual([]);
    await expectFault(cancelCommand({ ...base(), runId: id, yes: true }, output), 'run-ended');
  });

  it('leaves the stop request to a main server that is at work', async () => {
    const { id } = await aRun('crawling');
    await workOn(id);
    expect(await cancelCommand({ ...base(), runId: id, yes: true }, output)).toBe(0);
    expect(documents).toEqual([{ run: id, requested: 'cancel', mainServer: 'tests' }]);
    expect(await bench.stores.runs.get(id)).toMatchObject({ phase: 'crawling', request: 'cancel' });
  });

  it('refuses a run that has ended or is unknown', async () => {
    const { id } = await aRun('completed');
    await expectFault(cancelCommand({ ...base(), runId: id, yes: true }, output), 'run-ended');
    await expectFault(cancelCommand({ ...base(), runId: 'x', yes: true }, output), 'run-unknown');
  });
});

describe('pace', () => {
  const paceOf = async (id: string) => (await bench.stores.runs.get(id))!.operatorPace;

  it('stores what is asked for, and says that no main server is there to tell the instances', async () => {
    const { id } = await aRun('crawling');
    expect(await paceCommand({ ...base(), runId: undefined, interval: '20s', pause: '30m' }, output)).toBe(0);
    expect(await paceOf(id)).toMatchObject({ intervalMs: 20_000, isForNextPlan: false });
    expect(documents).toMatchObject([{ run: id, pace: { intervalMs: 20_000 }, mainServer: null }]);
    expect(lines.join('\n')).toMatch(/! No main server is at work.*orchestrator resume/);
  });

  it('says from when on the instances keep it where a main server is at work', async () => {
    const { id } = await aRun('crawling');
    await workOn(id);
    expect(await paceCommand({ ...base(), runId: id, pause: '30m' }, output)).toBe(0);
    expect(documents).toMatchObject([{ run: id, mainServer: 'tests' }]);
    expect(lines.join('\n')).toContain('from its next heartbeat on');
  });

  it('is a wrong use (2) without a request, for an unknown run and for one that has ended', async () => {
    await expectFault(paceCommand({ ...base(), runId: undefined }, output), 'usage');
    await expectFault(paceCommand({ ...base(), runId: undefined, pause: '1m' }, output), 'run-unknown');
    await expectFault(paceCommand({ ...base(), runId: 'x', pause: '1m' }, output), 'run-unknown');
    for (const phase of ['completed', 'held'] as const) {
      const { id } = await aRun(phase);
      for (const asked of [{ interval: '20s' }, { interval: '1ms' }, { pause: '1m' }])
        await expectFault(paceCommand({ ...base(), runId: id, ...asked }, output), 'run-ended');
      expect(await paceOf(id)).toBeUndefined();
    }
  });

  it('is a wrong configuration (4) with an interval that is not longer, and changes nothing', async () => {
    const { id } = await aRun('crawling');
    const interval = `${(await bench.stores.runs.get(id))!.settings.site.intervalMs}ms`;
    const refused = paceCommand({ ...base(), runId: id, interval }, output);
    await expect(refused).rejects.toMatchObject({ code: 'pace-too-fast', exitCode: 4 });
    expect(await paceOf(id)).toBeUndefined();
  });

  it('of a run that has ended can be reset, so that the next plan forgets it', async () => {
    const { id } = await aRun('crawling');
    await paceCommand({ ...base(), runId: id, interval: '20s', nextPlan: true }, output);
    await bench.db.knex('crawlfleet_runs').where({ id }).update({ phase: 'completed' });
    expect(await paceCommand({ ...base(), runId: id, reset: true }, output)).toBe(0);
    expect(await paceOf(id)).toMatchObject({ addresses: null, isForNextPlan: false });
    expect(lines.at(-1)).toContain('the next plan keeps nothing of it');
  });
});

describe('a database without our tables', () => {
  let other: TestDatabase;
  beforeEach(async () => {
    other = await createTestDatabase('sqlite');
    configure('', other.url);
  });
  afterEach(() => other.drop());

  it.each([
    ['stop', () => stopCommand({ ...base(), runId: undefined }, output)],
    ['cancel', () => cancelCommand({ ...base(), runId: 'x', yes: true }, output)],
    ['explain', () => explainCommand({ ...base(), runId: undefined }, output)],
    ['watch', () => watchCommand({ ...base(), runId: undefined }, output)],
    ['cost RUN', () => costCommand({ ...base(), runId: 'x' }, output)],
    ['publish', () => publishCommand({ ...base(), runId: undefined, force: false }, output)],
    ['verify', () => verifyCommand({ ...base(), runId: undefined }, output)],
  ])('has no run for %s, and is left unchanged', async (_command, run) => {
    await expect(run()).rejects.toMatchObject({
      code: 'run-unknown',
      exitCode: 2,
      message: 'there is no run in this database',
      hint: expect.stringContaining('--config') as string,
    });
    const db = await openDatabase(other.url);
    expect(await db.knex('sqlite_master')).toEqual([]);
    await db.close();
  });
});

describe('prune', () => {
  it('removes the folder of a dry run whose run is over and pruned, and no other', async () => {
    const { id: old, table } = await aRun('completed');
    const { id: atWork } = await aRun('crawling');
    const folders = [old, atWork, 'of-another-database'].map((id) => folder.file(`.crawlfleet/sandbox/${id}/s3`));
    folders.forEach((path) => mkdirSync(path, { recursive: true }));
    const isThere = () => folders.map((path) => existsSync(dirname(path)));
    await bench.db.knex('crawlfleet_runs').update({ results_table: table });
    await bench.db
      .knex('crawlfleet_runs')
      .where({ id: old })
      .update({ finished_at: Date.now() - 3_600_000 });
    configure(`results: { table: ${table} }\n`);
    const prune = (olderThan: string) => pruneCommand({ ...base(), olderThan, yes: true }, output);
    expect(await prune('2h')).toBe(0);
    expect(isThere()).toEqual([true, true, true]);
    expect(await prune('30m')).toBe(0);
    expect(isThere()).toEqual([false, true, true]);
    // What an earlier version has left goes, too.
    mkdirSync(folders[0]!, { recursive: true });
    expect(await prune('30m')).toBe(0);
    expect(isThere()).toEqual([false, true, true]);
  });
});

describe('a database with tables of an earlier version', () => {
  it('is migrated, and its runs are found', async () => {
    const { id } = await aRun('completed');
    await bench.db.knex('crawlfleet_migrations').where('version', '>', 3).del();
    expect(await explainCommand({ ...base(), runId: undefined }, output)).toBe(0);
    expect(documents).toMatchObject([{ run: id, state: 'completed' }]);
    expect(await isMigrated(bench.db)).toBe(true);
  });

  it.each([
    ['status', statusCommand],
    ['cost', costCommand],
  ])('is not taken for one without runs by %s, which says so', async (_name, command) => {
    const { id } = await aRun('completed');
    await bench.db.knex('crawlfleet_migrations').where('version', '>', 3).del();
    expect(await command({ ...base(), runId: undefined }, output)).toBe(0);
    expect(documents).toMatchObject([{ runs: [{ run: id, state: 'completed' }] }]);
    expect(lines[0]).toBe(
      `! sqlite:${new URL(test.url).pathname}: the crawlfleet tables are of an earlier version, 3, and are brought up to date`,
    );
    lines = [];
    await command({ ...base(), runId: undefined }, output);
    expect(lines.join()).not.toContain('earlier version');
  });

  it('is not taken for one without runs by doctor, which changes nothing', async () => {
    await bench.db.knex('crawlfleet_migrations').where('version', '>', 3).del();
    const facts = { database: () => Promise.resolve(bench.db) };
    const found = await otherRun.run({ facts, config: readConfig(folder.file('fleet.yaml'), {}) } as never);
    expect(found).toMatchObject({ level: 'warning', text: expect.stringContaining('not known') as string });
    expect(await isMigrated(bench.db)).toBe(false);
  });

  it.each([
    ['status', statusCommand],
    ['cost', costCommand],
  ])('is left alone by %s while a run is at work on it, and that is the error', async (_name, command) => {
    const { id } = await aRun('crawling');
    await bench.db
      .knex('crawlfleet_runs')
      .where({ id })
      .update({ deadline_at: Date.now() + 3_600_000 });
    await bench.db.knex('crawlfleet_migrations').where('version', '>', 3).del();
    await expect(command({ ...base(), runId: undefined }, output)).rejects.toMatchObject({
      code: 'database-schema',
      message: expect.stringContaining(`run ${id} is in progress`) as string,
    });
    expect(lines.join('\n')).not.toContain('No run yet');
    expect(await isMigrated(bench.db)).toBe(false);
  });
});

describe('a stop request that comes too late', () => {
  const takeOver = () => Promise.reject(new Error('the run has ended'));

  it('changes nothing, and reports that the run has ended since', async () => {
    const { id } = await aRun('loading');
    const run = (await bench.stores.runs.get(id))!;
    await bound(bench, id).results.publish('completed', { exitCode: 0, reason: null });
    const end = { run, request: 'cancel' as const, promise: '', takeOver };
    const late = endEarly(bench.stores.runs, end, output);
    await expect(late).rejects.toMatchObject({ code: 'run-ended', message: expect.stringContaining('completed') });
    expect(await bench.stores.runs.get(id)).toMatchObject({ phase: 'completed', request: null });
  });

  it('explains how to release or discard a run that is held by now', async () => {
    const { id } = await aRun('held');
    const run = { ...(await bench.stores.runs.get(id))!, phase: 'loading' as const };
    const late = endEarly(bench.stores.runs, { run, request: 'stop', promise: '', takeOver }, output);
    await expect(late).rejects.toMatchObject({ code: 'run-ended', hint: expect.stringContaining(`publish ${id}`) });
    expect(await bench.stores.runs.get(id)).toMatchObject({ request: null });
  });

  it('is satisfied when a run that is to be stopped is being cancelled', async () => {
    const { id } = await aRun('crawling');
    await bench.stores.runs.setRequest(id, 'cancel');
    await workOn(id);
    expect(await stopCommand({ ...base(), runId: id }, output)).toBe(0);
    expect(await bench.stores.runs.get(id)).toMatchObject({ request: 'cancel' });
  });
});

describe('status', () => {
  it('shows how a held run ended although its report was never written', async () => {
    const { id } = await aRun('held');
    const report = { run: id, state: 'held', notes: ['nothing was published: x', 'other'], products: { stored: 2 } };
    await bound(bench, id).run.setReport(report as never);
    const end = { exitCode: 0, reason: null, held: true } as const;
    await bound(bench, id).results.publish('completed', end);
    expect(await statusCommand({ ...base(), runId: id }, output)).toBe(0);
    expect(documents).toMatchObject([{ report: { state: 'completed', exitCode: 0, reason: null, notes: ['other'] } }]);
  });
});

describe('leaving a run that has ended', () => {
  /** The loop was left with Ctrl-C while its instance was in this phase. */
  async function leaveWith(phase: 'terminating' | 'terminated') {
    const { id } = await aRun('completed');
    await createInstance(bench, id, 0);
    await bench.db.knex('crawlfleet_instances').where({ run_id: id }).update({ phase });
    const report = vi.fn(() =>
      buildReport({ ...bench.stores.of(id), clock: systemClock, processState: new ProcessState() }),
    );
    const nothing = (): Promise<void> => Promise.resolve();
    const session = { runId: id, server: { run: nothing }, loopEnded: nothing, report } as unknown as Session;
    const leave = new AbortController();
    leave.abort();
    const interrupts = { leave: leave.signal, onFirst: () => undefined };
    const config = readConfig(base().configPath, {});
    const lock = { lost: new AbortController().signal };
    const context = { stores: bench.stores, lock, config, interrupts, output, features: [] } as unknown as RunContext;
    const result = await carryOut(context, { session, finished: false, [Symbol.asyncDispose]: nothing });
    return { id, result, report };
  }

  it('leaves it to resume while its machines are not gone', async () => {
    const { id, result, report } = await leaveWith('terminating');
    expect(result).toEqual({ exitCode: 11, finished: false });
    expect(report).not.toHaveBeenCalled();
    expect(lines.join('\n')).toContain(`Left run ${id} as it is: completed, but its instances`);
    expect(lines.join('\n')).toContain(`orchestrator resume ${id}`);
    const run = (await bench.stores.runs.get(id))!;
    expect(isUnfinished(run)).toBe(true);
    expect(await hasLeftovers(bench.stores, { ...run, report: {} as never })).toBe(true);
  });

  it('writes the report when nothing is left', async () => {
    const { id, report } = await leaveWith('terminated');
    expect(report).toHaveBeenCalledOnce();
    expect(await hasLeftovers(bench.stores, (await bench.stores.runs.get(id))!)).toBe(false);
  });
});

describe('retry', () => {
  const retry = (runId?: string) =>
    retryCommand({ ...base(), flags: [], dryRun: true, yes: true, runId, reasons: undefined }, output);

  /** A run that has ended; of this table and site. */
  async function ended(table: string, productUrl: string): Promise<string> {
    const own = { ...settings(table), site: { productUrl } };
    const { id, run } = await createRun(bench, 1, { settings: own as never });
    await run.setReport({} as never);
    await bench.db.knex('crawlfleet_runs').where({ id }).update({ phase: 'completed' });
    return id;
  }

  it('refuses a run of another table or another site', async () => {
    configure('results: { table: mine }\nrun: { deadline: 1h }\n');
    const other = await ended('theirs', 'http://127.0.0.1:1/{id}');
    const moved = await ended('mine', 'http://127.0.0.1:2/{id}');
    await leave();
    await expect(retry(other)).rejects.toMatchObject({ code: 'usage', message: expect.stringContaining('theirs') });
    await expect(retry(moved)).rejects.toMatchObject({ code: 'usage', message: expect.stringContaining(':2/{id}') });
  });

  /** A run with a failed product, and a configuration by which neither a site nor AWS is asked. */
  async function withFailure(dryRun: boolean): Promise<string> {
    configure(
      'results: { table: mine }\nrun: { deadline: 1h }\naws: { region: eu-central-1 }\n',
      test.url,
      ', robots: ignore, interval: 1s',
    );
    const own = { ...settings('mine'), site: { productUrl: 'http://127.0.0.1:1/{id}' } };
    const { id, run } = await createRun(bench, 2, { settings: own as never });
    await load(bench, id, [stored(1, 'p1', { title: 'a' }), failed(2)]);
    await run.setReport({} as never);
    await bench.db.knex('crawlfleet_runs').where({ id }).update({ phase: 'completed', dry_run: dryRun });
    await leave();
    return id;
  }

  it('is a dry run as its run was, without --dry-run, and says what starts before it does', async () => {
    const id = await withFailure(true);
    let asked: boolean | null = null;
    const confirm = (dryRun: boolean): Promise<boolean> => {
      asked = dryRun;
      return Promise.resolve(false);
    };
    const exitCode = await inTerminal(output, (caller) =>
      startRun(
        { ...base(), flags: [], dryRun: false, confirm },
        caller,
        failedProducts({ runId: undefined, reasons: undefined }, caller.output),
      ),
    );
    expect(exitCode).toBe(11);
    expect(asked).toBe(true);
    expect(lines.at(-2)).toMatch(
      /^Dry run on this machine, which costs nothing: 1 product with 1 instance \(\S+\), probably over by 20.* UTC, deadline 20.* UTC\.$/,
    );
    expect(await planCommand({ ...base(), flags: [], dryRun: false, retry: id }, output)).toBe(0);
    expect(documents).toMatchObject([{ products: 1, dryRun: true, start: lines.at(-1)!.trim() }]);
  });

  it('is on AWS as its run was, unless --dry-run is given', async () => {
    const id = await withFailure(false);
    const plan = (dryRun: boolean) => planCommand({ ...base(), flags: [], dryRun, retry: id }, output);
    await expect(plan(false)).rejects.toThrow('a run on AWS needs');
    expect(await plan(true)).toBe(0);
  });

  it('takes the newest run of its own table', async () => {
    configure('results: { table: mine }\nrun: { deadline: 1h }\n');
    const mine = await ended('mine', 'http://127.0.0.1:1/{id}');
    await ended('theirs', 'http://127.0.0.1:1/{id}');
    await leave();
    expect(await retry()).toBe(0);
    expect(documents).toMatchObject([{ run: null, parent: mine }]);
  });
});

describe('stop', () => {
  it('is not treated as done when the lock is held for another run', async () => {
    const { id } = await aRun('crawling');
    await workOn(id, 'another');
    await expect(stopCommand({ ...base(), runId: id }, output)).rejects.toMatchObject({ code: 'lock-held' });
    expect(await bench.stores.runs.get(id)).toMatchObject({ request: 'stop' });
  });
});

describe('cost', () => {
  it('shows planned and actual cost by part and by instance, and the last runs', async () => {
    const { id } = await aRun('crawling');
    await bench.db.knex('crawlfleet_instances').delete();
    const claim = { slot: 0, epoch: 1, request: { instanceType: 't4g.nano', userData: '' } as never, token: 't' };
    await bound(bench, id).fleet.claim(claim);
    await bound(bench, id).fleet.patch(at(0), { instanceId: 'i-1', launchedAtMs: NOW });
    await bench.db
      .knex('crawlfleet_instances')
      .update({ phase: 'terminated', terminated_at: NOW + 3_600_000, cloud_state: 'terminated' });
    await bench.db.knex('crawlfleet_runs').update({ phase: 'completed', finished_at: NOW + 3_600_000 });
    expect(await costCommand({ ...base(), runId: id }, output)).toBe(0);
    expect(documents[0]).toMatchObject({
      run: id,
      final: true,
      estimated: { total: 1 },
      actual: { instances: 0.0054, ipv4: 0.005, currency: 'USD' },
      maxCost: 5,
      instances: [{ instanceId: 'i-1', instanceType: 't4g.nano', seconds: 3_600, usdPerHour: 0.0054, usd: 0.0104 }],
    });
    expect((documents[0] as { per1000: number }).per1000).toBeGreaterThan(0);
    expect(await costCommand({ ...base(), runId: undefined }, output)).toBe(0);
    expect(documents[1]).toMatchObject({ runs: [{ run: id, actual: { instances: 0.0054 } }] });
  });
});

describe('watch', () => {
  it('ends when the run has ended, and prints how it ended', async () => {
    const { id } = await aRun('completed');
    expect(await watchCommand({ ...base(), runId: id }, output)).toBe(0);
    expect(documents).toMatchObject([{ run: id, state: 'completed' }]);
  });
});

describe('logs', () => {
  const write = (id: string, ...entries: object[]) => {
    const file = folder.file(`.crawlfleet/runs/${id}/log.ndjson`);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, entries.map((e) => `${JSON.stringify({ time: NOW, run: id, ...e })}\n`).join(''));
  };

  it('are those of the newest run, filtered, and need no database', async () => {
    write('20261120-000000-aaaa', { level: 30, msg: 'old' });
    write('20261121-000000-aaaa', { level: 30, msg: 'calm' }, { level: 40, slot: 1, msg: 'incident' });
    await test.drop();
    const options = { ...base(), runId: undefined, follow: false, slot: null, level: 'warn' as const };
    await logsCommand(options, output);
    expect(documents).toMatchObject([{ run: '20261121-000000-aaaa', entries: [{ message: 'incident' }] }]);
    await logsCommand({ ...options, runId: '20261120-000000-aaaa', level: 'info' }, { ...output, json: false });
    expect(lines).toEqual(['2026-11-21 02:15:00.000 info  old']);
    await logsCommand({ ...options, slot: 7 }, output);
    expect(lines.at(-1)).toMatch(/^No line of .*20261121-000000-aaaa.log\.ndjson is for this level and slot\.$/);
    await expectFault(logsCommand({ ...options, runId: '../../etc' }, output), 'run-unknown');
  });
});

describe('F44 gc', () => {
  it('reports when there is no cloud to check', async () => {
    expect(await gcCommand({ ...base(), dryRun: false }, output)).toBe(0);
    expect(documents).toEqual([{ staging: [] }]);
  });

  it('checks the endpoint for its owner, by the endpoint’s clock', async () => {
    const sandbox = await startSandbox();
    try {
      configure(`aws: { endpoint: "${sandbox.endpoint}", region: ${sandbox.region}, owner: me }`);
      expect(await gcCommand({ ...base(), dryRun: false }, output)).toBe(0);
      expect(documents).toMatchObject([{ owner: 'me', refused: null, items: [], staging: [] }]);
      const { clockSkewMs } = documents[0] as { clockSkewMs: number };
      expect(Math.abs(clockSkewMs)).toBeLessThan(60_000);
    } finally {
      await sandbox.stop();
    }
  });
});
