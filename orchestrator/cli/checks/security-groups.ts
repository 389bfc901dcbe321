/** What the security groups let through, as far as their rules tell it. */
import type { SubnetInfo } from '../../cloud/compute.ts';
import type { SecurityGroup } from '../../cloud/group-rules.ts';
import { isAnywhere, isRange, letsOut, readGroups, sourcesOf } from '../../cloud/group-rules.ts';
import { API_PORT, BALANCER_PORT } from '../../control/launch.ts';
import { portOf } from '../url-port.ts';
import type { Check, Finding } from './check.ts';
import { ok, warning } from './check.ts';

export const securityGroups: Check = {
  id: 'security-groups',
  title: 'security groups',
  kinds: ['aws'],
  needs: ['load-balancer'],
  async run({ aws, config, facts }) {
    const { securityGroupIds, balancer } = await facts.network();
    const instances = await readGroups(aws!, securityGroupIds);
    // The groups of a balancer of the user's are the user's business.
    const groups = balancer.securityGroupIds.length === 0 ? [] : await readGroups(aws!, balancer.securityGroupIds);
    const [{ vpcId }] = (await facts.subnets()) as [SubnetInfo];
    // Where it cannot be asked, aws.balancer_scheme has been set, or the check of the balancer says so.
    const own = await facts.ownInterfaces().catch(() => []);
    const here = own.filter((each) => each.vpcId === vpcId).flatMap((each) => each.securityGroupIds);
    const site = new URL(config.values.site.product_url.replaceAll('{id}', 'x'));
    return judgeGroups({ instances, balancer: groups, here }, portOf(site));
  },
};

export interface Groups {
  instances: readonly SecurityGroup[];
  /** Empty when they are not known. */
  balancer: readonly SecurityGroup[];
  /** Ids of those that this machine has in the VPC of the fleet; empty when it is not known to be in it. */
  here: readonly string[];
}

/** Warnings only: rules may lie in network ACLs, prefix lists and groups that are not seen here. */
export function judgeGroups({ instances, balancer, here }: Groups, sitePort: number): Finding[] {
  const names = namesOf(instances);
  const findings = [
    ...judgeApi(instances, balancer),
    ...judgeBalancer(balancer, here),
    ...judgeWayOut(instances, sitePort),
  ];
  return findings.length > 0 ? findings : [ok(`${names}: the balancer gets in on port ${API_PORT}, instances get out`)];
}

const namesOf = (groups: readonly SecurityGroup[]): string => groups.map((g) => g.GroupId ?? '').join(', ');

function judgeApi(instances: readonly SecurityGroup[], balancer: readonly SecurityGroup[]): Finding[] {
  const sources = sourcesOf(instances, API_PORT);
  const own = balancer.map((g) => g.GroupId ?? '');
  const letsIn = balancer.length === 0 ? sources.length > 0 : sources.some((s) => own.includes(s) || isRange(s));
  const [group = 'sg-…', from = group] = [instances[0]?.GroupId, own[0]];
  return [
    ...(letsIn
      ? []
      : [
          warning(
            `no rule of ${namesOf(instances)} lets the balancer reach instances on port ${API_PORT}: they would never be healthy`,
            `aws ec2 authorize-security-group-ingress --group-id ${group} --protocol tcp --port ${API_PORT} --source-group ${from}`,
          ),
        ]),
    ...(sources.some(isAnywhere)
      ? [
          warning(
            `port ${API_PORT} of the instances is open to everybody (offers are signed, but nobody else needs it)`,
            'Allow it from the security group of the balancer only',
          ),
        ]
      : []),
  ];
}

function judgeBalancer(balancer: readonly SecurityGroup[], here: readonly string[]): Finding[] {
  const own = balancer.map((g) => g.GroupId ?? '');
  // A default group lets its members in, and nobody says that this machine is one. Another group may be that of a way into the VPC.
  const isOurs = (source: string): boolean => (here.length > 0 ? here.includes(source) : !own.includes(source));
  if (balancer.length === 0 || sourcesOf(balancer, BALANCER_PORT).some((s) => isRange(s) || isOurs(s))) return [];
  const from = here.length > 0 ? `--source-group ${here[0]}` : '--cidr ADDRESS-OF-THIS-MACHINE/32';
  return [
    warning(
      `no rule of ${namesOf(balancer)} lets this machine reach the balancer on port ${BALANCER_PORT}: instances would boot, and get no offer`,
      `Take the groups that orchestrator setup makes in the VPC of the subnets, or: aws ec2 authorize-security-group-ingress --group-id ${own[0]} --protocol tcp --port ${BALANCER_PORT} ${from}`,
    ),
  ];
}

function judgeWayOut(instances: readonly SecurityGroup[], sitePort: number): Finding[] {
  const shut = [...new Set([443, sitePort])].filter((port) => !letsOut(instances, port));
  return shut.map((port) =>
    warning(
      `${namesOf(instances)} may let nothing out on port ${port}: instances could not reach S3 or the site`,
      'Allow outgoing TCP to 0.0.0.0/0',
    ),
  );
}
