import { afterEach, describe, expect, it } from 'vitest';
import type { LaunchRequest } from '../../../../orchestrator/core/cloud/compute.ts';
import { Ec2Compute } from '../../../../orchestrator/core/cloud/ec2-compute.ts';
import {
  type Answer,
  ec2Error,
  EMPTY_200,
  HTML_500,
  instancesPage,
  type ScriptedEndpoint,
  startScriptedEndpoint,
} from './scripted-endpoint.ts';

/** For what must succeed: one process is both server and client, and may be slow. */
const PATIENT_MS = 20_000;
/** For calls that only this limit ends. */
const IMPATIENT_MS = 300;
const limitFor = (answer: Answer) => ({ timeoutMs: answer === 'silence' ? IMPATIENT_MS : PATIENT_MS });

const RUN = { key: 'crawlfleet:run', value: 'run-1' };
const REQUEST: LaunchRequest = {
  clientToken: 'token-1',
  instanceType: 't4g.nano',
  imageId: 'ami-1',
  subnetId: 'subnet-1',
  securityGroupIds: ['sg-1', 'sg-2'],
  instanceProfile: 'crawl-instance',
  userData: '#!/bin/sh\n# 日本語\n',
  tags: { 'crawlfleet:run': 'run-1', Name: 'slot 1' },
};

