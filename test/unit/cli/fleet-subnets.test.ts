/** Where a fleet may be launched: each zone of its balancer has an address that is paid for. */
import { describe, expect, it } from 'vitest';
import type { SubnetInfo } from '../../../orchestrator/cloud/compute.ts';
import { fleetSubnets } from '../../../orchestrator/cli/fleet-subnets.ts';

const subnets = ['f', 'b', 'a', 'c', 'a'].map((zone, i): SubnetInfo => ({
  id: `subnet-${i}`,
  zone,
  vpcId: 'vpc',
  publicAddresses: true,
}));
const compute = { subnets: () => Promise.resolve(subnets) };

describe('fleetSubnets', () => {
  it('takes two zones of the default VPC, with all their subnets, and always the same', async () => {
    expect((await fleetSubnets(compute, [])).map((s) => s.id)).toEqual(['subnet-1', 'subnet-2', 'subnet-4']);
  });

  it('takes every subnet that is named', async () => {
    expect(await fleetSubnets(compute, ['subnet-0'])).toEqual(subnets);
  });
});
