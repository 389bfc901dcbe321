/** What security groups let through, as far as their rules show. */
import { BlockList, isIP } from 'node:net';
import type { IpPermission, SecurityGroup } from '@aws-sdk/client-ec2';
import { type AwsOptions, callOnce, lazyEc2 } from './sdk-clients.ts';

export type { SecurityGroup };

/** The groups with these ids, with their rules. Throws the AppError of a refused call. */
export function readGroups(options: AwsOptions, ids: readonly string[]): Promise<SecurityGroup[]> {
  return callOnce(lazyEc2, options, 'DescribeSecurityGroups', async (ec2) => {
    const reply = await ec2.describeSecurityGroups({ GroupIds: [...ids] });
    return (reply.SecurityGroups ?? []).filter((g) => ids.includes(g.GroupId ?? ''));
  });
}

/** Sources that may reach a TCP port behind these groups: group ids, prefix lists and address ranges. */
export function sourcesOf(groups: readonly SecurityGroup[], port: number): string[] {
  const rules = groups.flatMap((g) => g.IpPermissions ?? []).filter((rule) => covers(rule, port));
  return rules.flatMap((rule) => [
    ...(rule.UserIdGroupPairs ?? []).map((pair) => pair.GroupId ?? ''),
    ...(rule.PrefixListIds ?? []).map((list) => list.PrefixListId ?? ''),
    ...rangesOf(rule),
  ]);
}

/** True when the groups let their instances reach any address on this TCP port. */
export function letsOut(groups: readonly SecurityGroup[], port: number): boolean {
  const rules = groups.flatMap((g) => g.IpPermissionsEgress ?? []).filter((rule) => covers(rule, port));
  return rules.flatMap(rangesOf).some(isAnywhere);
}

/** True when the groups let their instances reach any address, prefix list or group on this TCP port. */
export function letsSomethingOut(groups: readonly SecurityGroup[], port: number): boolean {
  const rules = groups.flatMap((g) => g.IpPermissionsEgress ?? []).filter((rule) => covers(rule, port));
  return rules.some((r) => [...rangesOf(r), ...(r.PrefixListIds ?? []), ...(r.UserIdGroupPairs ?? [])].length > 0);
}

/** True when the address lies in the range. False for a range or address that cannot be parsed. */
export function isWithin(address: string, range: string): boolean {
  const [net = '', bits = ''] = range.split('/');
  const family = isIP(address);
  if (family === 0 || isIP(net) !== family || !/^\d+$/.test(bits)) return false;
  const list = new BlockList();
  list.addSubnet(net, Number(bits), family === 4 ? 'ipv4' : 'ipv6');
  return list.check(address, family === 4 ? 'ipv4' : 'ipv6');
}

/** True for addresses and prefix lists, false for a group. It is unknown here which machines have those addresses. */
export const isRange = (source: string): boolean => source.includes('/') || source.startsWith('pl-');

export const isAnywhere = (range: string): boolean => range === '0.0.0.0/0' || range === '::/0';

function covers(rule: IpPermission, port: number): boolean {
  if (rule.IpProtocol === '-1') return true;
  if (rule.IpProtocol !== 'tcp' && rule.IpProtocol !== '6') return false;
  return (rule.FromPort ?? 0) <= port && port <= (rule.ToPort ?? 65_535);
}

const rangesOf = (rule: IpPermission): string[] => [
  ...(rule.IpRanges ?? []).map((r) => r.CidrIp ?? ''),
  ...(rule.Ipv6Ranges ?? []).map((r) => r.CidrIpv6 ?? ''),
];
