/**
 * The account these keys belong to, and whether the calls of a run would be allowed, without their effect: EC2's `DryRun`, and read-only calls. A permission
 * that cannot be checked this way is reported as unproved. Only for AWS and our own sandbox: other endpoints may
 * execute a dry run.
 */
import { classifyAwsError, toAppError, wouldSucceed } from './aws-errors.ts';
import type { LaunchRequest } from './compute.ts';
import { runInstancesInput } from './ec2-compute.ts';
import { type AwsOptions, lazyEc2, lazyElbv2, withClient, callOnce, lazySts } from './sdk-clients.ts';

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
const NO_INSTANCE = 'i-00000000000000000';

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
  const InstanceId = instanceId ?? NO_INSTANCE;
  const own = instanceId === null ? 'nothing' : 'denial';
  const DryRun = true;
  return withClient(lazyEc2(options), async (ec2) => {
    const ask = (name: string, send: () => Promise<unknown>, proves?: Proves): Promise<RightAnswer> =>
      askRight(`ec2:${name}`, options, send, proves);
    const asks = [
      ask('DescribeInstances', () => ec2.describeInstances({ DryRun, MaxResults: 5 })),
      ask('DescribeSubnets', () => ec2.describeSubnets({ DryRun })),
      ask('DescribeSecurityGroups', () => ec2.describeSecurityGroups({ DryRun })),
      ask('DescribeImages', () => ec2.describeImages({ DryRun, Owners: ['self'] })),
    ];
    if (balancerVpcId !== null) {
      const VpcId = balancerVpcId;
      asks.push(ask('GetSecurityGroupsForVpc', () => ec2.getSecurityGroupsForVpc({ DryRun, VpcId })));
    }
    if (launch !== null)
      asks.push(
        ask('RunInstances', async () => ec2.runInstances({ ...(await runInstancesInput(ec2, launch)), DryRun })),
      );
    asks.push(ask('TerminateInstances', () => ec2.terminateInstances({ DryRun, InstanceIds: [InstanceId] }), own));
    asks.push(ask('GetConsoleOutput', () => ec2.getConsoleOutput({ DryRun, InstanceId }), own));
    return Promise.all(asks);
  });
}

async function askRight(
  action: string,
  { endpoint }: AwsOptions,
  send: () => Promise<unknown>,
  proves: Proves = 'all',
): Promise<RightAnswer> {
  try {
    await send();
  } catch (error) {
    if (!wouldSucceed(error))
      return { action, verdict: verdictOf(error, proves), message: toAppError(error, action, endpoint).message };
  }
  return { action, verdict: 'allowed', message: '' };
}

/**
 * all      a refusal is real, and an invalid parameter is the run's
 * denial   it names an instance of ours, which may be gone by now: only a refusal proves something
 * nothing  it names an instance that does not exist: a refusal may be due to its missing tags
 */
type Proves = 'all' | 'denial' | 'nothing';

function verdictOf(error: unknown, proves: Proves): RightVerdict {
  const { kind } = classifyAwsError(error);
  if (kind === 'credentials' || kind === 'denied') return proves === 'nothing' ? 'unproved' : 'denied';
  if (kind === 'not-found' || kind === 'invalid') return proves === 'all' ? 'wrong' : 'unproved';
  if (kind === 'capability-missing') return 'missing';
  return kind === 'pool' || kind === 'zone' || kind === 'type' || kind === 'quota' ? 'pool' : 'failed';
}

/** ELBv2's read-only calls; it has no dry run for the others. */
export function probeElbRights(options: AwsOptions): Promise<RightAnswer[]> {
  return withClient(lazyElbv2(options), (elb) =>
    Promise.all([
      askRight('elasticloadbalancing:DescribeLoadBalancers', options, () => elb.describeLoadBalancers({ PageSize: 1 })),
      askRight('elasticloadbalancing:DescribeTargetGroups', options, () => elb.describeTargetGroups({ PageSize: 1 })),
    ]),
  );
}

/**
 * The customer's KMS key that encrypts every new volume by the account's default; null when none does. Throws the AppError
 * of a refused call.
 */
export function defaultVolumeKey(options: AwsOptions): Promise<string | null> {
  return callOnce(lazyEc2, options, 'GetEbsEncryptionByDefault', async (ec2) => {
    if ((await ec2.getEbsEncryptionByDefault({})).EbsEncryptionByDefault !== true) return null;
    const { KmsKeyId = '' } = await ec2.getEbsDefaultKmsKeyId({});
    // Everyone in the account may use AWS's own key.
    return KmsKeyId === '' || KmsKeyId.endsWith('alias/aws/ebs') ? null : KmsKeyId;
  });
}

export interface Identity {
  /** Twelve digits. */
  account: string;
  /** User or assumed role. */
  arn: string;
}

/**
 * Throws `aws-denied` without keys or with keys that AWS rejects, `aws-capability-missing` at an endpoint without STS.
 */
export function whoAmI(options: AwsOptions): Promise<Identity> {
  return callOnce(lazySts, options, 'GetCallerIdentity', async (sts) => {
    const { Account, Arn } = await sts.getCallerIdentity();
    return { account: Account ?? 'unknown', arn: Arn ?? 'unknown' };
  });
}