describe('Ec2Compute against an endpoint that misbehaves', () => {
  let endpoint: ScriptedEndpoint | null = null;
  let compute: Ec2Compute | null = null;
  afterEach(async () => {
    compute?.close();
    await endpoint?.stop();
    endpoint = compute = null;
  });

  async function computeAt(
    answer: (call: URLSearchParams, n: number) => Answer,
    { maxAttempts = 1, timeoutMs = PATIENT_MS } = {},
  ) {
    endpoint = await startScriptedEndpoint(answer);
    const credentials = { accessKeyId: 'test', secretAccessKey: 'test' };
    compute = new Ec2Compute({
      region: 'ap-northeast-1',
      endpoint: endpoint.endpoint,
      credentials,
      timeoutMs,
      maxAttempts,
    });
    return { compute, calls: endpoint.calls };
  }

  it('names the configuration key when EC2 refuses its value as a name', async () => {
    const { compute } = await computeAt((call) => {
      const code = { DescribeImages: 'InvalidAMIID', DescribeSubnets: 'InvalidSubnetID' }[call.get('Action')!];
      return ec2Error(`${code ?? 'InvalidGroupId'}.Malformed`);
    });
    await expect(compute.image('foo', 'arm64')).rejects.toThrow(/^aws\.image: .*Malformed/);
    await expect(compute.subnets(['foo'])).rejects.toThrow(/^aws\.subnets: .*Malformed/);
    await expect(compute.securityGroups(['foo'], 'vpc-1')).rejects.toThrow(/^aws\.security_groups: .*Malformed/);
  });

  it('sends everything in the launch call itself', async () => {
    const { compute, calls } = await computeAt(() => ({
      status: 200,
      body: '<RunInstancesResponse><instancesSet><item><instanceId>i-1</instanceId></item></instancesSet></RunInstancesResponse>',
    }));
    expect(await compute.launch(REQUEST)).toMatchObject({
      kind: 'launched',
      instance: { id: 'i-1', state: 'pending' },
    });
    const call = Object.fromEntries(calls[0]!);
    expect(call).toMatchObject({
      Action: 'RunInstances',
      ClientToken: 'token-1',
      MinCount: '1',
      MaxCount: '1',
      ImageId: 'ami-1',
      InstanceType: 't4g.nano',
      InstanceInitiatedShutdownBehavior: 'terminate',
      'MetadataOptions.HttpTokens': 'required',
      'MetadataOptions.HttpPutResponseHopLimit': '1',
      'NetworkInterface.1.AssociatePublicIpAddress': 'true',
      'NetworkInterface.1.SubnetId': 'subnet-1',
      'NetworkInterface.1.SecurityGroupId.1': 'sg-1',
      'NetworkInterface.1.SecurityGroupId.2': 'sg-2',
      'IamInstanceProfile.Name': 'crawl-instance',
      'TagSpecification.1.ResourceType': 'instance',
      'TagSpecification.1.Tag.1.Value': 'run-1',
      'TagSpecification.2.ResourceType': 'volume',
      'TagSpecification.2.Tag.2.Value': 'slot 1',
      'TagSpecification.3.ResourceType': 'network-interface',
    });
    expect(Buffer.from(call.UserData!, 'base64').toString()).toBe(REQUEST.userData);
  });

  it('sends the settings of the root volume for the device that the image has it at', async () => {
    const image = '<item><imageId>ami-1</imageId><rootDeviceName>/dev/sda1</rootDeviceName></item>';
    const { compute, calls } = await computeAt((call) =>
      call.get('Action') === 'DescribeImages'
        ? { status: 200, body: `<DescribeImagesResponse><imagesSet>${image}</imagesSet></DescribeImagesResponse>` }
        : ec2Error('InsufficientInstanceCapacity'),
    );
    const kmsKey = 'arn:aws:kms:eu-west-1:1:key/k';
    await compute.launch({ ...REQUEST, volume: { sizeGb: 16, type: 'gp3', encrypted: true, kmsKey } });
    expect(Object.fromEntries(calls.at(-1)!)).toMatchObject({
      'BlockDeviceMapping.1.DeviceName': '/dev/sda1',
      'BlockDeviceMapping.1.Ebs.DeleteOnTermination': 'true',
      'BlockDeviceMapping.1.Ebs.VolumeSize': '16',
      'BlockDeviceMapping.1.Ebs.VolumeType': 'gp3',
      'BlockDeviceMapping.1.Ebs.Encrypted': 'true',
      'BlockDeviceMapping.1.Ebs.KmsKeyId': kmsKey,
    });
  });

  it.each([
    ['EC2 does not answer', 'reset', 'throttled'],
    ['the image has no such volume', { status: 200, body: '<DescribeImagesResponse/>' }, 'invalid'],
    ['the right is missing', ec2Error('UnauthorizedOperation', 403), 'denied'],
  ] as const)('launches nothing when %s before a launch with volume settings', async (_, answer, cause) => {
    const { compute, calls } = await computeAt(() => answer);
    expect(await compute.launch({ ...REQUEST, volume: { sizeGb: 16 } })).toMatchObject({ kind: 'refused', cause });
    expect(calls.map((call) => call.get('Action'))).not.toContain('RunInstances');
  });

  it.each([
    ['the reply is lost', 'reset'],
    ['no reply arrives', 'silence'],
    ['a gateway answers', EMPTY_200],
    ['a proxy answers', HTML_500],
    ['EC2 fails', ec2Error('InternalError', 500)],
    ['the token was used otherwise', ec2Error('IdempotentParameterMismatch')],
  ] as const)('reports an unknown launch outcome when %s', async (_, answer) => {
    const { compute } = await computeAt(() => answer, limitFor(answer));
    expect((await compute.launch(REQUEST)).kind).toBe('unknown');
  });

  it('follows all pages, including empty ones, and drops instances without the tag', async () => {
    const pages = [instancesPage(['i-1', 'i-2'], 'p2'), instancesPage([], 'p3'), instancesPage(['i-3'])];
    const { compute, calls } = await computeAt((_, n) => pages[n - 1]!);
    expect((await compute.list(RUN)).map((i) => i.id)).toEqual(['i-1', 'i-2', 'i-3']);
    expect(calls.map((c) => c.get('NextToken'))).toEqual([null, 'p2', 'p3']);
    expect(calls[0]!.get('Filter.1.Name')).toBe('tag:crawlfleet:run');
    expect(calls[0]!.has('InstanceId.1')).toBe(false);
  });

  it('drops instances of other owners when the endpoint ignores the filter', async () => {
    const { compute } = await computeAt(() => instancesPage(['i-1'], undefined, 'another-run'));
    expect(await compute.list(RUN)).toEqual([]);
  });

  it.each([
    ['an empty 200', EMPTY_200, 'aws-failed'],
    ['a page of HTML with 200', { status: 200, body: '<html>hello</html>', contentType: 'text/html' }, 'aws-failed'],
    ['500 with HTML', HTML_500, 'aws-capability-missing'],
    ['501', { status: 501, body: '' }, 'aws-capability-missing'],
    ['InvalidAction', ec2Error('InvalidAction'), 'aws-capability-missing'],
    ['a refusal', ec2Error('UnauthorizedOperation', 403), 'aws-denied'],
    ['silence', 'silence', 'aws-failed'],
  ] as const)('never takes %s for an empty list', async (_, answer, code) => {
    const { compute } = await computeAt(() => answer, limitFor(answer));
    await expect(compute.list(RUN)).rejects.toMatchObject({ code });
  });

  it('gives up on pages that never end', async () => {
    const { compute } = await computeAt(() => instancesPage([], 'again'));
    await expect(compute.list(RUN)).rejects.toMatchObject({ code: 'aws-failed' });
  });

  it('terminates one by one when one ID fails the list, and counts an unknown one as done', async () => {
    const { compute, calls } = await computeAt((call) =>
      call.has('InstanceId.2') || call.get('InstanceId.1') === 'i-2'
        ? ec2Error('InvalidInstanceID.NotFound')
        : { status: 200, body: '<TerminateInstancesResponse/>' },
    );
    await compute.terminate(['i-1', 'i-2', 'i-3']);
    expect(calls.map((c) => c.get('InstanceId.1'))).toEqual(['i-1', 'i-1', 'i-2', 'i-3']);
  });

  it('terminates the remaining instances before it reports that one is protected', async () => {
    const { compute, calls } = await computeAt((call) =>
      call.has('InstanceId.2') || call.get('InstanceId.1') === 'i-1'
        ? ec2Error('OperationNotPermitted')
        : { status: 200, body: '<TerminateInstancesResponse/>' },
    );
    await expect(compute.terminate(['i-1', 'i-2'])).rejects.toMatchObject({ code: 'aws-invalid' });
    expect(calls.at(-1)!.get('InstanceId.1')).toBe('i-2');
  });

  it('requests console output without Latest where the type does not support it', async () => {
    const { compute } = await computeAt((call) =>
      call.has('Latest')
        ? ec2Error('UnsupportedOperation')
        : {
            status: 200,
            body: `<GetConsoleOutputResponse><output>${Buffer.from('boot ü').toString('base64')}</output></GetConsoleOutputResponse>`,
          },
    );
    expect(await compute.consoleOutput('i-1')).toBe('boot ü');
  });
});
