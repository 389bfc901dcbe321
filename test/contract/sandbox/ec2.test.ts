/** The sandbox's EC2 through AWS's own SDK. */
import { paginateDescribeInstances } from '@aws-sdk/client-ec2';
import { describe, expect, it } from 'vitest';
import {
  SUBNETS,
  VPC,
  describe as describeInstance,
  inState,
  launch,
  launchInput,
} from '../../support/sandbox/boot.ts';
import { refusal, type SandboxClients } from '../../support/sandbox/clients.ts';
import type { TestSandbox } from '../../support/sandbox/start-sandbox.ts';
import { useSandbox } from './use-sandbox.ts';

let sandbox: TestSandbox;
let clients: SandboxClients;

useSandbox((made) => ({ sandbox, clients } = made));

const tagged = (key: string, value: string) => ({
  TagSpecifications: [{ ResourceType: 'instance' as const, Tags: [{ Key: key, Value: value }] }],
});

describe('launching', () => {
  it('answers pending without a public address, then runs with one of its own network', async () => {
    const launched = await launch(clients, tagged('case', 'pending'));
    expect(launched.State).toEqual({ Code: 0, Name: 'pending' });
    expect(launched.PublicIpAddress).toBeUndefined();
    const running = await inState(clients, launched.InstanceId!, 'running');
    expect(running.PublicIpAddress).toBe(running.PrivateIpAddress);
    expect(running.PublicIpAddress!.split('.').slice(0, 2)).toEqual(sandbox.network.split('.').slice(0, 2));
    expect(running.Placement?.AvailabilityZone).toBe('ap-northeast-1a');
    expect(running.Tags).toEqual([{ Key: 'case', Value: 'pending' }]);
  });

  it('launches MaxCount instances in one reservation', async () => {
    const reply = await clients.ec2.runInstances(launchInput({ MinCount: 2, MaxCount: 3 }));
    expect(reply.Instances).toHaveLength(3);
    expect(new Set(reply.Instances!.map((i) => i.PrivateIpAddress)).size).toBe(3);
  });

  it('returns the same instance for the same client token, until it is terminated', async () => {
    const again = { ClientToken: 'again' };
    const { InstanceId } = await launch(clients, again);
    expect((await launch(clients, again)).InstanceId).toBe(InstanceId);
    await clients.ec2.terminateInstances({ InstanceIds: [InstanceId!] });
    expect(await refusal(launch(clients, again))).toEqual({ code: 'IdempotentInstanceTerminated', status: 400 });
  });

  it('accepts the network interface form, without a public address on request', async () => {
    const launched = await launch(clients, {
      SubnetId: undefined,
      NetworkInterfaces: [{ DeviceIndex: 0, SubnetId: SUBNETS[1], AssociatePublicIpAddress: false }],
      MetadataOptions: { HttpTokens: 'required', HttpPutResponseHopLimit: 1 },
      IamInstanceProfile: { Name: 'crawl-instance' },
    });
    const running = await inState(clients, launched.InstanceId!, 'running');
    expect(running).toMatchObject({ SubnetId: SUBNETS[1], MetadataOptions: { HttpTokens: 'required' } });
    expect(running.PublicIpAddress).toBeUndefined();
    expect(running.IamInstanceProfile?.Arn).toMatch(/:instance-profile\/crawl-instance$/);
  });

  it.each([
    ['an unknown image', { ImageId: 'ami-00000000000000000' }, 'InvalidAMIID.NotFound'],
    ['a malformed image', { ImageId: 'debian' }, 'InvalidAMIID.Malformed'],
    ['an unknown subnet', { SubnetId: 'subnet-00000000' }, 'InvalidSubnetID.NotFound'],
    ['an unknown group', { SecurityGroupIds: ['sg-00000000'] }, 'InvalidGroup.NotFound'],
    ['an unknown type', { InstanceType: 'z9.huge' as 't3.nano' }, 'InvalidParameterValue'],
    ['a type of the other architecture', { InstanceType: 't4g.nano' as const }, 'InvalidParameterValue'],
    ['user data over 16 KB', { UserData: Buffer.alloc(16_385).toString('base64') }, 'InvalidParameterValue'],
    ['user data that is not base64', { UserData: 'hé' }, 'InvalidUserData.Malformed'],
    ['MaxCount under MinCount', { MinCount: 2, MaxCount: 1 }, 'InvalidParameterValue'],
    ['a reserved tag', tagged('aws:x', 'y'), 'InvalidParameterValue'],
    [
      'a subnet both at the top and in an interface',
      { NetworkInterfaces: [{ DeviceIndex: 0, SubnetId: SUBNETS[0] }] },
      'InvalidParameterCombination',
    ],
  ])('refuses %s', async (_what, changes, code) => {
    expect(await refusal(launch(clients, changes))).toEqual({ code, status: 400 });
  });
});

