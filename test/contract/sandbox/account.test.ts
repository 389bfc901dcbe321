/** What the checks before a run query in AWS, by the real SDK: identity, quotas, routes, dry runs, bucket settings. */
import {
  CreateTagsCommand,
  DescribeInstancesCommand,
  DescribeRouteTablesCommand,
  GetConsoleOutputCommand,
  RunInstancesCommand,
  TerminateInstancesCommand,
} from '@aws-sdk/client-ec2';
import {
  DeleteBucketEncryptionCommand,
  DeletePublicAccessBlockCommand,
  GetBucketEncryptionCommand,
  GetBucketLifecycleConfigurationCommand,
  GetPublicAccessBlockCommand,
  HeadBucketCommand,
  ListObjectsV2Command,
  PutBucketEncryptionCommand,
  PutBucketLifecycleConfigurationCommand,
  PutPublicAccessBlockCommand,
  CreateBucketCommand,
} from '@aws-sdk/client-s3';
import { GetServiceQuotaCommand, ListServicesCommand, ServiceQuotasClient } from '@aws-sdk/client-service-quotas';
import { GetCallerIdentityCommand, GetSessionTokenCommand, STSClient } from '@aws-sdk/client-sts';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { launchInput } from '../../support/sandbox/boot.ts';
import { clientsFor, refusal, type SandboxClients } from '../../support/sandbox/clients.ts';
import { startSandbox, type TestSandbox } from '../../support/sandbox/start-sandbox.ts';

let sandbox: TestSandbox;
let clients: SandboxClients;
let sts: STSClient;
let quotas: ServiceQuotasClient;
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
  sts = new STSClient(base);
  quotas = new ServiceQuotasClient(base);
  await clients.s3.send(
    new CreateBucketCommand({ Bucket, CreateBucketConfiguration: { LocationConstraint: 'ap-northeast-1' } }),
  );
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
    expect(await sts.send(new GetCallerIdentityCommand({}))).toMatchObject({
      Account: '000000000000',
      Arn: 'arn:aws:iam::000000000000:root',
    });
  });

  it('refuses by rule, and answers other calls as unknown', async () => {
    await sandbox.control('POST', 'faults', [
      { what: 'error', action: 'GetCallerIdentity', code: 'ExpiredToken', count: 1 },
    ]);
    expect(await refusal(sts.send(new GetCallerIdentityCommand({})))).toMatchObject({ code: 'ExpiredToken' });
    expect(await refusal(sts.send(new GetSessionTokenCommand({})))).toMatchObject({ code: 'InvalidAction' });
  });
});

describe('Service Quotas', () => {
  const ask = (QuotaCode: string) => quotas.send(new GetServiceQuotaCommand({ ServiceCode: 'ec2', QuotaCode }));

  it('returns the vCPU quota of the conditions, and a large one without', async () => {
    expect((await ask('L-1216C47A')).Quota).toMatchObject({ Value: 10_000, Adjustable: true });
    await sandbox.control('PATCH', 'conditions', { vcpuQuota: 5 });
    expect((await ask('L-1216C47A')).Quota?.Value).toBe(5);
  });

  it('has no other quota and no other call', async () => {
    expect(await refusal(ask('L-00000000'))).toMatchObject({ code: 'NoSuchResourceException' });
    expect(await refusal(quotas.send(new ListServicesCommand({})))).toMatchObject({
      code: 'UnknownOperationException',
    });
  });
});

