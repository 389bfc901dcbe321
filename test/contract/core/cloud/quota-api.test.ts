/** vCPU quotas through the real SDK, from an endpoint that mimics AWS and its failures. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { quotaFor } from '../../../../orchestrator/core/cloud/quota-api.ts';
import { quotaCodeOf } from '../../../../orchestrator/core/plan/quota-codes.ts';
import { type Answer, ec2Error, type ScriptedEndpoint, startScriptedEndpoint } from './scripted-endpoint.ts';

const credentials = { accessKeyId: 'test', secretAccessKey: 'test' };

let server: ScriptedEndpoint;
let quota: Answer;
let instances: Answer;
let asked: { ServiceCode: string; QuotaCode: string } | null;

const json = (status: number, body: unknown): Answer => ({
  status,
  contentType: 'application/x-amz-json-1.1',
  body: JSON.stringify(body),
});
const running = (list: { type: string; state?: string; spot?: boolean; cores?: number }[]): Answer => ({
  status: 200,
  body: `<DescribeInstancesResponse><reservationSet>${list
    .map(
      ({ type, state = 'running', spot, cores }, i) =>
        `<item><instancesSet><item><instanceId>i-${i}</instanceId><instanceType>${type}</instanceType>` +
        `<instanceState><name>${state}</name></instanceState>` +
        (spot ? '<instanceLifecycle>spot</instanceLifecycle>' : '') +
        (cores ? `<cpuOptions><coreCount>${cores}</coreCount><threadsPerCore>2</threadsPerCore></cpuOptions>` : '') +
        '</item></instancesSet></item>',
    )
    .join('')}</reservationSet></DescribeInstancesResponse>`,
});

beforeEach(async () => {
  asked = null;
  quota = json(200, { Quota: { QuotaCode: 'L-1216C47A', Value: 64 } });
  instances = running([]);
  server = await startScriptedEndpoint((call) => {
    const first = [...call.keys()][0] ?? '';
    if (!first.startsWith('{')) return instances;
    asked = JSON.parse(first) as typeof asked;
    return quota;
  });
});
afterEach(() => server.stop());

const ask = (change: { configured?: number; instanceTypes?: string[]; timeoutMs?: number } = {}) =>
  quotaFor({
    region: 'ap-northeast-1',
    endpoint: server.endpoint,
    credentials,
    configured: null,
    instanceTypes: ['t4g.nano', 't3.nano'],
    ...change,
  });

describe('the vCPU quota', () => {
  it('is what the API returns, with nothing to note when nothing runs', async () => {
    expect(await ask()).toEqual({
      vcpus: 64,
      quota: 64,
      inUse: 0,
      code: 'L-1216C47A',
      source: 'service-quotas',
      note: null,
    });
    expect(asked).toEqual({ ServiceCode: 'ec2', QuotaCode: 'L-1216C47A' });
  });

  it('is reduced by what runs or boots already, of the same quota, not of others and not what has ended', async () => {
    instances = running([
      { type: 't3.nano' },
      { type: 'm5.4xlarge', state: 'pending' },
      { type: 'c7g.unheard', cores: 3 },
      { type: 't3.large', state: 'terminated' },
      { type: 'm5.large', spot: true },
      { type: 'g5.xlarge' },
    ]);
    const found = await ask();
    expect(found).toMatchObject({ vcpus: 64 - 2 - 16 - 6, inUse: 24, quota: 64 });
    expect(found.note).toBe('Of 64 vCPUs in the quota L-1216C47A, 24 run already in ap-northeast-1: 40 are left.');
  });

  it('is never negative', async () => {
    quota = json(200, { Quota: { Value: 5 } });
    instances = running([{ type: 'm5.4xlarge' }]);
    expect(await ask()).toMatchObject({ vcpus: 0 });
  });

  it('is the configured one where it is set, without a call', async () => {
    expect(await ask({ configured: 12 })).toMatchObject({ vcpus: 12, source: 'aws.vcpu_quota', note: null });
    expect(server.calls).toHaveLength(0);
  });

  it.each([
    ['501', json(501, { message: 'not implemented' }), 'this endpoint has no such call'],
    ['UnknownOperation', json(400, { __type: 'UnknownOperationException' }), 'this endpoint has no such call'],
    ['InvalidAction', ec2Error('InvalidAction'), 'this endpoint has no such call'],
    [
      'denied',
      json(400, { __type: 'AccessDeniedException', message: 'no servicequotas:GetServiceQuota' }),
      'not allowed',
    ],
    ['unknown code', json(400, { __type: 'NoSuchResourceException' }), 'AWS does not know it here'],
    ['no value', json(200, {}), 'the answer has no value'],
  ])('is unknown, with a note, where the API is missing: %s', async (_, answer, why) => {
    quota = answer;
    const found = await ask();
    expect(found).toMatchObject({ vcpus: null, source: 'unknown' });
    expect(found.note).toContain(why);
    expect(found.note).toContain('aws.vcpu_quota');
  });

  it('does not wait for an endpoint that never answers', async () => {
    quota = 'silence';
    const found = await ask({ timeoutMs: 300 });
    expect(found).toMatchObject({ vcpus: null, source: 'unknown' });
  });

  it('is the whole quota, with a note, when running instances cannot be listed', async () => {
    instances = ec2Error('UnauthorizedOperation', 403);
    const found = await ask();
    expect(found).toMatchObject({ vcpus: 64, inUse: null });
    expect(found.note).toContain('not subtracted');
  });
});

describe('quotaCodeOf', () => {
  it.each([
    ['t4g.nano', 'L-1216C47A'],
    ['m7gd.large', 'L-1216C47A'],
    ['i4i.xlarge', 'L-1216C47A'],
    ['inf2.xlarge', 'L-1945791B'],
    ['hpc7g.4xlarge', 'L-F7808C92'],
    ['h1.2xlarge', 'L-1216C47A'],
    ['g5.xlarge', 'L-DB2E81BA'],
    ['trn1.2xlarge', 'L-2C3B7624'],
    ['t3.nano', 'L-1216C47A'],
    ['u-6tb1.metal', 'L-43DA4232'],
  ])('%s counts in %s', (type, code) => {
    expect(quotaCodeOf(type)).toBe(code);
  });
});
