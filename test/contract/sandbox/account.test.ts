/** What the checks before a run query in AWS, by the real SDK: identity, quotas, routes, dry runs, bucket settings. */
import { ServiceQuotas } from '@aws-sdk/client-service-quotas';
import { STS } from '@aws-sdk/client-sts';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { defaultVolumeKey } from '../../../orchestrator/core/cloud/right-checks.ts';
import { launchInput } from '../../support/sandbox/boot.ts';
import { clientsFor, refusal, type SandboxClients } from '../../support/sandbox/clients.ts';
import { startSandbox, type TestSandbox } from '../../support/sandbox/start-sandbox.ts';

let sandbox: TestSandbox;
let clients: SandboxClients;
let sts: STS;
let quotas: ServiceQuotas;
const Bucket = 'settings';

beforeAll(async () => {
  sandbox = await startSandbox();
  clients = clientsFor(sandbox);
  const base = {
    endpoint: sandbox.endpoint,
    region: sandbox.region,
    credentials: { accessKeyId: 'test', secretAccessKey: 'test' },
    maxAttempts: 1,
  };
  sts = new STS(base);
  quotas = new ServiceQuotas(base);
  await clients.s3.createBucket({ Bucket, CreateBucketConfiguration: { LocationConstraint: 'ap-northeast-1' } });
});
afterAll(async () => {
  for (const client of [clients, sts, quotas]) client.destroy();
  await sandbox.stop();
});
afterEach(async () => {
  await sandbox.control('DELETE', 'conditions');
  await sandbox.control('DELETE', 'faults');
});

describe('STS', () => {
  it('returns our identity', async () => {
    expect(await sts.getCallerIdentity({})).toMatchObject({
      Account: '000000000000',
      Arn: 'arn:aws:iam::000000000000:root',
    });
  });

  it('refuses by rule, and answers other calls as unknown', async () => {
    await sandbox.control('POST', 'faults', [
      { what: 'error', action: 'GetCallerIdentity', code: 'ExpiredToken', count: 1 },
    ]);
    expect(await refusal(sts.getCallerIdentity({}))).toMatchObject({ code: 'ExpiredToken' });
    expect(await refusal(sts.getSessionToken({}))).toMatchObject({ code: 'InvalidAction' });
  });
});

describe('Service Quotas', () => {
  const ask = (QuotaCode: string) => quotas.getServiceQuota({ ServiceCode: 'ec2', QuotaCode });

  it('returns the vCPU quota of the conditions, and a large one without', async () => {
    expect((await ask('L-1216C47A')).Quota).toMatchObject({ Value: 10_000, Adjustable: true });
    await sandbox.control('PATCH', 'conditions', { vcpuQuota: 5 });
    expect((await ask('L-1216C47A')).Quota?.Value).toBe(5);
  });

  it('has no other quota and no other call', async () => {
    expect(await refusal(ask('L-00000000'))).toMatchObject({ code: 'NoSuchResourceException' });
    expect(await refusal(quotas.listServices({}))).toMatchObject({
      code: 'UnknownOperationException',
    });
  });
});

describe('DryRun', () => {
  it('answers DryRunOperation for what would be done, and does nothing', async () => {
    const input = { ...launchInput(), DryRun: true };
    expect(await refusal(clients.ec2.runInstances(input))).toEqual({
      code: 'DryRunOperation',
      status: 412,
    });
    expect(await refusal(clients.ec2.describeInstances({ DryRun: true }))).toEqual({
      code: 'DryRunOperation',
      status: 412,
    });
    expect((await clients.ec2.describeInstances({})).Reservations).toEqual([]);
  });

  it('validates the request first', async () => {
    const missing = 'i-00000000000000000';
    const calls = [
      clients.ec2.terminateInstances({ DryRun: true, InstanceIds: [missing] }),
      clients.ec2.getConsoleOutput({ DryRun: true, InstanceId: missing }),
      clients.ec2.createTags({ DryRun: true, Resources: [missing], Tags: [{ Key: 'a', Value: 'b' }] }),
    ];
    // Together: a call that fails while another one is awaited would be an unhandled rejection.
    const codes = (await Promise.all(calls.map(refusal))).map(({ code }) => code);
    expect(codes).toEqual(calls.map(() => 'InvalidInstanceID.NotFound'));
  });
});

