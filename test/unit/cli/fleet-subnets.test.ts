/** The subnets in which a fleet may launch: each zone of its load balancer has a public address, which costs money. */
import { describe, expect, it } from 'vitest';
import type { SubnetInfo } from '../../../orchestrator/cloud/compute.ts';
import { fleetSubnets } from '../../../orchestrator/app/cloud/launch-network.ts';

const subnets = ['f', 'b', 'a', 'c', 'a'].map((zone, i): SubnetInfo => ({
  id: `subnet-${i}`,
  zone,
  vpcId: 'vpc',
  publicAddresses: true,
}));
const compute = { subnets: () => Promise.resolve(subnets) };

describe('fleetSubnets', () => {
  it('takes two zones of the default VPC with all their subnets, always the same ones', async () => {
    expect((await fleetSubnets(compute, [])).map((s) => s.id)).toEqual(['subnet-1', 'subnet-2', 'subnet-4']);
  });

  it('takes every configured subnet', async () => {
    expect(await fleetSubnets(compute, ['subnet-0'])).toEqual(subnets);
  });
});
