/** Whether the security groups of this machine let instances in at server.url. Asking for the URL from here goes through none of them. */
import type { SecurityGroup } from '../../cloud/group-rules.ts';
import { isRange, readGroups, sourcesOf } from '../../cloud/group-rules.ts';
import { portOf } from '../url-port.ts';
import type { CheckContext, Finding } from './check.ts';
import { ok, standing, warning } from './check.ts';

/** Of an interface of this machine that server.url leads to. */
export interface Door {
  groups: readonly SecurityGroup[];
  port: number;
  /** True when instances come by its private address: then rules that name their group hold. */
  isPrivate: boolean;
}

const UNSEEN = standing(
  'whether firewalls let instances in at server.url cannot be seen from here',
  'npm run canary tries it with two small instances',
);

/** @param addresses those that the name in server.url has */
export async function lookAtDoors(
  { aws, config, facts }: CheckContext,
  addresses: readonly string[],
): Promise<Finding[]> {
  // What cannot be asked is told where it is needed: this only says more than nothing.
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

/** A warning only: a network ACL or a group of another name may say otherwise. */
export function judgeDoor({ groups, port, isPrivate }: Door, instances: readonly string[]): Finding {
  const names = groups.map((g) => g.GroupId ?? '').join(', ');
  const letsIn = sourcesOf(groups, port).some((s) => isRange(s) || (isPrivate && instances.includes(s)));
  if (letsIn) return ok(`${names}, of this machine, lets instances in on port ${port}`);
  const what = `no rule of ${names}, of this machine, lets instances in on port ${port}: no call would arrive, and each machine be given up at its boot`;
  const allow = (from: string): string =>
    `aws ec2 authorize-security-group-ingress --group-id ${groups[0]?.GroupId ?? 'sg-…'} --protocol tcp --port ${port} ${from}`;
  const byGroup = allow(`--source-group ${instances[0] ?? 'sg-…'}`);
  if (isPrivate)
    return warning(what, `Give this machine the group that orchestrator setup makes for it, or: ${byGroup}`);
  // Their public addresses are known only once they run, and a port open to everybody is open to strangers.
  return warning(
    what,
    `Set server.url to this machine's private address and let the instances' group in: ${byGroup}. If they come through a NAT gateway: ${allow('--cidr <its address>/32')}`,
  );
}
