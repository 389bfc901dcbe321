/**
 * `orchestrator hosts` from another terminal, while a run crawls many hosts: their own ledger shows what it did.
 *
 * @module-tag nightly
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { waitFor } from '../support/processes.ts';
import { type HostSpec } from '../support/sites/host-spec.ts';
import { eachEngine } from '../support/mariadb/database.ts';
import { endOf } from './fleet.ts';
import { type HostStage, openHostStage } from './host-fleet.ts';

const INTERVAL_MS = 500;
const PACE_MS = 5_000;
/** The next heartbeat of every instance, which comes after half a second, on a busy machine. */
const NEWS_MS = 3_000;
/** How far the moment of sending is from that of arrival, on a busy machine. */
const CLOCKS_MS = 250;

const HOSTS: readonly HostSpec[] = [
  { name: 'www.denied.test', pages: 80 },
  { name: 'paced.test', pages: 14 },
  { name: 'other.test', pages: 60 },
  { name: 'later.test', pages: 1 },
  { name: 'early.test', pages: 3 },
];

describe('orchestrator hosts', () => {
  eachEngine('in the sandbox', (_, engine) => {
    let stage: HostStage | null;

    beforeEach(async () => {
      stage = await openHostStage({
        hosts: HOSTS,
        engine,
        config: { site: { interval: `${INTERVAL_MS}ms` }, run: { deadline: '120s', min_instances: 2 } },
      });
    });
    afterEach(() => stage?.close());

    it('denies a host before the first run, another one in mid-run, and slows a third', async (context) => {
      if (stage === null) return context.skip('no mount namespace for this user');
      const { world, fleet } = stage;
      const early = await fleet.run('hosts', 'deny', 'early.test', '--json');
      expect(JSON.parse(early.stdout), early.stderr).toMatchObject({ host: 'early.test', denied: true });
      const run = fleet.start('run', '--dry-run', '--json');
      const isAsked = async (name: string): Promise<boolean> => (await world.ledger()).pagesOf(name).length >= 5;
      const what = 'five pages of each host';
      await waitFor(async () => (await isAsked('www.denied.test')) && (await isAsked('paced.test')), {
        what,
        timeoutMs: 60_000,
      });
      const denied = await fleet.run('hosts', 'deny', world.url('www.denied.test'), '--json');
      expect(denied.exitCode, denied.stderr).toBe(0);
      expect(JSON.parse(denied.stdout)).toMatchObject({ host: 'denied.test', denied: true });
      const deniedFromMs = (await world.nowMs()) + NEWS_MS;
      const paced = await fleet.run('hosts', 'pace', 'paced.test', `${PACE_MS}ms`, '--json');
      expect(JSON.parse(paced.stdout), paced.stderr).toMatchObject({ host: 'paced.test', paceMs: PACE_MS });
      const pacedFromMs = (await world.nowMs()) + NEWS_MS;
      await sleep(NEWS_MS);
      const shown = await fleet.run('hosts', 'show', 'denied.test', '--json');
      const status = JSON.parse((await fleet.run('status', '--hosts', '--json')).stdout) as Record<string, unknown>;
      const { exitCode, report, stderr } = await endOf(run);
      expect(exitCode, stderr).toBe(0);
      expect(JSON.parse(shown.stdout)).toMatchObject({ denied: true, last: { run: report.run, dryRun: true } });
      const paceMs = expect.closeTo(PACE_MS, -3) as number;
      const slowest = expect.objectContaining({ host: 'paced.test', gapMs: paceMs }) as object;
      expect(status).toMatchObject({ run: report.run, longest: expect.arrayContaining([slowest]) as object });
      const ledger = await world.ledger();
      const aheadMs = Date.now() - (await world.nowMs());
      const times = (name: string): number[] => ledger.requestsOf(name).map(({ atMs }) => atMs);
      expect(times('early.test')).toEqual([]);
      expect(times('www.denied.test').filter((ms) => ms > deniedFromMs)).toEqual([]);
      expect(times('other.test').filter((ms) => ms > deniedFromMs).length).toBeGreaterThan(10);
      const slow = times('paced.test').filter((ms) => ms > pacedFromMs);
      expect(slow.length).toBeGreaterThan(2);
      expect(Math.min(...slow.slice(1).map((ms, i) => ms - slow[i]!))).toBeGreaterThanOrEqual(PACE_MS);
      expect(ledger.groupsFasterThan(INTERVAL_MS)).toEqual([]);
      const items = await fleet.query(
        "select outcome, reason, detail from crawlfleet_items where path like '%denied.test%'",
      );
      const failed = items.filter(({ outcome }) => outcome === 'failed');
      expect(failed.length).toBeGreaterThan(20);
      for (const item of failed)
        expect(item).toMatchObject({ reason: 'redirect', detail: 'denied.test is denied (orchestrator hosts deny)' });
      expect(report.products).toMatchObject({ planned: 158, stored: 155 - failed.length, failed: failed.length + 3 });
      // Of the host that was denied in mid-run some records are stored.
      expect(report).toMatchObject({ hosts: { done: 4, givenUp: { redirect: 1 }, open: 0 } });
      const after = await fleet.run('hosts', 'show', 'paced.test', '--json');
      expect(JSON.parse(after.stdout)).toMatchObject({
        paceMs: PACE_MS,
        crawlDelayMs: null,
        last: { run: report.run, records: { records: 14, stored: 14, open: 0, failed: {} } },
      });
      // Its 14 pages and its robots.txt, in the pace that was asked for; of the other hosts none takes 41 seconds.
      const next = JSON.parse((await fleet.run('plan', '--dry-run', '--json')).stdout) as {
        manyHosts: { longestMs: number };
      };
      expect(next.manyHosts.longestMs).toBeGreaterThanOrEqual(14 * PACE_MS);
      for (const name of ['www.denied.test', 'paced.test', 'other.test', 'early.test']) {
        const all = ledger.requestsOf(name);
        const { nights } = JSON.parse((await fleet.run('hosts', 'show', name, '--json')).stdout) as {
          nights: { run: string; first: string; last: string; requests: number; intervalMs: number }[];
        };
        expect(nights.reduce((sum, { requests }) => sum + requests, 0)).toBe(all.length);
        const least = name === 'paced.test' ? PACE_MS : INTERVAL_MS;
        for (const { run: id, first, last, intervalMs } of nights) {
          expect({ id, intervalMs }).toEqual({ id: report.run, intervalMs: least });
          for (const iso of [first, last]) {
            const offMs = all.map(({ atMs }) => Math.abs(atMs + aheadMs - Date.parse(iso)));
            expect(Math.min(...offMs)).toBeLessThan(CLOCKS_MS);
          }
        }
      }
    });
  });
});
