/** The cloud adapters for one region and endpoint, created and closed together. */
import type { Compute } from './compute.ts';
import { Ec2Compute } from './ec2-compute.ts';
import { Elbv2LoadBalancer } from './elbv2-load-balancer.ts';
import type { AwsOptions } from './sdk-clients.ts';
import type { LoadBalancer } from './load-balancer.ts';
import { StandInCompute, StandInLoadBalancer } from './stand-in.ts';

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

/** EC2 at the endpoint; machines and load balancer at the sandbox that stands in for it. Makes no call either. */
export function createStandInAdapters(endpoint: AwsOptions, standIn: AwsOptions): AwsAdapters {
  const machines = new Ec2Compute(standIn);
  const compute = new StandInCompute(endpoint, machines);
  const balancers = new StandInLoadBalancer(standIn, machines);
  return {
    compute,
    balancers,
    close: () => {
      compute.close();
      balancers.close();
    },
  };
}
