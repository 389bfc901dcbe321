/** The subnets of a run: those that are named, else those of the default VPC in as many zones as a balancer needs. */
import type { Compute, SubnetInfo } from '../cloud/compute.ts';
import { BALANCER_ZONES } from '../control/model/run-settings.ts';

/** Asks EC2. A balancer must be in every zone that has instances, so the zones are limited for both. */
export async function fleetSubnets(compute: Pick<Compute, 'subnets'>, named: readonly string[]): Promise<SubnetInfo[]> {
  const subnets = await compute.subnets(named);
  if (named.length > 0) return subnets;
  const zones = [...new Set(subnets.map((s) => s.zone))].sort().slice(0, BALANCER_ZONES);
  return subnets.filter((s) => zones.includes(s.zone));
}
