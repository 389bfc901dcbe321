/** The daemon with real processes: dry runs on the sandbox, a crash, two daemons on one database, and the notices. */
import { readFileSync, writeFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { parse, stringify } from 'yaml';
import type { Scheduler } from '../../orchestrator/features/schedule/scheduler.ts';
import type { RunReport } from '../../orchestrator/core/model/report.ts';
import { type RunningCommand, waitFor } from '../support/processes.ts';
import { productIds } from '../support/shop/product.ts';
import { useReceiver } from './receiver.ts';
import { useStage } from './stage.ts';

interface DueRow {
  due_at: string | number;
  state: string;
  runner: string | null;
  run_id: string | null;
  exit_code: number | null;
}

const { shop, fleet, open } = useStage({ products: 60 });
const { url, notices } = useReceiver('/refusing');

const rows = async (): Promise<DueRow[]> =>
  (await fleet.query(`select * from crawlfleet_schedule where state <> 'next' order by due_at`)) as unknown as DueRow[];

const pidOf = (runner: string | null): number => Number(runner!.split(':').at(-2));

const readConfig = (): { schedule?: object } => parse(readFileSync(fleet.configPath, 'utf8')) as { schedule?: object };
const configure = (sections: object): void =>
  writeFileSync(fleet.configPath, stringify({ ...readConfig(), ...sections }));

/**
 * Makes the fleet's schedule due once a day, the next time when a daemon that starts now is up. The shortest command
 * measures how long that takes on this machine.
 */
async function setDue(): Promise<Date> {
  const { wallMs } = await fleet.run('status', '--json');
  const due = new Date(Math.ceil((Date.now() + 8_000 + 4 * wallMs) / 1_000) * 1_000);
  const cron = `${due.getUTCSeconds()} ${due.getUTCMinutes()} ${due.getUTCHours()} * * *`;
  configure({ schedule: { ...readConfig().schedule, cron, timezone: 'UTC' } });
  return due;
}

type Health = ReturnType<Scheduler['health']>;

async function healthOf(daemon: RunningCommand): Promise<[number, Health]> {
  const url = await waitFor(() => /http:\S+\/healthz/.exec(daemon.stdout())?.[0], { what: 'the listener' });
  const response = await fetch(url);
  return [response.status, (await response.json()) as Health];
}

const OPERATOR = { operator: '127.0.0.1:0' };
const SHORT = { deadline: '30s', grace: '5s', min_instances: 1 };
const NIGHTLY = { tags: ['nightly'] };

describe('orchestrator schedule', { timeout: 300_000 }, () => {
  it('F41 F53: resumes after kill -9 of everything, and records what happened', NIGHTLY, async () => {
    const notify = ['/all', '/refusing'].map((path) => ({ webhook: url(path), dry_runs: true }));
    const config = { notify, server: OPERATOR };
    await open(undefined, config, 'mysql');
    const due = await setDue();
    const first = fleet.start('schedule', '--dry-run');
    expect(await healthOf(first)).toMatchObject([200, { ok: true, next: due.toISOString(), running: null }]);
    await waitFor(async () => (await shop.stats()).requests >= 10, { what: 'the crawl to begin', timeoutMs: 120_000 });
    first.kill('SIGKILL');
    await first.finished;
    const [begun] = await rows();
    expect(begun).toMatchObject({ state: 'started' });
    process.kill(pidOf(begun!.runner), 'SIGKILL');

    const second = fleet.start('schedule', '--dry-run');
    await waitFor(async () => (await rows())[0]?.state === 'done', { what: 'the run to end', timeoutMs: 60_000 });
    expect(second.stdout()).toMatch(/run \S+ is unfinished: it is taken up/);
    const [slot, ...others] = await rows();
    expect(others).toEqual([]);
    expect(slot).toMatchObject({ state: 'done', exit_code: 0, run_id: expect.any(String) });
    expect(Number(slot!.due_at)).toBe(due.getTime());
    // The daemon notices the end a moment after the row is written.
    await waitFor(async () => (await healthOf(second))[1].last?.state === 'done', {
      what: '/healthz to report the end',
    });
    const [status, health] = await healthOf(second);
    expect([status, health.last]).toEqual([
      200,
      { due: due.toISOString(), state: 'done', exitCode: 0, run: slot!.run_id },
    ]);
    expect(await fleet.query(`select told from crawlfleet_schedule where state = 'done'`)).toEqual([{ told: 1 }]);
    second.kill('SIGTERM');
    expect((await second.finished).exitCode).toBe(0);
    // Sent by the main server of the run, and not again by the daemon.
    expect(notices('/all')).toEqual([
      expect.objectContaining({ event: 'ended', good: true, run: slot!.run_id, exitCode: 0, due: [due.toISOString()] }),
    ]);
    // A target that rejects the notice does not change that.
    const [{ report }] = (await fleet.query('select report from crawlfleet_runs')) as [{ report: string }];
    expect((JSON.parse(report) as RunReport).notes).toContainEqual(
      expect.stringContaining('did not take a notice: it answered 404'),
    );
    expect(notices('/all')[0]!.products).toEqual({ planned: 60, stored: 60, gone: 0, failed: 0 });
    expect(await fleet.query('select product_id from product_snapshots')).toHaveLength(60);
    expect(await fleet.query('select id from crawlfleet_runs')).toEqual([{ id: slot!.run_id }]);
    expect(fleet.leftovers()).toEqual([]);
  });

  it('F41: SIGTERM before the run is stored loses no night: the next start begins the run anew', NIGHTLY, async () => {
    await open(productIds(6), { schedule: {}, server: OPERATOR, run: SHORT });
    await setDue();
    const first = fleet.start('schedule', '--dry-run');
    // Signed in; it looks at its configuration and builds the bundle before it stores a run.
    await waitFor(async () => (await rows().catch(() => []))[0]?.runner, { what: 'the process', timeoutMs: 120_000 });
    first.kill('SIGTERM');
    expect((await first.finished).exitCode).toBe(0);
    expect(await fleet.query('select id from crawlfleet_runs')).toEqual([]);
    expect(await rows()).toMatchObject([{ state: 'queued', exit_code: null, runner: null }]);

    const second = fleet.start('schedule', '--dry-run');
    await waitFor(async () => (await rows())[0]?.state === 'done', { what: 'the run to end', timeoutMs: 60_000 });
    expect(await rows()).toMatchObject([{ exit_code: 0, run_id: expect.any(String) }]);
    second.kill('SIGTERM');
    await second.finished;
    expect(await fleet.query('select product_id from product_snapshots')).toHaveLength(6);
  });

  it(
    'F41: of two daemons each due time is started once; SIGTERM leaves a run for the next start',
    NIGHTLY,
    async () => {
      const schedule = { cron: '*/3 * * * * *', if_running: 'queue' };
      await open(productIds(3), { schedule, server: OPERATOR, run: SHORT });
      const daemons = [fleet.start('schedule', '--dry-run'), fleet.start('schedule', '--dry-run')];
      await waitFor(async () => (await rows()).filter((s) => s.state === 'done').length >= 2, {
        what: 'two runs',
        timeoutMs: 90_000,
      });
      const roles = await Promise.all(daemons.map(async (d) => (await healthOf(d))[1].role));
      expect(roles.sort()).toEqual(['leading', 'standby']);
      const askedMs = performance.now();
      for (const daemon of daemons) daemon.kill('SIGTERM');
      for (const daemon of daemons) expect(await daemon.finished).toMatchObject({ exitCode: 0, signal: null });
      expect(performance.now() - askedMs).toBeLessThan(30_000);
      const all = await rows();
      const ran = all.filter((s) => s.run_id !== null);
      expect(ran.length).toBeGreaterThanOrEqual(2);
      expect(new Set(ran.map((s) => s.run_id)).size).toBe(ran.length);
      expect(all.filter((s) => s.state === 'started').length).toBeLessThanOrEqual(1);
      // Whatever else is in the database is the run that was left, not a second one of a due time.
      expect((await fleet.query('select id from crawlfleet_runs')).length).toBeLessThanOrEqual(ran.length + 1);
      expect(fleet.leftovers().filter((p) => p.command.includes('orchestrator.js'))).toEqual([]);
    },
  );
});
