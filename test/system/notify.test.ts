/** Notices of real runs: during a run, at its end, when it never begins, and the dead man's switch. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { useReceiver } from './receiver.ts';
import { useStage } from './stage.ts';

describe('notify', () => {
  const { shop, fleet, open } = useStage({ products: 90 });
  const { url, paths, at, notices } = useReceiver('/secret');

  it(
    'reports a ban at once, and the end, to each target the events that it is configured for',
    { tags: ['nightly'] },
    async () => {
      const file = 'notice.json';
      const command = [process.execPath, '-e', `require('fs').writeFileSync('${file}', require('fs').readFileSync(0))`];
      await open(undefined, {
        notify: [
          { webhook: url('/all'), dry_runs: true },
          { slack: url('/slack'), on: ['banned'], dry_runs: true },
          { webhook: url('/never'), on: ['missed', 'held'], dry_runs: true },
          { webhook: url('/real') },
          { command, on: ['ended'], dry_runs: true },
        ],
        ping: { url: url('/ping'), dry_runs: true },
      });
      await shop.setBanPolicies([
        {
          when: { request: 6 },
          atMost: 1,
          answer: { type: 'status', status: 429, retryAfter: 'soon, please' },
        },
      ]);
      const { report } = await fleet.dryRun('--deadline', '60s');
      expect(report.bans).toHaveLength(1);
      const [alarm, end, ...more] = notices('/all');
      expect(more).toEqual([]);
      expect(alarm).toMatchObject({ event: 'alarm', kinds: ['banned'], run: report.run, good: false });
      expect(alarm!.text).toMatch(
        /the site bans 1 of \d addresses \(status-429\)\. Look at it with: orchestrator explain/,
      );
      expect(end).toMatchObject({ event: 'ended', run: report.run, exitCode: report.exitCode });
      expect(at('/slack')).toEqual([JSON.stringify({ text: alarm!.text.replaceAll('&', '&amp;') })]);
      expect([...at('/never'), ...at('/real')]).toEqual([]);
      expect(JSON.parse(readFileSync(join(fleet.dir, file), 'utf8'))).toEqual(end);
      const pings = ['/ping/start', report.exitCode === 0 ? '/ping' : '/ping/fail'];
      expect(paths().filter((path) => path.startsWith('/ping'))).toEqual(pings);
    },
  );

  it('reports a run that never began: a dead site, a list that has shrunk', { tags: ['nightly'] }, async () => {
    const targets = {
      notify: [{ webhook: url('/all'), dry_runs: true }, { webhook: url('/real') }],
      ping: { url: url('/ping'), dry_runs: true },
    };
    await open(undefined, { ...targets, products: { min_rows: 1_000 } });
    expect((await fleet.run('run', '--dry-run')).exitCode).toBe(13);
    await open(['a'], { ...targets, site: { product_url: 'http://127.0.0.1:9/{id}' } });
    expect((await fleet.run('run', '--dry-run')).exitCode).toBe(17);
    const [fewer, down] = notices('/all');
    expect(fewer).toMatchObject({ run: null, exitCode: 13, kinds: ['ended', 'failed', 'fewer'] });
    expect(down).toMatchObject({ run: null, exitCode: 17, kinds: ['ended', 'failed', 'site-down'] });
    expect(down!.hint).not.toBe('');
    expect(at('/ping/fail')).toHaveLength(2);
    expect(at('/real')).toEqual([]);
  });

  it('reports the end of a run, which keeps its exit code when a target rejects the notice', async () => {
    await open([], {
      products: { min_rows: 0 },
      notify: [
        { webhook: url('/all'), dry_runs: true },
        { webhook: url('/failed'), on: ['failed'], dry_runs: true },
        { webhook: url('/secret'), dry_runs: true },
        { webhook: url('/real') },
      ],
      ping: url('/ping'),
    });
    const { exitCode, report, stderr } = await fleet.dryRun();
    expect(exitCode).toBe(0);
    const untaken = `the webhook at ${new URL(url('/')).host} did not take a notice: it answered 404`;
    expect(report.notes).toEqual([untaken]);
    expect(stderr).toContain(`! ${untaken}`);
    expect(notices('/all')).toEqual([expect.objectContaining({ event: 'ended', run: report.run, due: [] })]);
    expect(notices('/all')[0]!.text).toMatch(/^DRY-RUN /);
    expect(paths().filter((path) => path !== '/all' && path !== '/secret')).toEqual([]);

    const tried = await fleet.run('notify', '--test', '--json');
    expect(tried.exitCode).toBe(4);
    const { targets } = JSON.parse(tried.stdout) as { targets: { ok: boolean }[] };
    expect(targets.map(({ ok }) => ok)).toEqual([true, true, false, true]);
    for (const path of ['/failed', '/real'])
      expect(notices(path)).toEqual([expect.objectContaining({ event: 'test' })]);
    expect(tried.stdout + tried.stderr).not.toContain('/secret');
  });
});
