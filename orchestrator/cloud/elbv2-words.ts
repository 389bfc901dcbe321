/** Translates ELBv2's terms into the port's. */
import type { Action, Listener, LoadBalancer as Elb } from '@aws-sdk/client-elastic-load-balancing-v2';
import { AppError } from '../../shared/domain/errors.ts';
import { type ExistingBalancer, SHARED_PORTS, TARGET_STATES, type TargetHealth } from './load-balancer.ts';

/** Whether a listener's action forwards to this target group, in either of ELBv2's two forms. */
export const forwardsTo = (action: Action, arn: string): boolean =>
  action.TargetGroupArn === arn || (action.ForwardConfig?.TargetGroups ?? []).some((g) => g.TargetGroupArn === arn);

/** `unhealthy.draining` and whatever ELBv2 adds later are folded into the states the port knows. */
export function toHealth(state: string | undefined): TargetHealth {
  if (state === 'unhealthy.draining') return 'draining';
  return TARGET_STATES.find((known) => known === state) ?? 'unavailable';
}

/** The first port of SHARED_PORTS that no listener has. Throws when all of them are taken. */
export function freePort(listeners: readonly Listener[]): number {
  const taken = new Set(listeners.map((l) => l.Port));
  for (let port: number = SHARED_PORTS.first; port <= SHARED_PORTS.last; port++) if (!taken.has(port)) return port;
  throw new AppError(
    'aws-invalid',
    `aws.load_balancer has no free port from ${SHARED_PORTS.first} to ${SHARED_PORTS.last}`,
    {
      hint: 'Remove listeners of runs that are over: orchestrator gc.',
    },
  );
}

export const toExisting = (balancer: Elb): ExistingBalancer => ({
  name: balancer.LoadBalancerName ?? '',
  loadBalancerArn: balancer.LoadBalancerArn!,
  type: balancer.Type ?? 'application',
  scheme: balancer.Scheme === 'internet-facing' ? 'internet-facing' : 'internal',
  vpcId: balancer.VpcId ?? '',
  zones: (balancer.AvailabilityZones ?? []).flatMap((z) => (z.ZoneName ? [z.ZoneName] : [])),
});
