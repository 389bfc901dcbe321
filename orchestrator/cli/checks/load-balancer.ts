/** The load balancer that the run will make or use, and its security groups. */
import { assertFreePort } from '../../cloud/listener-ports.ts';
import type { Check } from './check.ts';
import { ok, warning } from './check.ts';

export const loadBalancer: Check = {
  id: 'load-balancer',
  title: 'load balancer',
  kinds: ['aws'],
  // Unsuitable subnets still have groups and zones.
  after: ['subnets'],
  beforeLaunch: true,
  limitMs: 15_000,
  async run({ aws, config, facts }) {
    // Both throw: when the user's load balancer does not exist, is not in the VPC and the zones of the subnets, or has
    // no room.
    const { balancer, notes } = await facts.network();
    const named = config.values.aws.load_balancer;
    if (balancer.existing !== null) await assertFreePort(aws!, balancer.existing);
    const said =
      named === null ? `an ${balancer.scheme} one is made for the run` : `${named} serves the zones of the subnets`;
    return [
      ok(said),
      ...notes.map((text) =>
        /default group/.test(text) ? warning(text, 'orchestrator setup shows groups of their own') : ok(text),
      ),
    ];
  },
};
