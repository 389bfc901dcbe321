/** Every EC2 right that a run uses, tested with DryRun; the launch with its real parameters. */
import type { RightAnswer } from '../../cloud/right-probes.ts';
import { probeEc2Rights } from '../../cloud/right-probes.ts';
import type { Check, Finding } from './check.ts';
import { failed, ok, standing, warning } from './check.ts';

export const ec2Rights: Check = {
  id: 'ec2-rights',
  title: 'EC2 rights',
  kinds: ['aws'],
  needs: ['credentials', 'image'],
  after: ['subnets'],
  beforeLaunch: true,
  limitMs: 15_000,
  async run({ aws, config, facts }) {
    if (!(await facts.isFaithful()))
      return [
        warning(
          'not checked: an endpoint that is not AWS may execute a DryRun call',
          'orchestrator run --dry-run shows whether it works there',
        ),
      ];
    const [launch, own, subnets] = await Promise.all([facts.launch(), facts.ownInstance(), facts.subnets()]);
    const vpcId = config.values.aws.load_balancer === null ? subnets[0]!.vpcId : null;
    return judgeRights(await probeEc2Rights(aws!, launch, own, vpcId));
  },
};

const POLICY = 'userdata/iam/controller.json has the policy; orchestrator setup fills it in';

/** One line for all allowed actions, and one for each that is denied or not proved. */
export function judgeRights(answers: readonly RightAnswer[]): Finding[] {
  const allowed = answers.filter((a) => a.verdict === 'allowed' || a.verdict === 'pool').map((a) => a.action);
  return [
    ...(allowed.length > 0 ? [ok(`allowed: ${allowed.join(', ')}`)] : []),
    ...answers.flatMap((answer) => judgeRight(answer)),
  ];
}

function judgeRight({ action, verdict, message }: RightAnswer): Finding[] {
  switch (verdict) {
    case 'allowed':
      return [];
    case 'pool':
      return [warning(`${action} is allowed, but there is no room for it now: ${message}`)];
    case 'denied':
      // A launch can be refused for each of three rights, and EC2 names the right only in an encoded message.
      if (action === 'ec2:RunInstances')
        return [
          failed(
            'aws-denied',
            `ec2:RunInstances is refused: ${message}`,
            `Allow ec2:RunInstances, ec2:CreateTags at launch, and iam:PassRole for the instance role. ${POLICY}`,
          ),
        ];
      return [failed('aws-denied', `${action} is refused: ${message}`, `Allow ${action}. ${POLICY}`)];
    case 'unproved':
      return [
        standing(
          `${action} is allowed by an instance's tag, and none of our instances exists to test it on`,
          'npm run canary proves it with two small instances',
        ),
      ];
    case 'wrong':
      return [failed('aws-invalid', `${action}: ${message}`, 'Correct the setting of aws that the message names')];
    case 'missing':
      return [warning(`this endpoint has no ${action.split(':')[1]}`)];
    case 'failed':
      return [failed('aws-failed', `${action}: ${message}`, 'Run the command again')];
  }
}
