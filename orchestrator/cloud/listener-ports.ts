/** Whether a load balancer of the user's has a free port for a run's listener. */
import type { Listener } from '@aws-sdk/client-elastic-load-balancing-v2';
import { freePort } from './elbv2-words.ts';
import { type AwsOptions, callOnce, lazyElbv2 } from './sdk-clients.ts';

/** Throws `aws-invalid` when every port of SHARED_PORTS has a listener, and the AppError of a refused call. Changes nothing. */
export async function assertFreePort(options: AwsOptions, loadBalancerArn: string): Promise<void> {
  const found: Listener[] = [];
  await callOnce(lazyElbv2, options, 'DescribeListeners', async ({ sdk, client }) => {
    const pages = sdk.paginateDescribeListeners({ client }, { LoadBalancerArn: loadBalancerArn });
    for await (const { Listeners = [] } of pages) found.push(...Listeners);
  });
  freePort(found);
}
