/** The program's output is closed: a run continues and logs that; a command that only shows something ends. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { appendFileSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { waitFor } from '../support/processes.ts';
import { productIds } from '../support/shop/product.ts';
import { LAUNCHER } from './fleet.ts';
import { useFleet } from './stage.ts';

const IDS = productIds(12);
const config = { schedule: { cron: '0 2 * * *' }, server: { operator: '127.0.0.1:0' } };
const { fleet } = useFleet({ products: IDS.length }, { engine: 'sqlite', ids: IDS, config });

interface Unheard {
  child: ChildProcess;
  /** Its output while the pipes were open. */
  printed(): string;
  /** Closes both pipes, as a `head` that has read enough. */
  hangUp(): void;
  /** The exit code, or the signal. */
  ended: Promise<unknown>;
}

function start(...args: string[]): Unheard {
  const child = spawn(process.execPath, [LAUNCHER, ...args, '--config', fleet.configPath], {
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let text = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (data: Buffer) => (text += data.toString()));
  return {
    child,
    printed: () => text,
    hangUp() {
      child.stdout.destroy();
      child.stderr.destroy();
    },
    ended: once(child, 'exit').then(([code, signal]: unknown[]) => code ?? signal),
  };
}

it(
  'a run continues without output, and logs that; a command that only reads ends quietly with 0',
  { tags: ['nightly'] },
  async () => {
    const run = start('run', '--dry-run', '--yes');
    await waitFor(() => run.printed().includes('instances'), { what: 'the plan' });
    run.hangUp();
    expect(await run.ended).toBe(0);
    const [row] = await fleet.query('select id, phase from crawlfleet_runs');
    expect(row!.phase).toBe('completed');
    expect(await fleet.query('select count(*) as n from product_snapshots')).toEqual([{ n: IDS.length }]);
    const log = join(fleet.dir, '.crawlfleet', 'runs', String(row!.id), 'log.ndjson');
    expect(readFileSync(log, 'utf8')).toMatch(/stdout.*cannot be written.*EPIPE/);
    expect(fleet.leftovers()).toEqual([]);

    for (const args of [['status', String(row!.id)], ['explain'], ['logs'], ['cost'], ['plan', '--help']]) {
      const reading = start(...args);
      reading.hangUp();
      expect(await reading.ended, args.join(' ')).toBe(0);
    }
    // It would continue without end otherwise.
    const following = start('logs', '--follow');
    await waitFor(() => following.printed() !== '', { what: 'the log' });
    following.hangUp();
    appendFileSync(log, `${JSON.stringify({ level: 40, time: 1, msg: 'one more' })}\n`);
    expect(await following.ended).toBe(0);
    // The exit code of verify counts, even if the output is not read.
    await fleet.query('delete from product_snapshots');
    const verify = start('verify');
    verify.hangUp();
    expect(await verify.ended).toBe(13);
  },
);

it('a schedule continues without output, and from then on writes into its own file', async () => {
  const schedule = start('schedule', '--dry-run');
  await waitFor(() => schedule.printed().includes('health:'), { what: 'the schedule' });
  schedule.hangUp();
  schedule.child.kill('SIGTERM');
  expect(await schedule.ended).toBe(0);
  const journal = readFileSync(join(fleet.dir, '.crawlfleet', 'schedule', 'daemon.log'), 'utf8');
  expect(journal).toMatch(/^\S+Z ! std\w+ cannot be written any more.*EPIPE/m);
});
