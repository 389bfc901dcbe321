/** The cloud adapters for one region and endpoint, made together and closed together. */
import type { Compute } from './compute.ts';
import { Ec2Compute } from './ec2-compute.ts';
import { Elbv2LoadBalancer } from './elbv2-load-balancer.ts';
import type { AwsOptions } from './lazy-sdk.ts';
import type { LoadBalancer } from './load-balancer.ts';

export interface AwsAdapters {
  compute: Compute;
  balancers: LoadBalancer;
  /** Closes the kept-alive connections. */
  close: () => void;
}

/** Makes no call: each SDK is loaded at the first use of its adapter. */
export function createAwsAdapters(options: AwsOptions): AwsAdapters {
  const compute = new Ec2Compute(options);
  const balancers = new Elbv2LoadBalancer(options);
  return {
    compute,
    balancers,
    close: () => {
      compute.close();
      balancers.close();
    },
  };
}
