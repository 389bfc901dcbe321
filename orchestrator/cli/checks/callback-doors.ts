/**
 * Whether the security groups of this machine let instances in at server.url. A request to the URL from here bypasses
 * all of them.
 */
import type { SecurityGroup } from '../../cloud/group-rules.ts';
import { isRange, readGroups, sourcesOf } from '../../cloud/group-rules.ts';
import { portOf } from '../url-port.ts';
import type { CheckContext, Finding } from './check.ts';
import { ok, standing, warning } from './check.ts';

/** An interface of this machine that server.url leads to. */
export interface Door {
  groups: readonly SecurityGroup[];
  port: number;
  /** True when instances come by its private address: then rules that name their group apply. */
  isPrivate: boolean;
}

const UNSEEN = standing(
  'whether firewalls let instances in at server.url cannot be seen from here',
  'npm run canary tries it with two small instances',
);

/** @param addresses the addresses of the name in server.url */
export async function lookAtDoors(
  { aws, config, facts }: CheckContext,
  addresses: readonly string[],
): Promise<Finding[]> {
  // The check that needs the interfaces reports a failure to read them: this one only adds detail.
  const own = await facts.ownInterfaces().catch(() => []);
  const found = own.find((each) => [...each.addresses, ...each.publicAddresses].some((a) => addresses.includes(a)));
  if (found === undefined) return [UNSEEN];
  try {
    const [groups, instances] = await Promise.all([readGroups(aws!, found.securityGroupIds), facts.groups()]);
    const isPrivate = addresses.some((a) => found.addresses.includes(a));
    return [judgeDoor({ groups, port: portOf(new URL(config.values.server.url!)), isPrivate }, instances)];
  } catch {
    return [UNSEEN];
  }
}

/** A warning only: a network ACL or a group with other rules may change the result. */
export function judgeDoor({ groups, port, isPrivate }: Door, instances: readonly string[]): Finding {
  const names = groups.map((g) => g.GroupId ?? '').join(', ');
  const letsIn = sourcesOf(groups, port).some((s) => isRange(s) || (isPrivate && instances.includes(s)));
  if (letsIn) return ok(`${names}, of this machine, lets instances in on port ${port}`);
  const what = `no rule of ${names}, of this machine, lets instances in on port ${port}: no call would arrive, and each instance would be given up at boot`;
  const allow = (from: string): string =>
    `aws ec2 authorize-security-group-ingress --group-id ${groups[0]?.GroupId ?? 'sg-…'} --protocol tcp --port ${port} ${from}`;
  const byGroup = allow(`--source-group ${instances[0] ?? 'sg-…'}`);
  if (isPrivate)
    return warning(what, `Give this machine the group that orchestrator setup makes for it, or: ${byGroup}`);
  // The instances' public addresses are known only once they run, and a port open to the world is open to strangers.
  return warning(
    what,
    `Set server.url to this machine's private address and let the instances' group in: ${byGroup}. If they come through a NAT gateway: ${allow('--cidr <its address>/32')}`,
  );
}