describe('listing', () => {
  it('filters by tag and state, and pages through every match once', async () => {
    await clients.ec2.runInstances(launchInput({ MinCount: 12, MaxCount: 12, ...tagged('run', 'r1') }));
    const Filters = [
      { Name: 'tag:run', Values: ['r?'] },
      { Name: 'instance-state-name', Values: ['pending', 'running'] },
    ];
    const seen: (string | undefined)[] = [];
    let pages = 0;
    for await (const page of paginateDescribeInstances({ client: clients.ec2, pageSize: 5 }, { Filters })) {
      seen.push(...page.Reservations!.flatMap((r) => r.Instances!.map((i) => i.InstanceId)));
      pages += 1;
    }
    expect(pages).toBe(3);
    expect(new Set(seen).size).toBe(12);
  });

  it.each([
    ['an unknown id', { InstanceIds: ['i-00000000000000000'] }, 'InvalidInstanceID.NotFound'],
    ['a malformed id', { InstanceIds: ['web-1'] }, 'InvalidInstanceID.Malformed'],
    ['ids together with MaxResults', { InstanceIds: ['i-00000000'], MaxResults: 5 }, 'InvalidParameterCombination'],
    ['an unknown filter', { Filters: [{ Name: 'colour', Values: ['red'] }] }, 'InvalidParameterValue'],
    ['a made-up page token', { NextToken: 'next' }, 'InvalidNextToken'],
    ['a page of one', { MaxResults: 1 }, 'InvalidParameterValue'],
  ])('refuses %s', async (_what, input, code) => {
    expect(await refusal(clients.ec2.describeInstances(input))).toEqual({ code, status: 400 });
  });

  it('shows user data and shutdown behaviour as they were given', async () => {
    const UserData = Buffer.from('#!/bin/sh\necho ü\n').toString('base64');
    const { InstanceId } = await launch(clients, { UserData });
    const of = (Attribute: 'userData' | 'instanceInitiatedShutdownBehavior') =>
      clients.ec2.describeInstanceAttribute({ InstanceId: InstanceId!, Attribute });
    expect((await of('userData')).UserData?.Value).toBe(UserData);
    expect((await of('instanceInitiatedShutdownBehavior')).InstanceInitiatedShutdownBehavior?.Value).toBe('stop');
  });

  it('shows an instance with its interface, its root volume, its credits, and whether it may be stopped', async () => {
    const { InstanceId } = await launch(clients);
    const { NetworkInterfaces, BlockDeviceMappings } = await inState(clients, InstanceId!, 'running');
    expect(NetworkInterfaces![0]!.Attachment).toMatchObject({ DeviceIndex: 0, Status: 'attached' });
    const VolumeId = BlockDeviceMappings![0]!.Ebs!.VolumeId!;
    const { Volumes } = await clients.ec2.describeVolumes({ VolumeIds: [VolumeId] });
    expect(Volumes).toMatchObject([{ VolumeId, VolumeType: 'gp3', Attachments: [{ InstanceId }] }]);
    const unknown = clients.ec2.describeVolumes({ VolumeIds: ['vol-0123456789abcdef0'] });
    expect(await refusal(unknown)).toEqual({ code: 'InvalidVolume.NotFound', status: 400 });
    const credits = await clients.ec2.describeInstanceCreditSpecifications({ InstanceIds: [InstanceId!] });
    expect(credits.InstanceCreditSpecifications).toEqual([{ InstanceId, CpuCredits: 'unlimited' }]);
    const stop = await clients.ec2.describeInstanceAttribute({ InstanceId, Attribute: 'disableApiStop' });
    expect(stop.DisableApiStop).toEqual({ Value: false });
  });

  it('shows two subnets in two zones of one default VPC, with its group', async () => {
    const subnets = await clients.ec2.describeSubnets({ Filters: [{ Name: 'default-for-az', Values: ['true'] }] });
    expect(subnets.Subnets?.map((s) => s.AvailabilityZone)).toEqual(['ap-northeast-1a', 'ap-northeast-1c']);
    const vpcs = await clients.ec2.describeVpcs({ Filters: [{ Name: 'is-default', Values: ['true'] }] });
    expect(vpcs.Vpcs?.map((v) => v.VpcId)).toEqual([VPC]);
    const names = await clients.ec2.describeVpcAttribute({ VpcId: VPC, Attribute: 'enableDnsHostnames' });
    expect(names.EnableDnsHostnames).toEqual({ Value: true });
    const groups = await clients.ec2.describeSecurityGroups({
      Filters: [
        { Name: 'vpc-id', Values: [VPC] },
        { Name: 'group-name', Values: ['default'] },
      ],
    });
    expect(groups.SecurityGroups).toHaveLength(1);
    const zones = await clients.ec2.describeAvailabilityZones({});
    expect(zones.AvailabilityZones).toHaveLength(3);
  });

  it('finds images by owner, name pattern and architecture', async () => {
    const reply = await clients.ec2.describeImages({
      Owners: ['amazon'],
      Filters: [
        { Name: 'name', Values: ['al2023-ami-2023.*'] },
        { Name: 'architecture', Values: ['arm64'] },
      ],
    });
    expect(reply.Images!.length).toBeGreaterThan(1);
    expect(reply.Images!.every((i) => i.Architecture === 'arm64' && i.State === 'available')).toBe(true);
  });

  it('returns the sizes of instance types', async () => {
    const reply = await clients.ec2.describeInstanceTypes({ InstanceTypes: ['t4g.nano', 't3.small'] });
    const sizes = reply.InstanceTypes!.map((t) => [t.InstanceType, t.VCpuInfo?.DefaultVCpus, t.MemoryInfo?.SizeInMiB]);
    expect(sizes).toHaveLength(2);
    expect(sizes).toContainEqual(['t3.small', 2, 2_048]);
    expect(sizes).toContainEqual(['t4g.nano', 2, 512]);
    const unknown = clients.ec2.describeInstanceTypes({ InstanceTypes: ['z9.huge' as 't3.nano'] });
    expect((await refusal(unknown)).code).toBe('InvalidInstanceType');
  });
});

