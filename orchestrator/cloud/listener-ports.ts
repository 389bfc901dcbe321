/** Whether a load balancer of the user's has a free port for a run's listener. */
import type { Listener } from '@aws-sdk/client-elastic-load-balancing-v2';
import { toAppError } from './aws-errors.ts';
import { freePort } from './elbv2-words.ts';
import type { AwsOptions } from './sdk-clients.ts';
import { lazyElbv2 } from './sdk-clients.ts';

/** Throws `aws-invalid` when every port of SHARED_PORTS has a listener, and the AppError of a refused call. Changes nothing. */
export async function assertFreePort(options: AwsOptions, loadBalancerArn: string): Promise<void> {
  const lazy = lazyElbv2(options);
  const found: Listener[] = [];
  try {
    const { sdk, client } = await lazy.get();
    let marker: string | undefined;
    do {
      const page = { LoadBalancerArn: loadBalancerArn, ...(marker ? { Marker: marker } : {}) };
      const reply = await client.send(new sdk.DescribeListenersCommand(page));
      found.push(...(reply.Listeners ?? []));
      marker = reply.NextMarker;
    } while (marker);
  } catch (error) {
    throw toAppError(error, 'DescribeListeners', options.endpoint);
  } finally {
    lazy.close();
  }
  freePort(found);
}
