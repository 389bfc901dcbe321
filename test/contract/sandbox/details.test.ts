/** The calls of third-party clients beyond those of our adapters, through AWS's own SDK. */
import {
  DescribeInstanceAttributeCommand,
  DescribeInstanceCreditSpecificationsCommand,
  DescribeVolumesCommand,
  DescribeVpcAttributeCommand,
} from '@aws-sdk/client-ec2';
import { GetBucketPolicyCommand, GetBucketVersioningCommand, CreateBucketCommand } from '@aws-sdk/client-s3';
import { describe, expect, it } from 'vitest';
import { VPC, inState, launch } from '../../support/sandbox/boot.ts';
import { refusal, type SandboxClients } from '../../support/sandbox/clients.ts';
import { useSandbox } from './use-sandbox.ts';

describe('details', () => {
  let clients: SandboxClients;

  useSandbox((made) => ({ clients } = made));

  it('of an instance: its network interface, its root volume, its credits, and whether it may be stopped', async () => {
    const { InstanceId } = await launch(clients);
    const { NetworkInterfaces, BlockDeviceMappings } = await inState(clients, InstanceId!, 'running');
    expect(NetworkInterfaces![0]!.Attachment).toMatchObject({ DeviceIndex: 0, Status: 'attached' });
    const VolumeId = BlockDeviceMappings![0]!.Ebs!.VolumeId!;
    const { Volumes } = await clients.ec2.send(new DescribeVolumesCommand({ VolumeIds: [VolumeId] }));
    expect(Volumes).toMatchObject([{ VolumeId, VolumeType: 'gp3', Attachments: [{ InstanceId }] }]);
    const credits = new DescribeInstanceCreditSpecificationsCommand({ InstanceIds: [InstanceId!] });
    expect((await clients.ec2.send(credits)).InstanceCreditSpecifications).toEqual([
      { InstanceId, CpuCredits: 'unlimited' },
    ]);
    const stop = new DescribeInstanceAttributeCommand({ InstanceId: InstanceId!, Attribute: 'disableApiStop' });
    expect((await clients.ec2.send(stop)).DisableApiStop).toEqual({ Value: false });
  });

  it('of an instance or a volume that does not exist are refused', async () => {
    const unknown = new DescribeVolumesCommand({ VolumeIds: ['vol-0123456789abcdef0'] });
    expect(await refusal(clients.ec2.send(unknown))).toEqual({ code: 'InvalidVolume.NotFound', status: 400 });
  });

  it('of the VPC', async () => {
    const ask = new DescribeVpcAttributeCommand({ VpcId: VPC, Attribute: 'enableDnsHostnames' });
    expect((await clients.ec2.send(ask)).EnableDnsHostnames).toEqual({ Value: true });
  });

  it('of a bucket with default settings', async () => {
    const Bucket = 'plain';
    const CreateBucketConfiguration = { LocationConstraint: 'ap-northeast-1' } as const;
    await clients.s3.send(new CreateBucketCommand({ Bucket, CreateBucketConfiguration }));
    expect((await clients.s3.send(new GetBucketVersioningCommand({ Bucket }))).Status).toBeUndefined();
    const policy = clients.s3.send(new GetBucketPolicyCommand({ Bucket }));
    expect(await refusal(policy)).toEqual({ code: 'NoSuchBucketPolicy', status: 404 });
    const nowhere = clients.s3.send(new GetBucketPolicyCommand({ Bucket: 'no-such-bucket' }));
    expect(await refusal(nowhere)).toEqual({ code: 'NoSuchBucket', status: 404 });
  });
});
