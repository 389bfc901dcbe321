/** Runs that are cancelled, stopped without their main server, and watched from another terminal. */
import { beforeEach, describe, expect, it } from 'vitest';
import { waitFor } from '../support/processes.ts';
import { endOf } from './fleet.ts';
import { useStage } from './stage.ts';

describe('ending a run early from another terminal', () => {
  // Far more to crawl than the other commands take to start and to act.
  const { fleet, open, crawl } = useStage({ products: 600 });

  beforeEach(() => open(undefined, { run: { deadline: '120s' } }, 'mysql'));

  const begin = async () => {
    const run = await crawl(20);
    const [row] = await fleet.query('select id from crawlfleet_runs');
    return { run, id: String(row!.id) };
  };

  it('F41 cancel ends a live run, publishes nothing, and leaves nothing behind', async () => {
    const { run, id } = await begin();
    const status = await fleet.run('status', '--json');
    expect(JSON.parse(status.stdout)).toMatchObject({ runs: [{ run: id }] });
    const watcher = fleet.start('watch', '--json');
    await waitFor(() => watcher.stderr().includes(' stored'), { what: 'the watcher to show the run' });
    const asked = await fleet.run('cancel', id, '--yes', '--json');
    expect(JSON.parse(asked.stdout), asked.stderr).toMatchObject({ requested: 'cancel' });
    expect(await endOf(run)).toMatchObject({ exitCode: 11, report: { state: 'cancelled', reason: 'cancelled' } });
    expect(JSON.parse((await watcher.finished).stdout)).toMatchObject({ run: id, state: 'cancelled' });
    expect(await fleet.query('select product_id from product_snapshots')).toEqual([]);
    expect(await fleet.query(`show tables like 'crawlfleet_staging%'`)).toEqual([]);
    expect(fleet.leftovers()).toEqual([]);
    expect((await fleet.run('verify', '--json')).exitCode).toBe(0);
    const logs = JSON.parse((await fleet.run('logs', '--json')).stdout) as { run: string; entries: unknown[] };
    expect(logs).toMatchObject({ run: id });
    expect(logs.entries.length).toBeGreaterThan(0);
    const cost = JSON.parse((await fleet.run('cost', id, '--json')).stdout) as { instances: unknown[] };
    expect(cost).toMatchObject({ run: id, final: true, dryRun: true });
    expect(cost.instances).toHaveLength(3);
  });

  /** Kills the main server of a run in the middle of it. */
  async function beginAndLose(): Promise<string> {
    const { run, id } = await begin();
    run.kill('SIGKILL');
    await run.finished;
    return id;
  }

  it('F42 cancel takes over from a main server that is gone', { tags: ['nightly'] }, async () => {
    const id = await beginAndLose();
    const { exitCode, report, stderr } = await endOf(fleet.start('cancel', id, '--yes', '--json'));
    expect(stderr).toContain('takes its place');
    expect(report).toMatchObject({ run: id, state: 'cancelled', reason: 'cancelled' });
    expect(exitCode).toBe(0);
    expect(await fleet.query('select product_id from product_snapshots')).toEqual([]);
    expect(fleet.leftovers()).toEqual([]);
  });

  it(
    'F42 a cancel that is left before the run has ended reports that, and can be repeated',
    { tags: ['nightly'] },
    async () => {
      const id = await beginAndLose();
      const left = fleet.start('cancel', id, '--yes', '--json');
      await waitFor(() => left.stderr().includes('goes on from'), { what: 'the cancel to take up the run' });
      left.kill('SIGTERM');
      expect((await left.finished).exitCode).toBe(11);
      const again = await endOf(fleet.start('cancel', id, '--yes', '--json'));
      expect(again).toMatchObject({ exitCode: 0, report: { run: id, state: 'cancelled', reason: 'cancelled' } });
      expect(fleet.leftovers()).toEqual([]);
    },
  );

  it('F42 stop takes over from a main server that is gone, and keeps the results', { tags: ['nightly'] }, async () => {
    const id = await beginAndLose();
    const stopped = await endOf(fleet.start('stop', '--json'));
    expect(stopped).toMatchObject({ exitCode: 0, report: { run: id, state: 'cancelled', reason: 'stopped' } });
    expect((await fleet.query('select product_id from product_snapshots')).length).toBeGreaterThan(10);
    expect(fleet.leftovers()).toEqual([]);
  });
});
