/**
 * The subnets of a run: the configured ones, else those of the default VPC in as many zones as a load balancer needs.
 */
import type { Compute, SubnetInfo } from '../../cloud/compute.ts';
import { BALANCER_ZONES } from '../../control/model/run-settings.ts';

/** Queries EC2. A load balancer must be in every zone that has instances, so the zones are limited for both. */
export async function fleetSubnets(compute: Pick<Compute, 'subnets'>, named: readonly string[]): Promise<SubnetInfo[]> {
  const subnets = await compute.subnets(named);
  if (named.length > 0) return subnets;
  const zones = [...new Set(subnets.map((s) => s.zone))].sort().slice(0, BALANCER_ZONES);
  return subnets.filter((s) => zones.includes(s.zone));
}