describe('DryRun', () => {
  it('answers DryRunOperation for what would be done, and does nothing', async () => {
    const input = { ...launchInput(), DryRun: true };
    expect(await refusal(clients.ec2.send(new RunInstancesCommand(input)))).toEqual({
      code: 'DryRunOperation',
      status: 412,
    });
    expect(await refusal(clients.ec2.send(new DescribeInstancesCommand({ DryRun: true })))).toEqual({
      code: 'DryRunOperation',
      status: 412,
    });
    expect((await clients.ec2.send(new DescribeInstancesCommand({}))).Reservations).toEqual([]);
  });

  it('validates the request first', async () => {
    const nobody = 'i-00000000000000000';
    const calls = [
      clients.ec2.send(new TerminateInstancesCommand({ DryRun: true, InstanceIds: [nobody] })),
      clients.ec2.send(new GetConsoleOutputCommand({ DryRun: true, InstanceId: nobody })),
      clients.ec2.send(new CreateTagsCommand({ DryRun: true, Resources: [nobody], Tags: [{ Key: 'a', Value: 'b' }] })),
    ];
    // Together: a call that fails while another one is awaited would be an unhandled rejection.
    const codes = (await Promise.all(calls.map(refusal))).map(({ code }) => code);
    expect(codes).toEqual(calls.map(() => 'InvalidInstanceID.NotFound'));
  });
});

describe('route tables', () => {
  const routes = async (): Promise<object[]> => {
    const { RouteTables } = await clients.ec2.send(
      new DescribeRouteTablesCommand({ Filters: [{ Name: 'vpc-id', Values: ['vpc-0c0a0f1ee70000001'] }] }),
    );
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
    (await clients.s3.send(new GetBucketEncryptionCommand({ Bucket }))).ServerSideEncryptionConfiguration?.Rules?.[0]
      ?.ApplyServerSideEncryptionByDefault?.SSEAlgorithm;

  it('is encrypted by default and as configured, until that is removed', async () => {
    expect(await encryption()).toBe('AES256');
    const Rules = [{ ApplyServerSideEncryptionByDefault: { SSEAlgorithm: 'aws:kms' as const } }];
    await clients.s3.send(new PutBucketEncryptionCommand({ Bucket, ServerSideEncryptionConfiguration: { Rules } }));
    expect(await encryption()).toBe('aws:kms');
    await clients.s3.send(new DeleteBucketEncryptionCommand({ Bucket }));
    expect(await encryption()).toBe('AES256');
  });

  it('blocks public access until that is removed', async () => {
    const ask = () => clients.s3.send(new GetPublicAccessBlockCommand({ Bucket }));
    expect((await ask()).PublicAccessBlockConfiguration?.RestrictPublicBuckets).toBe(true);
    await clients.s3.send(
      new PutPublicAccessBlockCommand({ Bucket, PublicAccessBlockConfiguration: { BlockPublicAcls: true } }),
    );
    expect((await ask()).PublicAccessBlockConfiguration?.RestrictPublicBuckets).toBeUndefined();
    await clients.s3.send(new DeletePublicAccessBlockCommand({ Bucket }));
    expect(await refusal(ask())).toEqual({ code: 'NoSuchPublicAccessBlockConfiguration', status: 404 });
  });

  it('has lifecycle rules once they are put', async () => {
    const ask = () => clients.s3.send(new GetBucketLifecycleConfigurationCommand({ Bucket }));
    expect(await refusal(ask())).toEqual({ code: 'NoSuchLifecycleConfiguration', status: 404 });
    const rule = { ID: 'old', Status: 'Enabled' as const, Filter: { Prefix: 'runs/' }, Expiration: { Days: 30 } };
    await clients.s3.send(
      new PutBucketLifecycleConfigurationCommand({ Bucket, LifecycleConfiguration: { Rules: [rule] } }),
    );
    expect((await ask()).Rules).toMatchObject([rule]);
  });

  it('is refused to a caller that expects another owner, in every call', async () => {
    const ExpectedBucketOwner = '111111111111';
    await clients.s3.send(new HeadBucketCommand({ Bucket, ExpectedBucketOwner: '000000000000' }));
    expect((await refusal(clients.s3.send(new HeadBucketCommand({ Bucket, ExpectedBucketOwner })))).status).toBe(403);
    const list = clients.s3.send(new ListObjectsV2Command({ Bucket, ExpectedBucketOwner }));
    expect(await refusal(list)).toEqual({ code: 'AccessDenied', status: 403 });
  });
});
