/** Runs over several regions in a closed world, one of which fails, or has no room. */
import { describe, expect, it } from 'vitest';
import type { RunShape } from './run-stage.ts';
import { usualResult, WholeRun } from './whole-run.ts';

const [PARIS, MILAN, SPAIN] = ['eu-west-3', 'eu-south-1', 'eu-south-2'];
const SHAPE: RunShape = {
  products: 120,
  instances: 6,
  chunkSize: 2,
  intervalMs: 1_000,
  shares: { [PARIS]: 2, [MILAN]: 2, [SPAIN]: 2 },
};

const regionIn = (whole: WholeRun, region: string) => (region === PARIS ? whole.cloud : whole.cloud.others![region]!);

/**
 * Every call there fails from now on, the balancer is gone from the network, and all machines have lost their power.
 */
function failWhole(whole: WholeRun, region: string): void {
  const { compute, balancers } = regionIn(whole, region);
  // Launches were prepared before: a region that fails there is left out.
  const fail = ({ name }: { name: string }): void => {
    if (name !== 'subnets') throw new Error('ServiceUnavailable');
  };
  for (const machine of compute.alive()) compute.kill(machine.id);
  compute.onCall = balancers.onCall = fail;
  balancers.targetsBehind = () => null;
}

async function placesOf(whole: WholeRun): Promise<(string | undefined)[]> {
  return (await whole.instances()).map((r) => r.request.region);
}

async function expectComplete(whole: WholeRun): Promise<void> {
  expect(whole.record()).toMatchObject({ phase: 'completed', exitCode: 0 });
  const verdict = await whole.verdict();
  expect(verdict.differences).toEqual([]);
  expect(verdict.products).toMatchObject({ planned: 120, gone: 12, failed: 1, open: 0 });
  const stored = Array.from({ length: 120 }, (_, i) => usualResult({ n: i + 1, id: `p${i + 1}` }));
  expect(whole.rows()).toHaveLength(stored.filter((r) => r.outcome === 'stored').length);
}

const somePages = (whole: WholeRun) => () =>
  whole.fleet.instances.length === 6 && whole.fleet.instances.every((i) => i.fetched >= 4);

describe('a run over three regions', () => {
  it('launches the planned share in each, offers through every balancer, and leaves nothing behind', async () => {
    const whole = await WholeRun.open(SHAPE);
    await whole.play();
    await expectComplete(whole);
    expect(await placesOf(whole)).toEqual([PARIS, PARIS, MILAN, MILAN, SPAIN, SPAIN]);
    const shards = whole.fleet.instances.map((i) => i.fetched);
    expect(Math.max(...shards) - Math.min(...shards)).toBeLessThanOrEqual(SHAPE.chunkSize);
    expect(whole.record().balancers).toEqual({});
    for (const region of [PARIS, MILAN, SPAIN]) {
      expect(regionIn(whole, region).compute.alive()).toEqual([]);
      expect(regionIn(whole, region).balancers.names()).toEqual([]);
    }
    expect(whole.server!.alarms).toEqual([]);
  });

  it.each([MILAN, PARIS])('ends complete when %s fails whole in mid-crawl', async (region) => {
    const whole = await WholeRun.open(SHAPE);
    await whole.start();
    await whole.until('some pages', somePages(whole));
    failWhole(whole, region);
    await whole.untilEnd(1_800_000);
    await expectComplete(whole);
    const replaced = (await whole.instances()).filter((r) => r.epoch > 1);
    expect(replaced.map((r) => r.slot)).toEqual(region === PARIS ? [0, 1] : [2, 3]);
    expect(replaced.every((r) => r.request.region !== region)).toBe(true);
    expect(whole.server!.alarms.join('\n')).toContain(`AWS does not answer in ${region}`);
    expect(whole.server!.alarms.join('\n')).toContain(
      `AWS does not answer in ${region}, where this run may leave instances (2) and a load balancer (1)`,
    );
  });

  it('is taken up by another main server while a region is out, and ends complete', async () => {
    const whole = await WholeRun.open(SHAPE);
    const first = await whole.start();
    await whole.until('some pages', somePages(whole));
    failWhole(whole, MILAN);
    first.kill();
    await whole.pass(5_000);
    await whole.play(1_800_000);
    await expectComplete(whole);
    expect(whole.server!.alarms.join('\n')).toContain(`AWS does not answer in ${MILAN}`);
  });

  it('ends complete when a region fails before its first launch', async () => {
    const whole = await WholeRun.open(SHAPE);
    failWhole(whole, SPAIN);
    await whole.play(1_800_000);
    await expectComplete(whole);
    expect((await whole.instances()).filter((r) => r.instanceId !== null).map((r) => r.request.region)).not.toContain(
      SPAIN,
    );
  });

  it('keeps crawling where only the API of a region is out', async () => {
    const whole = await WholeRun.open(SHAPE);
    await whole.start();
    await whole.until('some pages', somePages(whole));
    regionIn(whole, MILAN).compute.onCall = regionIn(whole, MILAN).balancers.onCall = () => {
      throw new Error('ServiceUnavailable');
    };
    await whole.untilEnd(1_800_000);
    await expectComplete(whole);
    expect((await whole.instances()).every((r) => r.epoch === 1)).toBe(true);
  });

  it('launches elsewhere what a region refuses for its quota, without slowing the others down', async () => {
    const whole = await WholeRun.open(SHAPE);
    regionIn(whole, MILAN).compute.refusalOf = () => ({
      kind: 'refused',
      cause: 'quota',
      message: 'VcpuLimitExceeded',
    });
    await whole.play();
    await expectComplete(whole);
    const launched = (await whole.instances()).filter((r) => r.instanceId !== null);
    expect(launched).toHaveLength(6);
    expect(launched.map((r) => r.request.region)).not.toContain(MILAN);
  });
});
