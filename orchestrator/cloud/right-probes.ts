/**
 * Whether the calls of a run would be allowed, without their effect: EC2's `DryRun`, and read-only calls. A permission
 * that cannot be checked this way is reported as unproved. Only for AWS and our own sandbox: other endpoints may
 * execute a dry run.
 */
import type { EC2Client } from '@aws-sdk/client-ec2';
import { classifyAwsError, toAppError, wouldSucceed } from './aws-errors.ts';
import type { LaunchRequest } from './compute.ts';
import { runInstancesInput } from './ec2-compute.ts';
import type { AwsOptions, Ec2 } from './sdk-clients.ts';
import { lazyEc2, lazyElbv2 } from './sdk-clients.ts';

/**
 * allowed   it would be executed, or was (reading)
 * denied    a policy refuses it
 * unproved  neither: the call named an instance that does not exist
 * pool      allowed, but there is no capacity or quota for it now
 * wrong     a parameter is refused
 * missing   the endpoint does not implement the call
 * failed    no answer
 */
type RightVerdict = 'allowed' | 'denied' | 'unproved' | 'pool' | 'wrong' | 'missing' | 'failed';

export interface RightAnswer {
  /** As written in a policy: `ec2:RunInstances`. */
  action: string;
  verdict: RightVerdict;
  /** AWS's message; empty when it is allowed. */
  message: string;
}

/** No account has it; EC2 assigns random ids. */
const NOBODY = 'i-00000000000000000';

/**
 * The calls of a run. ELBv2 queries EC2 for the groups of a VPC with the permissions of the creator of the load
 * balancer.
 * @param launch a launch as the run will make it, instance profile (iam:PassRole) and tags (ec2:CreateTags) included; null to leave it out
 * @param instanceId one of our own instances, to check permissions bound to its tags; null when there is none
 * @param balancerVpcId where a load balancer is to be created; null when none is
 */
export async function probeEc2Rights(
  options: AwsOptions,
  launch: LaunchRequest | null,
  instanceId: string | null,
  balancerVpcId: string | null,
): Promise<RightAnswer[]> {
  const lazy = lazyEc2(options);
  const InstanceId = instanceId ?? NOBODY;
  const own = instanceId === null ? 'nothing' : 'denial';
  const DryRun = true;
  try {
    const ec2 = await lazy.get();
    const { sdk } = ec2;
    const ask = askWith(ec2, options);
    return await Promise.all([
      ask('ec2:DescribeInstances', (client) =>
        client.send(new sdk.DescribeInstancesCommand({ DryRun, MaxResults: 5 })),
      ),
      ask('ec2:DescribeSubnets', (client) => client.send(new sdk.DescribeSubnetsCommand({ DryRun }))),
      ask('ec2:DescribeSecurityGroups', (client) => client.send(new sdk.DescribeSecurityGroupsCommand({ DryRun }))),
      ask('ec2:DescribeImages', (client) => client.send(new sdk.DescribeImagesCommand({ DryRun, Owners: ['self'] }))),
      ...(balancerVpcId === null
        ? []
        : [
            ask('ec2:GetSecurityGroupsForVpc', (client) =>
              client.send(new sdk.GetSecurityGroupsForVpcCommand({ DryRun, VpcId: balancerVpcId })),
            ),
          ]),
      ...(launch === null
        ? []
        : [
            ask('ec2:RunInstances', (client) =>
              client.send(new sdk.RunInstancesCommand({ ...runInstancesInput(launch), DryRun })),
            ),
          ]),
      ask(
        'ec2:TerminateInstances',
        (client) => client.send(new sdk.TerminateInstancesCommand({ DryRun, InstanceIds: [InstanceId] })),
        own,
      ),
      ask(
        'ec2:GetConsoleOutput',
        (client) => client.send(new sdk.GetConsoleOutputCommand({ DryRun, InstanceId })),
        own,
      ),
    ]);
  } finally {
    lazy.close();
  }
}

function askWith({ client }: Ec2, { endpoint }: AwsOptions) {
  return async (
    action: string,
    send: (client: EC2Client) => Promise<unknown>,
    proves: Proves = 'all',
  ): Promise<RightAnswer> => {
    try {
      await send(client);
      return { action, verdict: 'allowed', message: '' };
    } catch (error) {
      if (wouldSucceed(error)) return { action, verdict: 'allowed', message: '' };
      const { message } = toAppError(error, action, endpoint);
      return { action, verdict: verdictOf(error, proves), message };
    }
  };
}

/**
 * all      a refusal is real, and an invalid parameter is the run's
 * denial   it names an instance of ours, which may be gone by now: only a refusal proves something
 * nothing  it names an instance that does not exist: a refusal may be due to its missing tags
 */
type Proves = 'all' | 'denial' | 'nothing';

function verdictOf(error: unknown, proves: Proves): RightVerdict {
  const { kind } = classifyAwsError(error);
  switch (kind) {
    case 'credentials':
    case 'denied':
      return proves === 'nothing' ? 'unproved' : 'denied';
    case 'not-found':
    case 'invalid':
      return proves === 'all' ? 'wrong' : 'unproved';
    case 'capability-missing':
      return 'missing';
    case 'pool':
    case 'zone':
    case 'type':
    case 'quota':
      return 'pool';
    default:
      return 'failed';
  }
}

/** ELBv2's read-only calls; it has no dry run for the others. */
export async function probeElbRights(options: AwsOptions): Promise<RightAnswer[]> {
  const lazy = lazyElbv2(options);
  const ask = async (action: string, send: () => Promise<unknown>): Promise<RightAnswer> => {
    try {
      await send();
      return { action, verdict: 'allowed', message: '' };
    } catch (error) {
      const { message } = toAppError(error, action, options.endpoint);
      return { action, verdict: verdictOf(error, 'all'), message };
    }
  };
  try {
    const { sdk, client } = await lazy.get();
    return await Promise.all([
      ask('elasticloadbalancing:DescribeLoadBalancers', () =>
        client.send(new sdk.DescribeLoadBalancersCommand({ PageSize: 1 })),
      ),
      ask('elasticloadbalancing:DescribeTargetGroups', () =>
        client.send(new sdk.DescribeTargetGroupsCommand({ PageSize: 1 })),
      ),
    ]);
  } finally {
    lazy.close();
  }
}
