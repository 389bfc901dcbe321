/**
 * Whole runs on a site that bans: the real control loop on a real database, with a fake fleet and virtual time. Other
 * instances crawl a banned address's products; when every address is banned, the whole fleet stops.
 */
import { describe, expect, it } from 'vitest';
import { buildReport } from '../../../orchestrator/core/act/results/finish.ts';
import { ProcessState } from '../../../orchestrator/core/model/process-state.ts';
import { ALLOW_ALL, aRun } from '../../unit/core/builders.ts';
import type { RunShape } from './run-stage.ts';
import { expectAllStored, expectFetchedOnce } from './soundness.ts';
import { WholeRun, usualResult } from './whole-run.ts';

const { site } = aRun().settings;

function shape(onBan: 'cool-down' | 'replace', change: Partial<RunShape> = {}) {
  const ban = { ...site.ban, coolDownMs: 1_800_000 };
  return { products: 60, instances: 3, chunkSize: 2, intervalMs: 1_000, site: { onBan, ban }, ...change };
}

let whole: WholeRun;

/** Every product with a right page is a row, the rest failed with this reason; nothing is left running. */
async function expectStopped(reason: string, phase: string, exitCode: number): Promise<void> {
  expect(whole.record()).toMatchObject({ phase, exitCode });
  expect(whole.record().balancers).toEqual({});
  const verdict = await whole.verdict();
  expect(verdict.differences).toEqual([]);
  const outcomes = await whole.outcomes();
  expect(outcomes.open).toBe(0);
  expect(outcomes.reasons[reason as 'banned']).toBeGreaterThan(0);
  const right = [...whole.fetches.keys()].filter((id) => outcomeOf(id) === 'stored').sort();
  expect(whole.rows().map((r) => r.product_id)).toEqual(right);
  expect(whole.cloud.compute.alive()).toEqual([]);
}

const outcomeOf = (id: string): string => usualResult({ n: Number(id.slice(1)), id }).outcome;

/** Crawls until every instance has a few pages. */
async function crawlAWhile(options: RunShape): Promise<void> {
  whole = await WholeRun.open(options);
  await whole.start();
  await whole.until('some pages of every instance', () => {
    const { instances } = whole.fleet;
    return instances.length === options.instances && instances.every((i) => i.fetched >= 4);
  });
}

const refuse = (...slots: number[]) => {
  whole.mood = (i) => (slots.includes(i.slot) ? 'ban' : 'fine');
};
const report = () =>
  buildReport({ ...whole.stores.of(whole.run.id), clock: whole.clock, processState: new ProcessState() });

describe('one banned address of three', () => {
  it('stops at once; other instances crawl its products, each once, and everything is stored', async () => {
    await crawlAWhile(shape('cool-down'));
    refuse(1);
    await whole.until('the ban', () => whole.fleet.of(1).incident !== null);
    const before = whole.requestsOf(whole.fleet.of(1)).length;
    await whole.untilEnd();
    await expectAllStored(whole);
    expect(whole.requestsOf(whole.fleet.of(1))).toHaveLength(before);
    expect(whole.machines()).toEqual(['0.1', '1.1', '2.1']);
    expectFetchedOnce(whole);
    expect(whole.server!.alarms).toEqual([
      expect.stringMatching(/slot 1: the site has banned 198.51.* \(status-403\)/),
    ]);
    expect((await report()).bans).toEqual([
      expect.objectContaining({
        slot: 1,
        epoch: 1,
        rule: 'status-403',
        overAtMs: null,
        evidence: expect.objectContaining({ status: 403, headers: { server: 'test' }, body: '<h1>Forbidden</h1>' }),
      }),
    ]);
  });
});

