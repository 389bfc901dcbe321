/** How the instances of a subnet reach the internet, by its route table. */
import type { Route, RouteTable } from '@aws-sdk/client-ec2';
import { allOf, type AwsOptions, callOnce, lazyEc2 } from './sdk-clients.ts';

export type { RouteTable };

/**
 * internet   an internet gateway: each instance uses its own public address
 * nat        a NAT gateway or instance: all of them share one address
 * other      something else, such as a transit gateway or a firewall: the public address is unknown
 * none       no way out
 */
export type WayOut = { kind: 'internet' | 'nat' | 'other' | 'none'; target: string | null };

/** The tables of the VPC. Throws the AppError of a refused call. */
export function findRouteTables(options: AwsOptions, vpcId: string): Promise<RouteTable[]> {
  const call = 'DescribeRouteTables';
  return callOnce(lazyEc2, options, call, async (ec2) => {
    const pages = ec2.paginateDescribeRouteTables({ Filters: [{ Name: 'vpc-id', Values: [vpcId] }] });
    // Some endpoints ignore unknown filters.
    return (await allOf(pages, call, (page) => page.RouteTables)).filter((table) => table.VpcId === vpcId);
  });
}

/**
 * The way out of a subnet: by its associated table, else by the VPC's main one. Only the IPv4 default route counts, and
 * not a blackhole. Without one, prefix lists and routes to large parts of the internet are `other`: together they may
 * cover all of it.
 */
export function wayOut(tables: readonly RouteTable[], subnetId: string): WayOut {
  const own = tables.find((t) => t.Associations?.some((a) => a.SubnetId === subnetId));
  const table = own ?? tables.find((t) => t.Associations?.some((a) => a.Main === true));
  const route = table?.Routes?.find((r) => r.DestinationCidrBlock === '0.0.0.0/0' && r.State !== 'blackhole');
  if (!route) return partOf(table?.Routes ?? []);
  if (route.GatewayId?.startsWith('igw-')) return { kind: 'internet', target: route.GatewayId };
  const nat = route.NatGatewayId ?? route.InstanceId ?? route.NetworkInterfaceId;
  if (nat) return { kind: 'nat', target: nat };
  return { kind: 'other', target: targetOf(route) };
}

const targetOf = (route: Route): string =>
  route.GatewayId ??
  route.NatGatewayId ??
  route.TransitGatewayId ??
  route.VpcPeeringConnectionId ??
  route.LocalGatewayId ??
  'unknown';

/** Two halves of everything are /1. */
const LARGE_BITS = 8;

function partOf(routes: readonly Route[]): WayOut {
  const route = routes.find(
    (r) =>
      r.State !== 'blackhole' &&
      r.GatewayId !== 'local' &&
      // Leads only to S3 or DynamoDB.
      !r.GatewayId?.startsWith('vpce-') &&
      (r.DestinationPrefixListId !== undefined || isLarge(r.DestinationCidrBlock)),
  );
  return route ? { kind: 'other', target: targetOf(route) } : { kind: 'none', target: null };
}

/** A private network is no part of the internet, however large. */
const isLarge = (cidr = '10.0.0.0/8'): boolean => !cidr.startsWith('10.') && Number(cidr.split('/')[1]) <= LARGE_BITS;
