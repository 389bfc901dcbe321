/** Boots the test bundle the way the main server boots the real one: bundle in S3, presigned URL in the user data. */
import { type Instance, type RunInstancesCommandInput } from '@aws-sdk/client-ec2';
import { GetObjectCommand } from '@aws-sdk/client-s3';
import { getSignedUrl } from '@aws-sdk/s3-request-presigner';
import { eventually, type SandboxClients } from './clients.ts';
import { TEST_BUNDLE, TEST_BUNDLE_PORT, userDataFor } from './test-bundle.ts';

/** Fixed in every sandbox (sandbox/ec2/catalogue.ts). */
export const SUBNETS = ['subnet-0c0a0f1ee7000000a', 'subnet-0c0a0f1ee7000000c'] as const;
export const VPC = 'vpc-0c0a0f1ee70000001';

/** Puts the bundle into a bucket; returns the URL for the user data. */
export async function uploadBundle({ s3 }: SandboxClients, body: string | Uint8Array = TEST_BUNDLE): Promise<string> {
  const Bucket = 'bundles';
  await s3.createBucket({ Bucket, CreateBucketConfiguration: { LocationConstraint: 'ap-northeast-1' } });
  await s3.putObject({ Bucket, Key: 'bundle.tar.gz', Body: body });
  return getSignedUrl(s3, new GetObjectCommand({ Bucket, Key: 'bundle.tar.gz' }), { expiresIn: 600 });
}

/** The minimal input of RunInstances for one small instance. */
export function launchInput(changes: Partial<RunInstancesCommandInput> = {}): RunInstancesCommandInput {
  return { ImageId: IMAGE, InstanceType: 't3.nano', MinCount: 1, MaxCount: 1, SubnetId: SUBNETS[0], ...changes };
}

/** Debian for x86_64; the ID is derived from the name (sandbox/ec2/catalogue.ts). */
const IMAGE = 'ami-0c5a9500e086e5aea';

export async function launch(
  { ec2 }: SandboxClients,
  changes: Partial<RunInstancesCommandInput> = {},
): Promise<Instance> {
  const reply = await ec2.runInstances(launchInput(changes));
  return reply.Instances![0]!;
}

export async function describe({ ec2 }: SandboxClients, id: string): Promise<Instance> {
  const reply = await ec2.describeInstances({ InstanceIds: [id] });
  return reply.Reservations![0]!.Instances![0]!;
}

export function inState(clients: SandboxClients, id: string, state: string): Promise<Instance> {
  return eventually(`${id} to be ${state}`, async () => {
    const instance = await describe(clients, id);
    return instance.State?.Name === state ? instance : null;
  });
}

/** An instance that runs the test bundle and answers on its address. */
export async function boot(
  clients: SandboxClients,
  bundleUrl: string,
  changes: Partial<RunInstancesCommandInput> = {},
): Promise<{ id: string; url: string; instance: Instance }> {
  const { InstanceId } = await launch(clients, { UserData: userDataFor({ bundleUrl }), ...changes });
  const instance = await inState(clients, InstanceId!, 'running');
  const url = `http://${instance.PublicIpAddress}:${TEST_BUNDLE_PORT}`;
  await answers(`${url}/healthz`);
  return { id: InstanceId!, url, instance };
}

export async function answers(url: string): Promise<Response> {
  return eventually(`${url} to answer`, () => fetch(url).catch(() => null));
}
