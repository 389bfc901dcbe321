/** Ports for the listeners of runs on a load balancer of the user's. */
import type { Listener } from '@aws-sdk/client-elastic-load-balancing-v2';
import { AppError } from '../../../shared/domain/errors.ts';
import { SHARED_PORTS } from './load-balancer.ts';
import { allOf, type AwsOptions, callOnce, lazyElbv2 } from './sdk-clients.ts';

/**
 * Throws `aws-invalid` when every port of SHARED_PORTS has a listener, and the AppError of a refused call. Changes
 * nothing.
 */
export async function assertFreePort(options: AwsOptions, loadBalancerArn: string): Promise<void> {
  const call = 'DescribeListeners';
  const listeners = await callOnce(lazyElbv2, options, call, (elb) =>
    allOf(elb.paginateDescribeListeners({ LoadBalancerArn: loadBalancerArn }), call, (page) => page.Listeners),
  );
  freePort(listeners);
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
