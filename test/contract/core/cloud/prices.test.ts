/** Prices through the real SDK, from an endpoint that mimics AWS's price API and its failures. */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { systemClock } from '../../../../shared/adapters/system-clock.ts';
import { freshPrices, keptPrices } from '../../../../orchestrator/core/prepare/fresh-prices.ts';
import { hourlyPrice, PRICES_OF, servicePrices } from '../../../../orchestrator/core/plan/price-table.ts';
import { tempDir } from '../../../support/temp-dir.ts';
import { type Answer, type ScriptedEndpoint, startScriptedEndpoint } from './scripted-endpoint.ts';

const credentials = { accessKeyId: 'test', secretAccessKey: 'test' };
const TYPES = ['t4g.nano', 't3.nano'];

interface Question {
  ServiceCode: string;
  Filters: { Field: string; Value: string }[];
}

let folder: ReturnType<typeof tempDir>;
let server: ScriptedEndpoint;
/** USD by service or instance type. */
let usd: Record<string, string>;
let reply: ((question: Question) => Answer) | null;

beforeEach(async () => {
  folder = tempDir('crawlfleet-prices-');
  usd = { 't4g.nano': '0.0050000000', 't3.nano': '0.0061', AmazonVPC: '0.0055', gp3: '0.1', AWSELB: '0.03' };
  reply = null;
  server = await startScriptedEndpoint((call) => {
    const question = JSON.parse([...call.keys()][0]!) as Question;
    return (reply ?? priced)(question);
  });
});
afterEach(async () => {
  await server.stop();
  folder.remove();
});

const offer = (usagetype: string, unit: string, amount: string | undefined, instanceType?: string) => ({
  product: { attributes: { usagetype, ...(instanceType ? { instanceType } : {}) } },
  terms: {
    OnDemand: {
      'SKU.TERM': { priceDimensions: { 'SKU.TERM.RATE': { unit, beginRange: '0', pricePerUnit: { USD: amount } } } },
    },
  },
});

const offers = (regionCode: string, list: ReturnType<typeof offer>[]): Answer => ({
  status: 200,
  contentType: 'application/x-amz-json-1.1',
  body: JSON.stringify({
    FormatVersion: 'aws_v1',
    PriceList: list.map(({ product, terms }) =>
      JSON.stringify({ product: { attributes: { ...product.attributes, regionCode } }, terms }),
    ),
  }),
});

const regionOf = ({ Filters }: Question): string => Filters.find((f) => f.Field === 'regionCode')!.Value;

function priced(question: Question): Answer {
  const { ServiceCode, Filters } = question;
  const type = Filters.find((f) => f.Field === 'instanceType')?.Value;
  const region = regionOf(question);
  if (type)
    return offers(region, [
      offer(`APN1-BoxUsage:${type}`, 'Hrs', usd[`${region} ${type}`] ?? usd[type], type),
      offer(`APN1-BoxUsage:c7g.large`, 'Hrs', '9', 'c7g.large'),
      offer(`APN1-UnusedBox:${type}`, 'Hrs', '8', type),
    ]);
  if (ServiceCode === 'AmazonVPC') return offers(region, [offer('APN1-PublicIPv4:InUseAddress', 'Hrs', usd.AmazonVPC)]);
  if (ServiceCode === 'AmazonEC2') return offers(region, [offer('APN1-EBS:VolumeUsage.gp3', 'GB-Mo', usd.gp3)]);
  return offers(region, [
    offer('APN1-LoadBalancerUsage', 'Hrs', usd.AWSELB),
    offer('APN1-LCUUsage', 'LCU-Hrs', '0.009'),
    offer('APN1-ReservedLCUUsage', 'LCU-Hrs', '7'),
  ]);
}

const ask = (aheadMs = 0, timeoutMs?: number, regions = ['ap-northeast-1']) =>
  freshPrices({
    file: folder.file('prices.json'),
    clock: { ...systemClock, now: () => Date.UTC(2026, 10, 21) + aheadMs },
    regions,
    instanceTypes: TYPES,
    api: { endpoint: server.endpoint, credentials, ...(timeoutMs ? { timeoutMs } : {}) },
  });

