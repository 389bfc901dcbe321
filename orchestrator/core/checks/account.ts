/** Checks of the AWS account: credentials, endpoint, its clock, rights. */
import { AppError } from '../../../shared/domain/errors.ts';
import { systemClock } from '../../../shared/adapters/system-clock.ts';
import { WRONG_CLOCK_MS } from '../../../shared/domain/limits.ts';
import { type Check, failed, type Finding, lacksRegion, ok, standing, warning } from './check.ts';
import { renderParts } from '../cloud/endpoint-profile.ts';
import { recognizeEndpoint } from '../cloud-access/recognize-endpoint.ts';
import { checkEc2Rights, checkElbRights, type RightAnswer } from '../cloud/right-checks.ts';
import { organisationRemedy } from '../decide/launches/rights.ts';
import type { Environment } from '../config/load-config.ts';

export const credentials: Check = {
  id: 'credentials',
  title: 'credentials and account',
  only: 'aws',
  lacks: lacksRegion,
  beforeLaunch: true,
  async run({ facts, environment, target, config }) {
    const profile = environment.AWS_PROFILE;
    try {
      const { account, arn } = await facts.identity();
      const by = profile === undefined ? '' : ` (profile ${profile})`;
      const { deadline, grace } = config.values.run;
      const ends = deadline === null ? null : keysEndEarly(environment, systemClock.now() + deadline + grace);
      return [ok(`account ${account}, ${arn}${by}, region ${target.region}`), ...(ends ? [ends] : [])];
    } catch (error) {
      if (!(error instanceof AppError) || error.code !== 'aws-denied') throw error;
      return failed(error.code, error.message, remedyFor(error.message, profile));
    }
  },
};

/** A warning when keys in the environment expire before `untilMs`. Only those: the SDK refreshes all others. */
export function keysEndEarly(environment: Environment, untilMs: number): Finding | null {
  if (environment.AWS_ACCESS_KEY_ID === undefined) return null;
  const endsMs = Date.parse(environment.AWS_CREDENTIAL_EXPIRATION ?? '');
  if (Number.isNaN(endsMs) || endsMs >= untilMs) return null;
  return warning(
    `the keys in the environment end at ${new Date(endsMs).toISOString()}, before deadline and grace of a run that began now (${new Date(untilMs).toISOString()})`,
    'A process cannot get new keys through its environment: use a profile or an instance role, or keys that last longer',
  );
}

function remedyFor(message: string, profile: string | undefined): string {
  const whose = profile === undefined ? '' : ` --profile ${profile}`;
  const logIn = `aws sso login${whose} (IAM Identity Center) or aws login${whose} (console)`;
  const other = profile === undefined ? 'name a profile in AWS_PROFILE' : 'correct AWS_PROFILE';
  if (/RequestTimeTooSkewed|SignatureDoesNotMatch|RequestExpired/.test(message))
    return 'Check "clock of this machine" first; else check the secret key: aws sts get-caller-identity';
  if (/expired|TokenProvider|sso session/i.test(message))
    return `The session is over: ${logIn}, then run the command again; keys in AWS_SESSION_TOKEN and ~/.aws/credentials take precedence over a new session`;
  if (/CredentialsProvider|MissingAuthenticationToken/.test(message))
    return `There are no credentials here: ${logIn}, ${other}, or give this machine an instance role`;
  return `Check the credentials that the AWS SDK finds here (aws sts get-caller-identity): ${logIn}, or ${other}`;
}

export const endpoint: Check = {
  id: 'endpoint',
  title: 'endpoint of the dry run',
  only: 'dry',
  needs: ['settings'],
  limitMs: 15_000,
  async run({ target }) {
    const { profile } = await recognizeEndpoint(target);
    if (profile === null) return ok('none: EC2, ELBv2 and S3 are played by a sandbox that the run starts');
    return renderParts(profile).map((text) => ok(text));
  },
};

const NOTED_MS = 5_000;

