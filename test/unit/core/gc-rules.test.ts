import { beforeEach, describe, expect, it } from 'vitest';
import { VirtualClock } from '../../support/virtual-clock.ts';
import { TAG } from '../../../orchestrator/core/cloud/compute.ts';
import { MemoryCompute } from '../../../orchestrator/core/simulation/cloud/memory-compute.ts';
import { MemoryLoadBalancer } from '../../../orchestrator/core/simulation/cloud/memory-load-balancer.ts';
import { collect, type GcMark, type GcOptions } from '../../../orchestrator/core/gc/gc.ts';
import type { RunRecord } from '../../../orchestrator/core/model/stores.ts';

const START = Date.UTC(2026, 10, 21, 2);
const MINUTE = 60_000;
const HOUR = 60 * MINUTE;

let clock: VirtualClock;
let compute: MemoryCompute;
let balancers: MemoryLoadBalancer;
let sightings: Map<string, GcMark>;
let runs: Map<string, RunRecord>;
let skewMs: number | null;
let launched = 0;

beforeEach(() => {
  clock = new VirtualClock(START);
  compute = new MemoryCompute({ clock });
  balancers = new MemoryLoadBalancer({ clock });
  sightings = new Map();
  runs = new Map();
  skewMs = 0;
});

const gc = (more: Partial<GcOptions> = {}) =>
  collect({
    owner: 'me',
    compute,
    balancers,
    runs: { get: (id) => Promise.resolve(runs.get(id) ?? null) },
    marks: {
      list: () => Promise.resolve([...sightings.values()]),
      note: (_, list, kept) => {
        for (const s of kept) sightings.delete(`${s.kind} ${s.id}`);
        for (const s of list) sightings.set(`${s.kind} ${s.id}`, s);
        return Promise.resolve();
      },
    },
    clock,
    skewMs: () => skewMs,
    workedOn: new Set(),
    dryRun: false,
    ...more,
  });

const TAGS = { [TAG.owner]: 'me', [TAG.run]: 'run-1', [TAG.expiresAt]: new Date(START + HOUR).toISOString() };

async function launch(tags: Record<string, string> = {}): Promise<string> {
  const result = await compute.launch({
    clientToken: `token-${++launched}`,
    instanceType: 't4g.nano',
    imageId: 'ami-1',
    subnetId: 'subnet-0000000a',
    securityGroupIds: [],
    instanceProfile: null,
    userData: '',
    tags: { ...TAGS, ...tags },
  });
  if (result.kind !== 'launched') throw new Error(result.message);
  return result.instance.id;
}

const ensure = (tags: Record<string, string> = {}) =>
  balancers.ensure({
    name: `cf-run-${++launched}`,
    vpcId: 'vpc-1',
    subnetIds: [],
    securityGroupIds: [],
    listenPort: 80,
    targetPort: 80,
    healthPath: '/',
    tags: { ...TAGS, ...tags },
  });

/** Like an endpoint that ignores filters. */
function withoutFilter(): MemoryCompute {
  const list = () => Promise.resolve(compute.all());
  return new Proxy(compute, { get: (of, key) => (key === 'list' ? list : Reflect.get(of, key)) });
}

const aRun = (phase: RunRecord['phase'], deadlineAtMs: number): RunRecord =>
  ({ id: 'run-1', phase, deadlineAtMs, settings: { run: { graceMs: 10 * MINUTE } } }) as RunRecord;

const pass = (ms: number) => clock.advance(ms);

/** An expired instance that a first gc has marked. */
async function marked(): Promise<string> {
  const id = await launch();
  await pass(HOUR + 1);
  await gc();
  return id;
}
const actions = async (more: Partial<GcOptions> = {}) => (await gc(more)).items.map((i) => i.action);