describe('F45 prices', () => {
  it('are kept for a day for a plan that makes no call', async () => {
    const kept = (aheadMs: number, regions = ['ap-northeast-1']) =>
      keptPrices({
        file: folder.file('prices.json'),
        clock: { ...systemClock, now: () => Date.UTC(2026, 10, 21) + aheadMs },
        regions,
        instanceTypes: TYPES,
      });
    expect(kept(0)).toEqual({ lists: [], warnings: [] });
    const { lists } = await ask();
    const asked = server.calls.length;
    expect(kept(3_600_000)).toEqual({ lists, warnings: [] });
    expect(kept(25 * 3_600_000).lists).toEqual([]);
    expect(kept(0, ['us-east-1']).lists).toEqual([]);
    expect(server.calls).toHaveLength(asked);
  });

  it('come from the price API, dated, and replace the shipped ones', async () => {
    const { lists, warnings } = await ask();
    expect(warnings).toEqual([]);
    expect(lists).toEqual([
      {
        region: 'ap-northeast-1',
        of: '2026-11-21',
        hourly: { 't4g.nano': 0.005, 't3.nano': 0.0061 },
        ipv4Hour: 0.0055,
        gp3GbMonth: 0.1,
        balancerHour: 0.03,
        lcuHour: 0.009,
      },
    ]);
    expect(hourlyPrice('ap-northeast-1', 't4g.nano', lists).usd).toBe(0.005);
    expect(hourlyPrice('us-east-1', 't4g.nano', lists)).toEqual(hourlyPrice('us-east-1', 't4g.nano'));
    expect(servicePrices('ap-northeast-1', lists)).toMatchObject({ ipv4Hour: 0.0055, balancerHour: 0.03 });
    // The plan of a run that an earlier version began has one list.
    expect(hourlyPrice('ap-northeast-1', 't4g.nano', lists[0]).usd).toBe(0.005);
  });

  it('are kept for a day', async () => {
    const first = await ask();
    const calls = server.calls.length;
    expect(await ask(24 * 3_600_000 - 1)).toEqual(first);
    expect(server.calls).toHaveLength(calls);
    usd['t4g.nano'] = '0.0049';
    expect((await ask(24 * 3_600_000)).lists).toMatchObject([{ of: '2026-11-22', hourly: { 't4g.nano': 0.0049 } }]);
  });

  it.each([
    ['zero', '0'],
    ['negative', '-1'],
    ['no number', 'free'],
  ])('that are %s count as missing: the shipped ones are used', async (_, amount) => {
    usd['t3.nano'] = amount;
    const { lists, warnings } = await ask();
    expect(lists).toEqual([]);
    expect(warnings[0]).toContain(`prices are those of ${PRICES_OF}`);
  });

  it('that are ten times off are ignored one by one, with a warning, and not kept', async () => {
    usd['t3.nano'] = '5.2';
    usd.AWSELB = '0.0001';
    const { lists, warnings } = await ask();
    expect(lists[0]!.hourly).toEqual({ 't4g.nano': 0.005 });
    expect(hourlyPrice('ap-northeast-1', 't3.nano', lists)).toEqual(hourlyPrice('ap-northeast-1', 't3.nano'));
    expect(lists[0]).not.toHaveProperty('balancerHour');
    expect(warnings).toHaveLength(2);
    expect(warnings[0]).toContain('$5.2 for an hour of t3.nano');
    expect(existsSync(folder.file('prices.json'))).toBe(false);
  });

  it('of a service that the API returns in another form are the shipped ones', async () => {
    reply = (question) => (question.ServiceCode === 'AmazonVPC' ? offers('ap-northeast-1', []) : priced(question));
    const { lists, warnings } = await ask();
    expect(warnings).toEqual([]);
    expect(servicePrices('ap-northeast-1', lists).ipv4Hour).toBe(0.005);
  });

  it('are the shipped ones when the API refuses one of the questions, and are asked again', async () => {
    const throttled: Answer = { status: 400, body: '{"__type":"ThrottlingException","message":"slow"}' };
    reply = (question) => (question.ServiceCode === 'AWSELB' ? throttled : priced(question));
    const { lists, warnings } = await ask();
    expect(lists).toEqual([]);
    expect(warnings[0]).toContain(PRICES_OF);
    reply = null;
    expect((await ask()).lists).toHaveLength(1);
  });

  it.each<[string, () => Answer]>([
    ['refuses', () => ({ status: 400, body: '{"__type":"AccessDeniedException","message":"no"}' })],
    ['hangs', () => 'silence'],
    ['breaks off', () => 'reset'],
    ['answers nonsense', () => ({ status: 200, body: '<html>' })],
  ])('are the shipped ones, with their date, when the API %s', async (_, answer) => {
    reply = answer;
    const startedMs = performance.now();
    const { lists, warnings } = await ask(0, 1_000);
    expect(performance.now() - startedMs).toBeLessThan(4_000);
    expect(lists).toEqual([]);
    expect(warnings).toHaveLength(1);
    expect(warnings[0]).toContain(PRICES_OF);
    expect(warnings[0]).not.toContain('\n');
  });

  it('are those of each region of the run, and one region that fails has the shipped ones', async () => {
    const regions = ['ap-northeast-1', 'eu-west-1', 'us-east-1'];
    usd['eu-west-1 t4g.nano'] = '0.0047';
    const refused: Answer = { status: 400, body: '{"__type":"AccessDeniedException","message":"no"}' };
    reply = (question) => (regionOf(question) === 'us-east-1' ? refused : priced(question));
    const { lists, warnings } = await ask(0, undefined, regions);
    expect(lists.map(({ region, hourly }) => [region, hourly['t4g.nano']])).toEqual([
      ['ap-northeast-1', 0.005],
      ['eu-west-1', 0.0047],
    ]);
    expect(warnings).toHaveLength(1);
    expect(warnings[0]).toContain("AWS's price API did not answer for us-east-1 (");
    expect(hourlyPrice('us-east-1', 't4g.nano', lists)).toEqual(hourlyPrice('us-east-1', 't4g.nano'));

    reply = null;
    const calls = server.calls.length;
    const later = await ask(0, undefined, regions);
    expect(later.lists.map(({ region }) => region)).toEqual(regions);
    expect(server.calls.slice(calls).every((call) => [...call.keys()].join().includes('us-east-1'))).toBe(true);
    // A run in one region keeps the prices of the others.
    expect((await ask()).lists).toEqual(lists.slice(0, 1));
    expect(await ask(0, undefined, regions)).toEqual(later);
  });

  it('are requested again when the kept file is damaged', async () => {
    await ask();
    writeFileSync(folder.file('prices.json'), readFileSync(folder.file('prices.json'), 'utf8').slice(0, 40));
    expect((await ask()).lists).toHaveLength(1);
  });
});
