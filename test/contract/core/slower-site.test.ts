/**
 * A site or an operator asks for a slower pace in mid-run: the site gets no more than that, however late the run is.
 */
import { describe, expect, it } from 'vitest';
import { ALLOW_ALL, aRun } from '../../unit/core/builders.ts';
import type { RunShape } from './run-stage.ts';
import { type PaceRequest, operatorPace, resetPace } from '../../../orchestrator/core/decide/operator-pace.ts';
import { FleetSnapshot } from '../../../orchestrator/core/model/fleet-snapshot.ts';
import { WholeRun } from './whole-run.ts';

/** Two instances need 90 s of 160 for their 90 products each at one a second; at one every 4 s they need 360 s. */
const FLEET: RunShape = { products: 180, instances: 2, chunkSize: 2, intervalMs: 1_000, deadlineMs: 160_000 };
const SLOWER = { ...ALLOW_ALL, version: 'slower', crawlDelayMs: 4_000, source: 'http://127.0.0.1:1/robots.txt' };

let whole: WholeRun;
let requestsAtMs: number[];

async function open(shape: RunShape): Promise<void> {
  whole = await WholeRun.open(shape);
  requestsAtMs = [];
  whole.onRequest = () => void requestsAtMs.push(whole.clock.now());
}

/** From this moment on robots.txt asks for a request every 4 s; returns when every instance knows it. */
async function askForLess(): Promise<number> {
  const reads = whole.robotsReads;
  whole.robots = SLOWER;
  await whole.until('robots.txt to be read again', () => whole.robotsReads > reads);
  await whole.pass(5_000);
  return whole.clock.now();
}

/** Most requests of all addresses together within any 20 s after this moment. */
function mostIn20s(fromMs: number): number {
  const times = requestsAtMs.filter((ms) => ms >= fromMs);
  return times.reduce((most, from) => Math.max(most, times.filter((ms) => ms >= from && ms < from + 20_000).length), 0);
}

async function eventsOf(kind: string): Promise<string> {
  const events = await whole.stores.of(whole.run.id).run.events(1_000);
  return events.flatMap((e) => (e.kind === kind ? [e.detail ?? ''] : [])).join('\n');
}

describe('a Crawl-delay that rises in mid-run', () => {
  it('is not met by more addresses: the sum stays what those at work make of it, and the end says that the site asked for it', async () => {
    await open(FLEET);
    await whole.start();
    await whole.pass(15_000);
    const fromMs = await askForLess();
    await whole.untilEnd();
    // Two addresses, one request each per 4 s.
    expect(mostIn20s(fromMs)).toBeLessThanOrEqual(10);
    expect(whole.machines()).toEqual(['0.1', '1.1']);
    expect(whole.record()).toMatchObject({ phase: 'completed', exitCode: 15 });
    expect(whole.record().reason).toMatch(
      /deadline missed: \d+ products not crawled.*127\.0\.0\.1.*Crawl-delay from 1s to 4s/,
    );
    expect(await eventsOf('alarm')).toMatch(/asks for 4s between two requests.*no address is added/);
  });

  it('is kept by the next main server, though robots.txt no longer asks for it', async () => {
    await open(FLEET);
    await whole.start();
    await whole.pass(15_000);
    const fromMs = await askForLess();
    whole.server!.kill();
    whole.robots = ALLOW_ALL;
    await whole.pass(2_000);
    await whole.play();
    expect(mostIn20s(fromMs)).toBeLessThanOrEqual(10);
    expect(whole.machines()).toEqual(['0.1', '1.1']);
    expect(whole.record()).toMatchObject({ exitCode: 15, reason: expect.stringContaining('in mid-run') });
    expect((await eventsOf('alarm')).match(/no address is added/g)).toHaveLength(1);
  });

  it('is not exceeded by the replacement of an instance that fell silent', async () => {
    await open({ ...FLEET, instances: 3, deadlineMs: 240_000, products: 400 });
    await whole.start();
    await whole.pass(15_000);
    const fromMs = await askForLess();
    whole.fleet.of(1).freeze();
    await whole.untilEnd();
    expect(whole.machines()).toContain('1.2');
    expect(mostIn20s(fromMs)).toBeLessThanOrEqual(15);
  });

  it('is not exceeded by address rotation', async () => {
    await open({ ...FLEET, instances: 3, deadlineMs: 480_000, products: 700, recycleEveryMs: 120_000 });
    await whole.start();
    await whole.pass(15_000);
    const fromMs = await askForLess();
    await whole.untilEnd();
    expect(whole.machines().length).toBeGreaterThan(3);
    expect(mostIn20s(fromMs)).toBeLessThanOrEqual(15);
  });
});

/** As `orchestrator pace` does; returns when every instance knows it. */
async function pace(request: PaceRequest | 'reset'): Promise<number> {
  const { stores, run, clock } = whole;
  const record = (await stores.runs.get(run.id))!;
  const fleet = new FleetSnapshot(await stores.of(run.id).fleet.instances());
  const asked =
    request === 'reset' ? resetPace(record, clock.now()) : operatorPace(record, fleet, request, clock.now());
  expect(await stores.runs.setOperatorPace(run.id, asked)).toBe(true);
  await whole.pass(3_000);
  return clock.now();
}

