import { describe, expect, it } from 'vitest';
import { actualCost, type ActualInput, estimateCost } from '../../../../orchestrator/core/plan/prices.ts';
import { chooseInstanceType, describeInstanceType } from '../../../../orchestrator/core/plan/instance-types.ts';
import { hourlyPrice, servicePrices } from '../../../../orchestrator/core/plan/price-table.ts';

const HOUR = 3_600_000;
const lived = (ms: number, instanceType = 't4g.nano') => ({ instanceType, launchedAtMs: 0, endedAtMs: ms });
const run = (ms: number, change: Partial<ActualInput> = {}) =>
  actualCost({
    region: 'ap-northeast-1',
    instances: [lived(ms)],
    startedAtMs: 0,
    finishedAtMs: ms,
    products: 0,
    ...change,
  });

describe('actualCost', () => {
  it('bills an instance by the second, with its address and its volume, and the balancer by the hour', () => {
    const cost = run(HOUR);
    expect(cost).toMatchObject({ instances: 0.0054, ipv4: 0.005, currency: 'USD' });
    expect(cost.ebs).toBeCloseTo((8 * 0.096) / 730, 6);
    expect(cost.balancer).toBeCloseTo(0.0243, 3);
    expect(cost.total).toBeCloseTo(cost.instances + cost.ipv4 + cost.ebs + cost.balancer + cost.s3, 6);
  });

  it('bills the configured size of the volumes', () => {
    expect(run(HOUR, { volumeGb: 80 }).ebs).toBeCloseTo(10 * run(HOUR).ebs, 5);
  });

  it('bills a balancer of the user only for its traffic', () => {
    const made = run(HOUR);
    const own = run(HOUR, { ownBalancer: true });
    expect(own.balancer).toBeGreaterThan(0);
    expect(own.balancer).toBeLessThan(made.balancer / 50);
    expect(own.total).toBeCloseTo(made.total - made.balancer + own.balancer, 6);
  });

  it('bills at least a minute, and a started second in full', () => {
    const life = (ms: number) => run(HOUR, { instances: [lived(ms, 't3.medium')] }).instances;
    expect(life(1_000)).toBe(life(60_000));
    expect(life(60_001)).toBe(life(61_000));
    expect(life(61_000)).toBeGreaterThan(life(60_000));
  });

  it('bills a started hour of the balancer in full', () => {
    expect(run(1).balancer).toBe(run(HOUR).balancer);
    expect(run(HOUR + 1).balancer).toBeCloseTo(2 * run(HOUR).balancer, 6);
  });

  it('bills public addresses only for a balancer that the run created', () => {
    const internal = run(4 * HOUR);
    expect(run(4 * HOUR, { balancerAddresses: 2 }).balancer - internal.balancer).toBeCloseTo(2 * 4 * 0.005, 6);
    expect(run(4 * HOUR, { balancerAddresses: 2, ownBalancer: true })).toEqual(run(4 * HOUR, { ownBalancer: true }));
  });

  it('bills the started hour of a balancer without instances', () => {
    const nobody = { instances: [], balancerAddresses: 2 };
    expect(run(60_000, { ...nobody, hadBalancer: true }).total).toBeGreaterThan(0.0243);
    expect(run(60_000, nobody).total).toBe(0);
  });

  it('bills the worst-case CPU credits of T types when a browser is running', () => {
    const small = (type: string, browser: boolean) => run(4 * HOUR, { instances: [lived(4 * HOUR, type)], browser });
    // Two vCPUs, with a baseline of a fifth of each.
    expect(small('t4g.small', true).credits).toBeCloseTo(4 * 2 * 0.8 * 0.04, 6);
    expect(small('t3.small', true).credits).toBeCloseTo(4 * 2 * 0.8 * 0.05, 6);
    expect(small('m7g.medium', true).credits).toBe(0);
    const { credits, total, ...rest } = small('t4g.small', true);
    expect(small('t4g.small', false)).toEqual({ ...rest, total: expect.closeTo(total - credits!, 6) });
  });

  it('bills each instance at the price of its own type', () => {
    const mixed = run(HOUR, { instances: [lived(HOUR, 't4g.nano'), lived(HOUR, 't3.medium')] });
    expect(mixed.instances).toBeCloseTo(0.0054 + 0.0544, 6);
  });

  it('bills S3 requests, for at most one part per product', () => {
    expect(run(HOUR).s3).toBeLessThan(run(HOUR, { products: 5 }).s3);
    expect(run(HOUR, { products: 1_000_000 }).s3).toBe(run(HOUR, { products: 2_000_000 }).s3);
  });

  it('costs nothing when nothing was launched', () => {
    expect(run(HOUR, { instances: [] }).total).toBe(0);
  });
});