describe('on_ban: replace', () => {
  it('closes the banned epoch and fills the slot with another address, never more than planned at once', async () => {
    await crawlAWhile(shape('replace', { products: 120 }));
    whole.mood = (i) => (i.slot === 1 && i.epoch === 1 ? 'ban' : 'fine');
    let most = 0;
    await whole.until('the end', () => {
      most = Math.max(most, whole.cloud.compute.all().filter((m) => ['pending', 'running'].includes(m.state)).length);
      return whole.server!.ended !== null;
    });
    await expectAllStored(whole);
    expect(most).toBe(3);
    expect(whole.machines()).toEqual(['0.1', '1.1', '1.2', '2.1']);
    const [first] = (await whole.instances()).filter((i) => i.slot === 1);
    expect(first).toMatchObject({ epoch: 1, phase: 'terminated', reason: 'banned' });
    expectFetchedOnce(whole);
  });

  it('gives a fleet of one a second address before the ban ends the run', async () => {
    await crawlAWhile(shape('replace', { instances: 1 }));
    refuse(0);
    await whole.untilEnd();
    await expectStopped('banned', 'banned', 18);
    expect(whole.machines()).toEqual(['0.1', '0.2']);
  });
});

describe('the circuit', () => {
  it('opens when every address is banned: no further request, what is stored is published, exit code 18', async () => {
    await crawlAWhile(shape('cool-down'));
    refuse(0, 1, 2);
    await whole.until('the bans', () => whole.fleet.instances.every((i) => i.incident !== null));
    const requests = whole.fleet.instances.map((i) => whole.requestsOf(i).length);
    await whole.untilEnd();
    await expectStopped('banned', 'banned', 18);
    expect(whole.fleet.instances.map((i) => whole.requestsOf(i).length)).toEqual(requests);
    expect(whole.machines()).toEqual(['0.1', '1.1', '2.1']);
    expect(whole.record().reason).toMatch(/banned by the site: \d+ products not crawled/);
    expect(whole.server!.alarms.filter((a) => a.includes('every address'))).toHaveLength(1);
    expect((await report()).notes.join('\n')).toMatch(/banned 3 addresses \(status-403\)/);
  });

  it('stays open when another main server resumes the run', async () => {
    await crawlAWhile(shape('cool-down'));
    refuse(0, 1, 2);
    whole.life.decide = (name) => name === 'runs.setRequest' && 'after';
    await whole.untilDead();
    await whole.play();
    await expectStopped('banned', 'banned', 18);
  });

  it('is not opened after an earlier stop request, and a stop after long crawling loses no result', async () => {
    await crawlAWhile(shape('cool-down', { products: 200, deadlineMs: 480_000 }));
    await whole.until('a long crawl', () => whole.fleet.of(0).fetched > 40);
    await whole.stores.runs.setRequest(whole.run.id, 'stop');
    refuse(0, 1, 2);
    await whole.untilEnd();
    await expectStopped('cancelled', 'cancelled', 11);
    const instances = await whole.instances();
    expect(instances.map((i) => i.reason)).toEqual([null, null, null]);
  });
});

describe('a suspicion', () => {
  it('of every address means that the site has changed: the whole fleet stops, exit code 12', async () => {
    await crawlAWhile(shape('cool-down'));
    whole.mood = () => 'odd';
    await whole.untilEnd();
    await expectStopped('site-changed', 'failed', 12);
    expect((await report()).bans).toEqual([]);
    expect(whole.server!.alarms.filter((a) => a.includes('has changed. Crawling stops'))).toHaveLength(1);
  });
});

describe('robots.txt in a run', () => {
  const NONE = { ...ALLOW_ALL, version: 'none', access: 'none', source: 'HTTP 503' } as const;

  it('that cannot be read ends the run early with 17: the products are failed(robots)', async () => {
    whole = await WholeRun.open(shape('cool-down'));
    whole.robots = NONE;
    await whole.play();
    expect(whole.record()).toMatchObject({ phase: 'failed', exitCode: 17, request: 'site-down' });
    expect(whole.clock.now()).toBeLessThan(whole.record().startedAtMs + 180_000);
    expect(whole.server!.alarms.at(-1)).toContain('HTTP 503');
    expect((await whole.outcomes()).reasons).toEqual({ robots: 60 });
    expect(whole.fetches.size).toBe(0);
  });

  it('is not requested when it is to be ignored', async () => {
    const options = shape('cool-down');
    whole = await WholeRun.open({ ...options, site: { ...options.site, robots: 'ignore' } });
    await whole.play();
    await expectAllStored(whole);
    expect(whole.robotsReads).toBe(0);
  });
});