const requestsIn = (fromMs: number, toMs: number): number =>
  requestsAtMs.filter((ms) => ms >= fromMs && ms < toMs).length;

describe('F60: an operator who slows a run', () => {
  it('is not met by more addresses: the sum stays, also under another main server, and the end says who asked for it', async () => {
    await open(FLEET);
    await whole.start();
    await whole.pass(15_000);
    const fromMs = await pace({ intervalMs: 4_000 });
    await whole.pass(20_000);
    whole.server!.kill();
    await whole.pass(2_000);
    await whole.play();
    expect(mostIn20s(fromMs)).toBeLessThanOrEqual(10);
    expect(whole.machines()).toEqual(['0.1', '1.1']);
    expect(whole.record()).toMatchObject({ phase: 'completed', exitCode: 15 });
    expect(whole.record().reason).toMatch(/because the operator asked for a slower pace: 4s between two requests/);
    const alarms = await eventsOf('alarm');
    expect(
      alarms.match(/the operator asks for another pace: 4s between two requests.*so the run will be late/g),
    ).toHaveLength(1);
  });

  it('slows instances that boot later, too, and replacements do not raise the sum', async () => {
    await open({ ...FLEET, instances: 3, deadlineMs: 240_000, products: 400 });
    await whole.start();
    await whole.pass(15_000);
    const fromMs = await pace({ intervalMs: 4_000 });
    whole.fleet.of(1).freeze();
    await whole.untilEnd();
    expect(whole.machines()).toContain('1.2');
    expect(mostIn20s(fromMs)).toBeLessThanOrEqual(15);
  });

  it('who resets it gets the configured pace again', async () => {
    await open({ ...FLEET, products: 120 });
    await whole.start();
    await whole.pass(15_000);
    await pace({ intervalMs: 20_000 });
    await whole.pass(20_000);
    const fromMs = await pace('reset');
    await whole.untilEnd();
    expect(requestsIn(fromMs, fromMs + 10_000)).toBeGreaterThanOrEqual(16);
    expect(whole.record()).toMatchObject({ phase: 'completed', exitCode: 0 });
    expect(await eventsOf('alarm')).toMatch(/1s between two requests of one address, as configured/);
  });
});

describe('a pause', () => {
  it('longer than the watchdog waits ends no run and loses no instance, and is not made up for by more addresses', async () => {
    await open({ ...FLEET, deadlineMs: 240_000, products: 360 });
    await whole.start();
    await whole.pass(15_000);
    const toMs = whole.clock.now() + 120_000;
    const fromMs = await pace({ pauseMs: 120_000 });
    await whole.untilEnd();
    expect(requestsIn(fromMs, toMs)).toBe(0);
    expect(requestsIn(toMs, toMs + 10_000)).toBeGreaterThanOrEqual(16);
    expect(mostIn20s(fromMs)).toBeLessThanOrEqual(40);
    expect(whole.machines()).toEqual(['0.1', '1.1']);
    expect(whole.record()).toMatchObject({ phase: 'completed', exitCode: 15 });
    const alarms = await eventsOf('alarm');
    expect(alarms).toMatch(/no request until .* UTC.*so the run will be late/);
    expect(alarms).not.toMatch(/no progress|silent|lost/);
  });

  it('ends at once when it is reset', async () => {
    await open({ ...FLEET, products: 100 });
    await whole.start();
    await whole.pass(15_000);
    const fromMs = await pace({ pauseMs: 3_600_000 });
    await whole.pass(30_000);
    expect(requestsIn(fromMs, whole.clock.now())).toBe(0);
    await pace('reset');
    await whole.untilEnd();
    expect(whole.record()).toMatchObject({ phase: 'completed', exitCode: 0 });
  });
});

describe('a second ban of an address', () => {
  it('rests it for twice as long as the first one', async () => {
    const { site } = aRun().settings;
    const ban = { ...site.ban, coolDownMs: 20_000 };
    await open({ ...FLEET, instances: 4, products: 600, site: { onBan: 'cool-down', ban } });
    const bannedAtMs = [20_000, 60_000];
    whole.mood = ({ slot }) =>
      slot === 0 && whole.elapsedMs() > (bannedAtMs[0] ?? Infinity) && bannedAtMs.shift() ? 'ban' : 'fine';
    await whole.start();
    await whole.untilEnd();
    const incidents = await whole.stores.of(whole.run.id).fleet.incidents();
    expect(incidents.map(({ atMs, untilMs }) => Math.round((untilMs! - atMs) / 1_000))).toEqual([20, 40]);
  });
});

describe('a ban with on_ban: replace', () => {
  it('is followed by one address for the banned one, and by no more though the run is late', async () => {
    await open({ ...FLEET, instances: 4, products: 480, site: { onBan: 'replace' } });
    let banned = false;
    whole.mood = ({ slot }) => {
      if (slot !== 2 || banned || whole.elapsedMs() < 15_000) return 'fine';
      banned = true;
      return 'ban';
    };
    await whole.start();
    await whole.pass(20_000);
    expect(banned).toBe(true);
    for (const instance of whole.fleet.instances) instance.pageMs = 4_000;
    await whole.untilEnd();
    expect(whole.machines()).toEqual(['0.1', '1.1', '2.1', '2.2', '3.1']);
    expect(whole.record().exitCode).toBe(15);
  });
});