describe('estimateCost', () => {
  it('matches the actual cost of the same fleet', () => {
    const estimate = estimateCost({
      products: 100,
      region: 'eu-west-1',
      instanceType: 't3.nano',
      instances: 5,
      lifeMs: HOUR,
      balancerMs: HOUR,
      s3Puts: 0,
      s3Gets: 0,
    });
    const actual = run(HOUR, {
      region: 'eu-west-1',
      instances: Array.from({ length: 5 }, () => lived(HOUR, 't3.nano')),
    });
    expect({ ...estimate, s3: 0, total: 0 }).toEqual({ ...actual, s3: 0, total: 0 });
  });
});

describe('prices', () => {
  it.each([
    ['a region that is not listed', 'sa-east-1', 't4g.nano', 1.5 * 0.0054],
    ['a type that is not listed', 'us-east-1', 'm7g.medium', 1.5 * 2 * 8 * 0.0068],
  ])('are high, with a warning, for %s', (_, region, type, usd) => {
    const price = hourlyPrice(region, type);
    expect(price.usd).toBeCloseTo(usd, 6);
    expect(price.warning).toContain(type);
  });

  it('are never zero, even for an unknown type', () => {
    expect(hourlyPrice('mars-1', 'q9').usd).toBeGreaterThan(0);
    expect(servicePrices('mars-1').balancerHour).toBeGreaterThan(0);
    expect(servicePrices('mars-1').warning).toContain('mars-1');
    expect(servicePrices('us-east-1').warning).toBeNull();
  });

  it('of an unknown region are guesses only as far as no list has them', () => {
    const list = { region: 'mars-1', of: '2026-11-01', hourly: { 't4g.nano': 0.01 }, ipv4Hour: 0.005, gp3GbMonth: 0.1 };
    const complete = { ...list, balancerHour: 0.03, lcuHour: 0.01 };
    expect(servicePrices('mars-1', [complete]).warning).toContain('prices of S3 and of traffic in mars-1');
    expect(servicePrices('mars-1', [list]).warning).toBe(servicePrices('mars-1').warning);
  });

  it('have the date of the oldest ones', () => {
    const listOf = (region: string, of: string) => ({ region, of, hourly: {} });
    const prices = [listOf('eu-west-1', '2019-01-01'), listOf('us-east-1', '2018-01-01')];
    const instances = ['eu-west-1', 'us-east-1', 'ap-northeast-1'].map((region) => ({
      region,
      instanceType: 't4g.nano',
      launchedAtMs: 0,
      endedAtMs: 1,
    }));
    const times = { startedAtMs: 0, finishedAtMs: 1, products: 1 };
    expect(actualCost({ region: 'eu-west-1', prices, instances, ...times }).pricesOf).toBe('2018-01-01');
  });

  it('grow with the size of an unlisted type', () => {
    const usd = ['c7g.large', 'c7g.xlarge', 'c7g.4xlarge'].map((t) => hourlyPrice('us-east-1', t).usd);
    expect(usd).toEqual([...usd].sort((a, b) => a - b));
    expect(new Set(usd).size).toBe(3);
  });
});

describe('instance types', () => {
  it('chooses the cheapest type with enough memory, in any order', () => {
    expect(chooseInstanceType(['t3.small', 't3.nano', 't4g.nano'], 'ap-northeast-1').name).toBe('t4g.nano');
    expect(chooseInstanceType(['t3.small', 't3.nano', 't4g.small'], 'ap-northeast-1', 2).name).toBe('t4g.small');
    expect(chooseInstanceType(['t3.nano', 't3.micro'], 'ap-northeast-1', 64).name).toBe('t3.micro');
  });

  it.each([
    ['t4g.nano', 2, 'arm64'],
    ['t3.medium', 2, 'x86_64'],
    ['c7g.medium', 1, 'arm64'],
    ['c7gn.4xlarge', 16, 'arm64'],
    ['g4dn.xlarge', 4, 'x86_64'],
    ['m6i.large', 2, 'x86_64'],
    ['odd', 2, 'x86_64'],
  ])('reads %s as %i vCPUs, %s', (name, vcpus, architecture) => {
    expect(describeInstanceType(name)).toMatchObject({ name, vcpus, architecture });
  });
});