describe('F44 gc', () => {
  it('ends an expired instance and balancer one minute after marking them', async () => {
    await launch();
    await ensure();
    expect(await actions()).toEqual(['kept', 'kept']);
    await pass(HOUR + 1);
    expect(await actions()).toEqual(['marked', 'marked']);
    await pass(MINUTE - 1);
    expect(await actions()).toEqual(['waiting', 'waiting']);
    await pass(1);
    expect(await actions()).toEqual(['terminated', 'terminated']);
    expect(compute.alive()).toEqual([]);
    expect(balancers.names()).toEqual([]);
  });

  it.each([
    ['', () => compute, undefined],
    [', at an endpoint that ignores the filter', withoutFilter, 'its owner is other'],
  ])('never touches what is of another owner, without tags or with an unreadable expiry%s', async (_, listed, why) => {
    const kept = [
      await launch({ [TAG.owner]: 'other' }),
      await launch({ [TAG.run]: '' }),
      await launch({ [TAG.expiresAt]: 'tomorrow' }),
    ];
    await ensure({ [TAG.owner]: 'other' });
    await pass(2 * HOUR);
    await gc({ compute: listed() });
    await pass(2 * MINUTE);
    const { items } = await gc({ compute: listed() });
    expect(items.find((i) => i.id === kept[0])?.detail).toBe(why);
    expect(compute.alive().map((i) => i.id)).toEqual(kept);
    expect(balancers.names()).toHaveLength(1);
    expect(compute.calls.filter((c) => c.name === 'terminate')).toEqual([]);
  });

  it('lists instances that may be crawling for a run that this database does not know', async () => {
    const crawls = { [TAG.slot]: '0' };
    const ids = {
      unknown: await launch(crawls),
      known: await launch({ ...crawls, [TAG.run]: 'run-2' }),
      notACrawler: await launch(),
      ofSomebodyElse: await launch({ ...crawls, [TAG.owner]: 'other' }),
      gone: await launch(crawls),
    };
    await compute.terminate([ids.gone]);
    runs.set('run-2', { ...aRun('crawling', START + HOUR), id: 'run-2' });
    const { items } = await gc({ compute: withoutFilter() });
    expect(items).toHaveLength(5);
    expect(items.filter((i) => i.unknownRun).map((i) => i.id)).toEqual([ids.unknown]);
  });

  it('keeps a young instance, whatever its expiry tag', async () => {
    await launch({ [TAG.expiresAt]: new Date(START - HOUR).toISOString() });
    await pass(MINUTE - 1);
    expect((await gc()).items[0]).toMatchObject({ action: 'kept', detail: 'it is younger than a minute' });
    await pass(1);
    expect(await actions()).toEqual(['marked']);
  });

  it('keeps resources of a run in this database that is not over, or that a main server works on', async () => {
    await launch();
    await pass(HOUR + 1);
    runs.set('run-1', aRun('crawling', START + 2 * HOUR));
    expect((await gc()).items[0]).toMatchObject({ action: 'kept', detail: 'its run is not over' });
    await pass(2 * HOUR);
    expect((await gc({ workedOn: new Set(['run-1']) })).items[0]).toMatchObject({ action: 'kept' });
    // F42: the main server is gone permanently.
    expect(await actions()).toEqual(['marked']);
    await pass(MINUTE);
    expect(await actions()).toEqual(['terminated']);
    expect(compute.alive()).toEqual([]);
  });

  it.each([
    ['an hour ahead', -HOUR, 'ahead of'],
    ['an hour behind', HOUR, 'behind'],
  ])('does nothing when its clock is %s of that of the cloud', async (_, skew, word) => {
    await launch();
    await pass(3 * HOUR);
    skewMs = skew;
    const report = await gc();
    expect(report.refused).toContain(word);
    expect(report.items.map((i) => i.action)).toEqual(['kept']);
    expect(sightings.size).toBe(0);
  });

  it('uses the clock of the cloud within the five minutes of tolerance', async () => {
    await launch();
    await pass(HOUR + 2 * MINUTE);
    skewMs = -4 * MINUTE;
    expect(await actions()).toEqual(['kept']);
    skewMs = null;
    expect((await gc()).refused).toContain('does not send its time');
  });

  it('checks again immediately before it ends a resource', async () => {
    const id = await marked();
    await pass(MINUTE);
    let looks = 0;
    compute.onCall = (call) => {
      if (call.name === 'list' && ++looks === 2) runs.set('run-1', aRun('crawling', START + 9 * HOUR));
    };
    expect((await gc()).items).toMatchObject([{ id, action: 'kept', detail: 'its run is not over' }]);
    expect(compute.alive()).toHaveLength(1);
  });

  it('may fail between marking and ending: the next gc ends the resource', async () => {
    await marked();
    await pass(MINUTE);
    compute.onCall = (call) => {
      if (call.name === 'terminate') throw new Error('killed');
    };
    expect((await gc()).items).toMatchObject([{ action: 'failed', detail: 'killed' }]);
    compute.onCall = () => {};
    expect(await actions()).toEqual(['terminated']);
    expect(compute.alive()).toEqual([]);
  });

  it('reports in a dry run what it would do, and changes nothing', async () => {
    await launch();
    await pass(HOUR + 1);
    expect(await actions({ dryRun: true })).toEqual(['marked']);
    expect(sightings.size).toBe(0);
    await gc();
    await pass(MINUTE);
    expect(await actions({ dryRun: true })).toEqual(['terminated']);
    expect(compute.alive()).toHaveLength(1);
  });

  it('drops a mark when the resource is fine or gone', async () => {
    const id = await marked();
    expect(sightings.size).toBe(1);
    compute.kill(id);
    await gc();
    expect(sightings.size).toBe(0);
  });

  it('ignores a mark from the future', async () => {
    const id = await launch();
    await pass(HOUR + 1);
    sightings.set(`instance ${id}`, { kind: 'instance', id, firstSeenAtMs: clock.now() + HOUR });
    expect(await actions()).toEqual(['marked']);
  });
});