describe('changing', () => {
  it('terminates: shutting-down, then terminated without addresses; a second call is accepted', async () => {
    const { InstanceId } = await launch(clients);
    await inState(clients, InstanceId!, 'running');
    const InstanceIds = [InstanceId!];
    const reply = await clients.ec2.terminateInstances({ InstanceIds });
    expect(reply.TerminatingInstances).toMatchObject([
      { CurrentState: { Name: 'shutting-down' }, PreviousState: { Name: 'running' } },
    ]);
    const terminated = await inState(clients, InstanceId!, 'terminated');
    expect(terminated.PublicIpAddress).toBeUndefined();
    expect(terminated.StateReason?.Code).toBe('Client.UserInitiatedShutdown');
    await clients.ec2.terminateInstances({ InstanceIds });
  });

  it('terminates none of a list with an unknown ID in it', async () => {
    const { InstanceId } = await launch(clients);
    const call = clients.ec2.terminateInstances({ InstanceIds: [InstanceId!, 'i-00000000000000000'] });
    expect((await refusal(call)).code).toBe('InvalidInstanceID.NotFound');
    await inState(clients, InstanceId!, 'running');
  });

  it('stops and starts; a stopped instance has no public address', async () => {
    const { InstanceId } = await launch(clients);
    const ids = { InstanceIds: [InstanceId!] };
    await inState(clients, InstanceId!, 'running');
    await clients.ec2.stopInstances(ids);
    const stopped = await inState(clients, InstanceId!, 'stopped');
    expect(stopped.PublicIpAddress).toBeUndefined();
    await clients.ec2.startInstances(ids);
    const running = await inState(clients, InstanceId!, 'running');
    expect(running.PublicIpAddress).toBeDefined();
    await clients.ec2.terminateInstances(ids);
    expect((await refusal(clients.ec2.startInstances(ids))).code).toBe('IncorrectInstanceState');
  });

  it('shows the status of running instances, and of others only on request', async () => {
    const { InstanceId } = await launch(clients);
    await inState(clients, InstanceId!, 'running');
    await clients.ec2.stopInstances({ InstanceIds: [InstanceId!] });
    await inState(clients, InstanceId!, 'stopped');
    const status = (IncludeAllInstances: boolean) =>
      clients.ec2.describeInstanceStatus({ InstanceIds: [InstanceId!], IncludeAllInstances });
    expect((await status(false)).InstanceStatuses).toEqual([]);
    expect((await status(true)).InstanceStatuses).toHaveLength(1);
  });

  it('adds, replaces and removes tags', async () => {
    const { InstanceId } = await launch(clients, tagged('a', '1'));
    const Resources = [InstanceId!];
    await clients.ec2.createTags({
      Resources,
      Tags: [
        { Key: 'a', Value: '2' },
        { Key: 'b', Value: 'ü & <x>' },
      ],
    });
    await clients.ec2.deleteTags({ Resources, Tags: [{ Key: 'a' }] });
    expect((await describeInstance(clients, InstanceId!)).Tags).toEqual([{ Key: 'b', Value: 'ü & <x>' }]);
    const listed = await clients.ec2.describeTags({ Filters: [{ Name: 'resource-id', Values: Resources }] });
    expect(listed.Tags).toMatchObject([{ Key: 'b', ResourceType: 'instance' }]);
    const unknown = clients.ec2.createTags({ Resources: ['i-00000000'], Tags: [{ Key: 'a', Value: '' }] });
    expect((await refusal(unknown)).code).toBe('InvalidInstanceID.NotFound');
  });
});

it('answers an unsupported call as AWS answers an unknown one', async () => {
  expect(await refusal(clients.ec2.describeRegions({}))).toEqual({
    code: 'InvalidAction',
    status: 400,
  });
});
