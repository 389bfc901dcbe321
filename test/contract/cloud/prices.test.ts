/** Prices through the real SDK, from an endpoint that mimics AWS's price API and its failures. */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { systemClock } from '../../../shared/adapters/system-clock.ts';
import { freshPrices } from '../../../orchestrator/app/plan/fresh-prices.ts';
import { hourlyPrice, PRICES_OF, servicePrices } from '../../../orchestrator/plan/price-table.ts';
import { tempDir } from '../../support/temp-dir.ts';
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

const offer = (usagetype: string, unit: string, amount: string | undefined, instanceType?: string): string =>
  JSON.stringify({
    product: { attributes: { usagetype, regionCode: 'ap-northeast-1', ...(instanceType ? { instanceType } : {}) } },
    terms: {
      OnDemand: {
        'SKU.TERM': { priceDimensions: { 'SKU.TERM.RATE': { unit, beginRange: '0', pricePerUnit: { USD: amount } } } },
      },
    },
  });

const offers = (list: string[]): Answer => ({
  status: 200,
  contentType: 'application/x-amz-json-1.1',
  body: JSON.stringify({ FormatVersion: 'aws_v1', PriceList: list }),
});

function priced({ ServiceCode, Filters }: Question): Answer {
  const type = Filters.find((f) => f.Field === 'instanceType')?.Value;
  expect(Filters.find((f) => f.Field === 'regionCode')?.Value).toBe('ap-northeast-1');
  if (type)
    return offers([
      offer(`APN1-BoxUsage:${type}`, 'Hrs', usd[type], type),
      offer(`APN1-BoxUsage:c7g.large`, 'Hrs', '9', 'c7g.large'),
      offer(`APN1-UnusedBox:${type}`, 'Hrs', '8', type),
    ]);
  if (ServiceCode === 'AmazonVPC') return offers([offer('APN1-PublicIPv4:InUseAddress', 'Hrs', usd.AmazonVPC)]);
  if (ServiceCode === 'AmazonEC2') return offers([offer('APN1-EBS:VolumeUsage.gp3', 'GB-Mo', usd.gp3)]);
  return offers([
    offer('APN1-LoadBalancerUsage', 'Hrs', usd.AWSELB),
    offer('APN1-LCUUsage', 'LCU-Hrs', '0.009'),
    offer('APN1-ReservedLCUUsage', 'LCU-Hrs', '7'),
  ]);
}

const ask = (aheadMs = 0, timeoutMs?: number) =>
  freshPrices({
    file: folder.file('prices.json'),
    clock: { ...systemClock, now: () => Date.UTC(2026, 10, 21) + aheadMs },
    region: 'ap-northeast-1',
    instanceTypes: TYPES,
    api: { endpoint: server.endpoint, credentials, ...(timeoutMs ? { timeoutMs } : {}) },
  });

describe('F45 prices', () => {
  it('come from the price API, dated, and replace the shipped ones', async () => {
    const { list, warnings } = await ask();
    expect(warnings).toEqual([]);
    expect(list).toEqual({
      region: 'ap-northeast-1',
      of: '2026-11-21',
      hourly: { 't4g.nano': 0.005, 't3.nano': 0.0061 },
      ipv4Hour: 0.0055,
      gp3GbMonth: 0.1,
      balancerHour: 0.03,
      lcuHour: 0.009,
    });
    expect(hourlyPrice('ap-northeast-1', 't4g.nano', list).usd).toBe(0.005);
    expect(hourlyPrice('us-east-1', 't4g.nano', list)).toEqual(hourlyPrice('us-east-1', 't4g.nano'));
    expect(servicePrices('ap-northeast-1', list)).toMatchObject({ ipv4Hour: 0.0055, balancerHour: 0.03 });
  });

  it('are kept for a day', async () => {
    const first = await ask();
    const calls = server.calls.length;
    expect(await ask(24 * 3_600_000 - 1)).toEqual(first);
    expect(server.calls).toHaveLength(calls);
    usd['t4g.nano'] = '0.0049';
    expect((await ask(24 * 3_600_000)).list).toMatchObject({ of: '2026-11-22', hourly: { 't4g.nano': 0.0049 } });
  });

  it.each([
    ['zero', '0'],
    ['negative', '-1'],
    ['no number', 'free'],
  ])('that are %s count as missing: the shipped ones are used', async (_, amount) => {
    usd['t3.nano'] = amount;
    const { list, warnings } = await ask();
    expect(list).toBeNull();
    expect(warnings[0]).toContain(`prices are those of ${PRICES_OF}`);
  });

  it('that are ten times off are ignored one by one, with a warning, and not kept', async () => {
    usd['t3.nano'] = '5.2';
    usd.AWSELB = '0.0001';
    const { list, warnings } = await ask();
    expect(list!.hourly).toEqual({ 't4g.nano': 0.005 });
    expect(hourlyPrice('ap-northeast-1', 't3.nano', list)).toEqual(hourlyPrice('ap-northeast-1', 't3.nano'));
    expect(list).not.toHaveProperty('balancerHour');
    expect(warnings).toHaveLength(2);
    expect(warnings[0]).toContain('$5.2 for an hour of t3.nano');
    expect(existsSync(folder.file('prices.json'))).toBe(false);
  });

  it('of a service that the API returns in another form are the shipped ones', async () => {
    reply = (question) => (question.ServiceCode === 'AmazonVPC' ? offers([]) : priced(question));
    const { list, warnings } = await ask();
    expect(warnings).toEqual([]);
    expect(servicePrices('ap-northeast-1', list).ipv4Hour).toBe(0.005);
  });

  it.each<[string, () => Answer]>([
    ['refuses', () => ({ status: 400, body: '{"__type":"AccessDeniedException","message":"no"}' })],
    ['hangs', () => 'silence'],
    ['breaks off', () => 'reset'],
    ['answers nonsense', () => ({ status: 200, body: '<html>' })],
  ])('are the shipped ones, with their date, when the API %s', async (_, answer) => {
    reply = answer;
    const startedMs = performance.now();
    const { list, warnings } = await ask(0, 1_000);
    expect(performance.now() - startedMs).toBeLessThan(4_000);
    expect(list).toBeNull();
    expect(warnings).toHaveLength(1);
    expect(warnings[0]).toContain(PRICES_OF);
  });

  it('are requested again when the kept file is damaged', async () => {
    await ask();
    writeFileSync(folder.file('prices.json'), readFileSync(folder.file('prices.json'), 'utf8').slice(0, 40));
    expect((await ask()).list).not.toBeNull();
  });
});
