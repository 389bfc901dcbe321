/**
 * The main server is stopped for longer than an instance may be silent, and goes on: nothing is its instances' fault.
 *
 * @module-tag nightly
 */
import { setTimeout as delay } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { limitsFor } from '../../shared/domain/limits.ts';
import { ENGINES } from '../support/mariadb/database.ts';
import { productIds } from '../support/shop/product.ts';
import { endOf } from './fleet.ts';
import { expectAllStored } from './soundness.ts';
import { useStage } from './stage.ts';

/** Two minutes of crawling for three instances. */
const IDS = productIds(180);
const CONFIG = { site: { interval: '2s' }, run: { deadline: '6m', max_instances: 6 } };
const STANDSTILL_MS = 45_000;
/** A lease has expired by then: another main server may find its holder frozen. */
const LEASE_OVER_MS = 25_000;

describe.each(ENGINES)('F57: a main server on %s that stands still for 45 s in a run of 6 min', (engine) => {
  const { shop, fleet, open, crawl } = useStage({ products: IDS.length });

  it.each(['alone', 'while `resume` and `run` try to take over'])('%s, loses and launches nothing', async (what) => {
    expect(STANDSTILL_MS).toBeGreaterThan(2 * limitsFor(360_000).lostMs);
    await open(IDS, CONFIG, engine);
    const run = await crawl(20);
    run.kill('SIGSTOP');
    await delay(LEASE_OVER_MS);
    const others = what === 'alone' ? [] : [fleet.start('resume', '--json'), fleet.start('run', '--dry-run', '--json')];
    await delay(STANDSTILL_MS - LEASE_OVER_MS);
    const tried = await Promise.all(others.map(async (other) => (await other.finished).stdout));
    run.kill('SIGCONT');
    const codes = tried.map((stdout) => (JSON.parse(stdout) as { error: { code: string } }).error.code);
    expect(codes).toEqual(what === 'alone' ? [] : ['port-taken', 'run-unfinished']);
    const end = await endOf(run);
    const { instances, notes } = expectAllStored(end, IDS.length);
    expect(instances).toMatchObject({ planned: 3, launched: 3, replaced: 0, terminated: 3 });
    expect(notes).toContainEqual(expect.stringMatching(/this main server stood still for 4\d s/));
    const asked = (await shop.log()).filter((a) => a.id !== null).map((a) => a.path);
    expect(asked).toHaveLength(new Set(asked).size);
    expect((await fleet.run('verify', '--json')).exitCode).toBe(0);
  });
});