describe('encryption of volumes', () => {
  it("is off, or on with the account's key as the conditions specify it", async () => {
    const { ec2 } = clients;
    expect((await ec2.getEbsEncryptionByDefault({})).EbsEncryptionByDefault).toBe(false);
    expect((await ec2.getEbsDefaultKmsKeyId({})).KmsKeyId).toBe('alias/aws/ebs');
    const { endpoint, region } = sandbox;
    const credentials = { accessKeyId: 'test', secretAccessKey: 'test' };
    expect(await defaultVolumeKey({ endpoint, region, credentials })).toBeNull();
    const ebsKmsKey = 'arn:aws:kms:ap-northeast-1:000000000000:key/k';
    await sandbox.control('PATCH', 'conditions', { ebsKmsKey });
    expect(await defaultVolumeKey({ endpoint, region, credentials })).toBe(ebsKmsKey);
  });
});

describe('route tables', () => {
  const routes = async (): Promise<object[]> => {
    const { RouteTables } = await clients.ec2.describeRouteTables({
      Filters: [{ Name: 'vpc-id', Values: ['vpc-0c0a0f1ee70000001'] }],
    });
    expect(RouteTables?.map((t) => t.Associations?.[0]?.Main)).toEqual([true]);
    return RouteTables?.[0]?.Routes ?? [];
  };

  it.each([
    ['internet-gateway', { GatewayId: expect.stringMatching(/^igw-/) as string }],
    ['nat-gateway', { NatGatewayId: expect.stringMatching(/^nat-/) as string }],
  ])('lead out by an %s when the conditions specify it', async (defaultRoute, way) => {
    await sandbox.control('PATCH', 'conditions', { defaultRoute });
    expect(await routes()).toEqual([
      expect.objectContaining({ GatewayId: 'local' }),
      expect.objectContaining({ DestinationCidrBlock: '0.0.0.0/0', ...way }),
    ]);
  });

  it('lead nowhere when the conditions specify it', async () => {
    await sandbox.control('PATCH', 'conditions', { defaultRoute: 'none' });
    expect(await routes()).toHaveLength(1);
  });
});

describe('a bucket', () => {
  const encryption = async () =>
    (await clients.s3.getBucketEncryption({ Bucket })).ServerSideEncryptionConfiguration?.Rules?.[0]
      ?.ApplyServerSideEncryptionByDefault?.SSEAlgorithm;

  it('is encrypted by default and as configured, until that is removed', async () => {
    expect(await encryption()).toBe('AES256');
    const Rules = [{ ApplyServerSideEncryptionByDefault: { SSEAlgorithm: 'aws:kms' as const } }];
    await clients.s3.putBucketEncryption({ Bucket, ServerSideEncryptionConfiguration: { Rules } });
    expect(await encryption()).toBe('aws:kms');
    await clients.s3.deleteBucketEncryption({ Bucket });
    expect(await encryption()).toBe('AES256');
  });

  it('blocks public access until that is removed', async () => {
    const ask = () => clients.s3.getPublicAccessBlock({ Bucket });
    expect((await ask()).PublicAccessBlockConfiguration?.RestrictPublicBuckets).toBe(true);
    await clients.s3.putPublicAccessBlock({ Bucket, PublicAccessBlockConfiguration: { BlockPublicAcls: true } });
    expect((await ask()).PublicAccessBlockConfiguration?.RestrictPublicBuckets).toBeUndefined();
    await clients.s3.deletePublicAccessBlock({ Bucket });
    expect(await refusal(ask())).toEqual({ code: 'NoSuchPublicAccessBlockConfiguration', status: 404 });
  });

  it('has lifecycle rules once they are put', async () => {
    const ask = () => clients.s3.getBucketLifecycleConfiguration({ Bucket });
    expect(await refusal(ask())).toEqual({ code: 'NoSuchLifecycleConfiguration', status: 404 });
    const rule = { ID: 'old', Status: 'Enabled' as const, Filter: { Prefix: 'runs/' }, Expiration: { Days: 30 } };
    await clients.s3.putBucketLifecycleConfiguration({ Bucket, LifecycleConfiguration: { Rules: [rule] } });
    expect((await ask()).Rules).toMatchObject([rule]);
  });

  it('is refused to a caller that expects another owner, in every call', async () => {
    const ExpectedBucketOwner = '111111111111';
    await clients.s3.headBucket({ Bucket, ExpectedBucketOwner: '000000000000' });
    expect((await refusal(clients.s3.headBucket({ Bucket, ExpectedBucketOwner }))).status).toBe(403);
    const list = clients.s3.listObjectsV2({ Bucket, ExpectedBucketOwner });
    expect(await refusal(list)).toEqual({ code: 'AccessDenied', status: 403 });
  });
});
