/**
 * The account these keys belong to, and whether the calls of a run would be allowed, without their effect: EC2's
 * `DryRun`, and read-only calls. A permission that cannot be checked this way is reported as unproved. Only for AWS and
 * our own sandbox: other endpoints may execute a dry run.
 */
import { partitionOf } from '../../../shared/domain/partition.ts';
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
  /** The action as written in a policy: `ec2:RunInstances`. */
  action: string;
  verdict: RightVerdict;
  /** AWS's message; empty when it is allowed. */
  message: string;
  /** The launches that it is about, when others were answered otherwise. */
  places?: readonly string[];
}

/** No account has it; EC2 assigns random ids. */
const NO_INSTANCE = 'i-00000000000000000';

/**
 * The calls of a run. ELBv2 looks at the network of a new load balancer with the permissions of its creator.
 * @param launches as the run will make them, instance profile (iam:PassRole) and tags (ec2:CreateTags) included; all
 * have one answer
 * @param instanceId one of our own instances, to check permissions bound to its tags; null when there is none
 * @param balancerVpcId where a load balancer is to be created; null when none is
 */
export async function checkEc2Rights(
  options: AwsOptions,
  launches: readonly LaunchRequest[],
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
      asks.push(
        ask('GetSecurityGroupsForVpc', () => ec2.getSecurityGroupsForVpc({ DryRun, VpcId })),
        ask('DescribeAccountAttributes', () => ec2.describeAccountAttributes({ DryRun })),
        ask('DescribeAddresses', () => ec2.describeAddresses({ DryRun })),
        ask('DescribeInternetGateways', () => ec2.describeInternetGateways({ DryRun })),
        ask('DescribeVpcs', () => ec2.describeVpcs({ DryRun })),
      );
    }
    const askLaunch = (launch: LaunchRequest): Promise<RightAnswer> =>
      ask('RunInstances', async () => ec2.runInstances({ ...(await runInstancesInput(ec2, launch)), DryRun }));
    if (launches.length > 0)
      asks.push(Promise.all(launches.map(askLaunch)).then((answers) => answerFor(launches, answers)));
    asks.push(ask('TerminateInstances', () => ec2.terminateInstances({ DryRun, InstanceIds: [InstanceId] }), own));
    asks.push(ask('GetConsoleOutput', () => ec2.getConsoleOutput({ DryRun, InstanceId }), own));
    return Promise.all(asks);
  });
}

/** The worst answer; with the launches that got it, unless all did. */
function answerFor(launches: readonly LaunchRequest[], answers: readonly RightAnswer[]): RightAnswer {
  const worst = WORST_FIRST.flatMap((verdict) => answers.find((answer) => answer.verdict === verdict) ?? [])[0]!;
  const places = launches.filter((_, i) => answers[i]!.verdict === worst.verdict);
  if (places.length === launches.length) return worst;
  return { ...worst, places: places.map(({ instanceType, subnetId }) => `${instanceType} in ${subnetId}`) };
}

/** A place without room is no news while another has some: not every zone has every type. */
const WORST_FIRST: readonly RightVerdict[] = ['denied', 'wrong', 'failed', 'unproved', 'missing', 'allowed', 'pool'];

async function askRight(
  action: string,
  { endpoint }: AwsOptions,
  send: () => Promise<unknown>,
  proves: Proves = 'all',
): Promise<RightAnswer> {
  try {
    await send();
  } catch (error) {
    const verdict = wouldSucceed(error) ? 'allowed' : verdictOf(error, proves);
    if (verdict !== 'allowed') return { action, verdict, message: toAppError(error, action, endpoint).message };
  }
  return { action, verdict: 'allowed', message: '' };
}

/**
 * all      a refusal is real, and an invalid parameter is the run's
 * denial   it names an instance of ours, which may be gone by now: only a refusal proves something
 * nothing  it names an instance that does not exist: a refusal may be due to its missing tags
 * absence  it names a resource that does not exist and looks at no tags: it is allowed if AWS says that there is none
 */
type Proves = 'all' | 'denial' | 'nothing' | 'absence';

function verdictOf(error: unknown, proves: Proves): RightVerdict {
  const { kind } = classifyAwsError(error);
  if (kind === 'credentials' || kind === 'denied') return proves === 'nothing' ? 'unproved' : 'denied';
  if (proves === 'absence' && (kind === 'not-found' || kind === 'invalid')) return 'allowed';
  if (kind === 'not-found' || kind === 'invalid') return proves === 'all' ? 'wrong' : 'unproved';
  if (kind === 'capability-missing') return 'missing';
  return kind === 'pool' || kind === 'zone' || kind === 'type' || kind === 'quota' ? 'pool' : 'failed';
}

/**
 * ELBv2's read-only calls; it has no dry run for the others, and a policy that goes by tags refuses them for a resource
 * that does not exist.
 */
export function checkElbRights(options: AwsOptions, account: string): Promise<RightAnswer[]> {
  const place = `arn:${partitionOf(options.region).name}:elasticloadbalancing:${options.region}:${account}`;
  // No account has them; ELBv2 assigns random ids.
  const LoadBalancerArn = `${place}:loadbalancer/app/crawlfleet-none/0000000000000000`;
  const TargetGroupArn = `${place}:targetgroup/crawlfleet-none/0000000000000000`;
  return withClient(lazyElbv2(options), (elb) => {
    const ask = (name: string, send: () => Promise<unknown>): Promise<RightAnswer> =>
      askRight(`elasticloadbalancing:${name}`, options, send, 'absence');
    return Promise.all([
      ask('DescribeLoadBalancers', () => elb.describeLoadBalancers({ PageSize: 1 })),
      ask('DescribeTargetGroups', () => elb.describeTargetGroups({ PageSize: 1 })),
      ask('DescribeListeners', () => elb.describeListeners({ LoadBalancerArn })),
      // Only gc calls it.
      ask('DescribeTags', () => elb.describeTags({ ResourceArns: [LoadBalancerArn] })),
      ask('DescribeTargetHealth', () => elb.describeTargetHealth({ TargetGroupArn })),
    ]);
  });
}

/**
 * The customer's KMS key that encrypts every new volume by the account's default; null when none does. Throws the
 * AppError of a refused call.
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