export const endpointClock: Check = {
  id: 'clock',
  title: 'clock of this machine',
  only: 'aws',
  // Does not need the credentials check: a wrong clock is one reason for AWS to refuse them.
  lacks: lacksRegion,
  beforeLaunch: true,
  async run({ facts }) {
    const skewMs = await facts.skewMs();
    if (skewMs === null) return warning('the endpoint does not say what time it is');
    const seconds = Math.round(Math.abs(skewMs) / 1_000);
    const text = `${seconds} s ${skewMs > 0 ? 'behind' : 'ahead of'} the endpoint's`;
    const remedy = 'Keep time by NTP: timedatectl set-ntp true, or chrony';
    // AWS refuses requests that are five minutes off; our boot deadlines and tokens suffer long before.
    if (Math.abs(skewMs) > WRONG_CLOCK_MS) return failed('platform', text, remedy);
    return Math.abs(skewMs) > NOTED_MS ? warning(text, remedy) : ok('within 5 s of the endpoint');
  },
};

export const ec2Rights: Check = {
  id: 'ec2-rights',
  regional: true,
  title: 'EC2 rights',
  only: 'aws',
  needs: ['credentials', 'image'],
  after: ['subnets'],
  beforeLaunch: true,
  limitMs: 15_000,
  async run({ config, facts }) {
    if (!(await facts.isFaithful()))
      return warning(
        'not checked: an endpoint that is not AWS may execute a DryRun call',
        'orchestrator run --dry-run shows whether it works there',
      );
    const [launches, own, subnets] = await Promise.all([facts.launches(), facts.ownInstance(), facts.subnets()]);
    const vpcId = config.values.aws.load_balancer === null ? subnets[0]!.vpcId : null;
    return judgeRights(await checkEc2Rights(facts.aws(), launches, own, vpcId));
  },
};

const POLICY = 'deploy/policies/controller.json has the policy; orchestrator setup fills it in';

/** One line for all allowed actions, and one for each that is denied or not proved. */
export function judgeRights(answers: readonly RightAnswer[]): Finding[] {
  const allowed = answers.filter((a) => a.verdict === 'allowed' || a.verdict === 'pool').map((a) => a.action);
  return [
    ...(allowed.length > 0 ? [ok(`allowed: ${allowed.join(', ')}`)] : []),
    ...answers.flatMap((answer) => judgeRight(answer) ?? []),
  ];
}

/** A launch can be refused for each of these, and EC2 names the right only in an encoded message. */
const LAUNCH_RIGHTS = 'ec2:RunInstances, ec2:CreateTags at launch, and iam:PassRole for the instance role';

const BOUND =
  '. It allows the instance types, subnets and regions of fleet.yaml at that time: after a change of these run orchestrator setup again and apply it';

function judgeRight({ action, verdict, message, places }: RightAnswer): Finding | null {
  const where = places === undefined ? '' : ` for ${places.join(', ')}`;
  switch (verdict) {
    case 'allowed':
      return null;
    case 'pool':
      return warning(`${action} is allowed, but there is no room for it now${where}: ${message}`);
    case 'denied': {
      const isLaunch = action === 'ec2:RunInstances';
      const remedy =
        organisationRemedy(message) ?? `Allow ${isLaunch ? LAUNCH_RIGHTS : action}. ${POLICY}${isLaunch ? BOUND : ''}`;
      return failed('aws-denied', `${action} is refused${where}: ${message}`, remedy);
    }
    case 'unproved':
      return standing(
        `${action} is allowed by an instance's tag, and none of our instances exists to test it on`,
        'npm run canary proves it with two small instances',
      );
    case 'wrong':
      return failed(
        'aws-invalid',
        `${action}${where}: ${message}`,
        'Correct the setting of aws that the message names',
      );
    case 'missing':
      return warning(`this endpoint has no ${action.split(':')[1]}`);
    case 'failed':
      return failed('aws-failed', `${action}: ${message}`, 'Run the command again');
  }
}

export const elbRights: Check = {
  id: 'elb-rights',
  regional: true,
  title: 'load balancer rights',
  only: 'aws',
  needs: ['credentials'],
  beforeLaunch: true,
  async run({ facts }) {
    const { account } = await facts.identity();
    const findings = judgeRights(await checkElbRights(facts.aws(), account));
    const changing = 'the rights to make, fill and remove a balancer cannot be checked without making one';
    return [
      ...findings,
      standing(changing, 'a run that makes one proves them, as npm run canary does outside of the VPC'),
    ];
  },
};
